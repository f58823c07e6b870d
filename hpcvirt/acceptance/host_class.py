# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Compare a host with its class: other hosts with the same measurement.

A *level* is what a figure of one host is like: the median of the losses of
its samples, where a loss is the logarithm of a time, or of 1 / rate. The
levels of the fellows show what to expect of one more host of the class: they
differ from host to host and from launch to launch, and a host is measured in
one launch only. Its difference from the class is judged by the prediction
interval of Student's t distribution, in which both count:

    loss of the host - median of the fellows +- t x spread x sqrt(1 + pi / 2k)

with the standard deviation of the k fellows as spread, or with the standard
error of a level where that is larger; pi / 2k of the variance of a host is
that of the median of k hosts. The interval is wider than needed for a class
whose hosts differ more than their launches. A host exactly at the bound passes
in at most 5 % of all cases and fails in at most 5 %, and so does a typical
host of a class that differs by more than the bound
(benchmarks/acceptance.py).

A slow fellow would widen the spread of a class until nothing can be decided.
A fellow is left out if it is far from the others: by more than 5 robust
standard deviations, by more than 5 %, and no more than a quarter of them.
"""

import dataclasses
import math
import statistics
from collections.abc import Sequence

from hpcvirt.bench.analysis import stats

#: With fewer the t interval is wider than any bound worth testing.
LEAST_FELLOWS = 5
#: A fellow that is left out differs by more than this: by so many robust
#: standard deviations of the others, and by this loss.
_FAR = 5.0
_FAR_LOSS = math.log(1.05)
#: At most one of so many fellows is left out.
_KEPT = 4


@dataclasses.dataclass(frozen=True, slots=True)
class Level:
    """What one figure of a host is like.

    :ivar loss: median of the losses of the samples
    :ivar error: standard error of the median, from robust deviations
    """

    host: str
    loss: float
    error: float


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A host against its class.

    :ivar estimate: its loss against the class
    :ivar class_loss: the level of the class
    :ivar fellows: the hosts that count
    :ivar left_out: those that are too far from the others
    """

    estimate: stats.Normal
    class_loss: float
    fellows: tuple[str, ...]
    left_out: tuple[str, ...]


def level(host: str, losses: Sequence[float]) -> Level:
    """Find the level of a host.

    :param losses: of at least two samples
    """
    deviation = stats.robust_deviation(losses)
    return Level(host, statistics.median(losses),
                 deviation * math.sqrt(math.pi / 2 / len(losses)))


def compare(own: Level, fellows: Sequence[Level]) -> Comparison | None:
    """Compare a host with its fellows.

    :returns: None if there are too few fellows
    """
    kept = _without_far(fellows)
    if len(kept) < LEAST_FELLOWS:
        return None
    losses = [fellow.loss for fellow in kept]
    middle = statistics.median(losses)
    spread = max(statistics.stdev(losses), own.error,
                 statistics.median(fellow.error for fellow in kept))
    error = spread * math.sqrt(1 + math.pi / 2 / len(kept))
    return Comparison(
        stats.Normal(own.loss - middle, error, len(kept) - 1), middle,
        tuple(fellow.host for fellow in kept),
        tuple(fellow.host for fellow in fellows if fellow not in kept))


def _without_far(fellows: Sequence[Level]) -> list[Level]:
    """Leave out fellows that are far from the others, the farthest first."""
    kept = list(fellows)
    while len(kept) > LEAST_FELLOWS and (
            len(fellows) - len(kept) < len(fellows) // _KEPT):
        middle = statistics.median(fellow.loss for fellow in kept)
        farthest = max(kept, key=lambda fellow: abs(fellow.loss - middle))
        deviation = stats.robust_deviation(
            [fellow.loss for fellow in kept if fellow is not farthest])
        if abs(farthest.loss - middle) <= max(_FAR_LOSS, _FAR * deviation):
            break
        kept.remove(farthest)
    return kept
