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

"""How a host does over time, and beside its fellows: continuous benchmarking.

Weeks of tests before a change went into production missed what a small part
of the jobs met afterwards, tenfold slower on hosts that looked well
[CERN-HEPiX-2015]. So figures are looked at again and again, host by
host; what stands out is named here by rules that are fixed beforehand.
"""

import dataclasses
import math
import statistics
from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record

#: A change below this is never called a drift: figures of a well kept host
#: repeat within 1 to 3 per cent, and the score of a whole host within 4.5
#: (357 +/- 16 HS06 in [CERN-HEPiX-2015]).
LEAST_CHANGE = 0.05
#: Beyond so many robust standard deviations of the earlier figures.
DEVIATIONS = 3.0
#: From the median absolute deviation to a standard deviation (normal law).
MAD_TO_SIGMA = 1.4826
#: Fewer earlier figures, or fewer hosts, say nothing.
LEAST_EARLIER = 3
LEAST_HOSTS = 3


@dataclasses.dataclass(frozen=True, slots=True)
class Key:
    """What is comparable over time: the same question on the same host."""

    host: str
    label: str
    metric: str
    arm: record.Arm
    parameters: tuple[tuple[str, str], ...]


@dataclasses.dataclass(frozen=True)
class Series:
    """A figure of one host over time.

    :ivar times: ISO 8601, ascending
    :ivar values: geometric mean of the samples of a run
    :ivar drift: the last value against the median of the earlier ones, as a
        loss (0.1 is 10 % worse); None if nothing stands out
    :ivar behind: the median against that of the other hosts, likewise
    """

    key: Key
    unit: str
    direction: outcome.Direction
    times: tuple[str, ...]
    values: tuple[float, ...]
    drift: float | None = None
    behind: float | None = None


def series(results: Iterable[record.Result]) -> tuple[Series, ...]:
    """Sort everything that was measured by host and figure.

    :returns: in the order of label, metric, arm, host; samples that failed
        their own check and warm-ups are left out
    """
    points: dict[Key, dict[str, list[float]]] = {}
    known: dict[Key, outcome.Metric] = {}
    for result in results:
        for run in result.runs:
            for sample in run.samples:
                if sample.warm_up or not sample.outcome.valid:
                    continue
                for name, metric in sample.outcome.metrics.items():
                    key = Key(run.host, run.label, name, sample.arm,
                              tuple(sorted(run.parameters.items())))
                    known[key] = metric
                    points.setdefault(key, {}).setdefault(
                        run.started_at, []).append(metric.value)
    made = [_series(key, known[key], points[key]) for key in points]
    made = [dataclasses.replace(one, behind=_behind(one, made))
            for one in made]
    return tuple(sorted(made, key=lambda one: (
        one.key.label, one.key.metric, one.key.arm, one.key.host)))


def loss(value: float, reference: float,
         direction: outcome.Direction) -> float:
    """How much worse a value is than a reference, as a fraction."""
    worse = reference / value if direction is outcome.Direction.UP else (
        value / reference)
    return worse - 1


def _series(key: Key, metric: outcome.Metric,
            points: dict[str, list[float]]) -> Series:
    times = tuple(sorted(points))
    values = tuple(
        math.exp(statistics.fmean(map(math.log, points[time])))
        for time in times)
    return Series(key, metric.unit, metric.direction, times, values,
                  drift=_drift(values, metric.direction))


def _drift(values: Sequence[float],
           direction: outcome.Direction) -> float | None:
    *earlier, last = values
    if len(earlier) < LEAST_EARLIER:
        return None
    change = loss(last, statistics.median(earlier), direction)
    return change if _stands_out(change, last, earlier) else None


def _behind(one: Series, every: Iterable[Series]) -> float | None:
    others = [statistics.median(other.values) for other in every
              if dataclasses.replace(other.key, host='')
              == dataclasses.replace(one.key, host='')
              and other.key.host != one.key.host]
    if len(others) < LEAST_HOSTS - 1:
        return None
    value = statistics.median(one.values)
    change = loss(value, statistics.median(others), one.direction)
    if change <= 0 or not _stands_out(change, value, others):
        return None
    return change


def _stands_out(change: float, value: float,
                others: Sequence[float]) -> bool:
    middle = statistics.median(others)
    spread = MAD_TO_SIGMA * statistics.median(
        abs(other - middle) for other in others)
    return (abs(change) >= LEAST_CHANGE
            and abs(value - middle) > DEVIATIONS * spread)
