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

"""Learn from recorded frames what is usual for a class of hosts.

A class may have more of something than the published hosts, such as
interrupts of its network cards, without being slow. The limit of a quantity
is then the median of the frames of all hosts plus six times their deviation,
which few slow hosts among them hardly change. A limit is never lowered.
"""

import dataclasses
import statistics
from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt.health import frame as frames
from hpcvirt.health import rates
from hpcvirt.health import signature

#: Deviations over the median that are still usual.
DEVIATIONS = 6.0

#: What makes the median absolute deviation comparable with the standard
#: deviation of a normal distribution.
_TO_SIGMA = 1.4826

#: Fewer frames say too little about what is usual.
FEWEST = 100


def signs(recordings: Iterable[Sequence[frames.Frame]],
          ) -> tuple[signature.Sign, ...]:
    """Raise the limits to what is usual.

    :param recordings: the frames of each host of the class
    """
    seen: dict[rates.Quantity, list[float]] = {}
    for recording in recordings:
        state = signature.State()
        for frame in recording:
            state, found = signature.follow(state, frame, ())
            for name, value in found.items():
                seen.setdefault(name, []).append(value)
    usual = {name: _most(values) for name, values in seen.items()
             if len(values) >= FEWEST}
    return tuple(dataclasses.replace(sign, limits={
        name: max(limit, usual.get(name, 0.0))
        for name, limit in sign.limits.items()}) for sign in signature.SIGNS)


def _most(values: Sequence[float]) -> float:
    median = statistics.median(values)
    deviation = statistics.median(abs(value - median) for value in values)
    return median + DEVIATIONS * _TO_SIGMA * deviation
