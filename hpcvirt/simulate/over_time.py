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

"""The fleet over the time of a replay."""

import dataclasses
import itertools
from collections.abc import Callable
from collections.abc import Sequence

from hpcvirt.simulate import outcome

_Samples = Sequence[outcome.Sample]


@dataclasses.dataclass(frozen=True)
class Means:
    """Means over the time from the first sample to the last one.

    :ivar across_packages: guests on more than one package, as a part of all
        guests; 0 if there was never a guest
    """

    busy_cpus: float
    stranded_cpus: float
    stranded_pages_mib: float
    across_packages: float


def means(replays: Sequence[_Samples]) -> Means:
    """Average the samples of replays that ran equally long."""
    guests = _mean(replays, lambda sample: sample.guests)
    across = _mean(replays, lambda sample: sample.across_packages)
    return Means(_mean(replays, lambda sample: sample.busy_cpus),
                 _mean(replays, lambda sample: sample.stranded_cpus),
                 _mean(replays, lambda sample: sample.stranded_pages_mib),
                 across / guests if guests else 0.0)


def _mean(replays: Sequence[_Samples],
          value: Callable[[outcome.Sample], float]) -> float:
    area = span = 0.0
    for samples in replays:
        for sample, following in itertools.pairwise(samples):
            area += value(sample) * (following.time - sample.time)
            span += following.time - sample.time
    return area / span if span else 0.0


def thinned(samples: _Samples, most: int) -> list[outcome.Sample]:
    """Leave out samples so that at most so many remain, evenly in time."""
    if len(samples) <= most:
        return list(samples)
    first, last = samples[0].time, samples[-1].time
    found: list[outcome.Sample] = []
    for sample in samples:
        due = first + (last - first) * len(found) / (most - 1)
        if sample.time >= due and len(found) < most:
            found.append(sample)
    return found
