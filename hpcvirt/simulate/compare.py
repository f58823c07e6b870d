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

"""Compare the core-hours that strategies lose of the same requests.

All strategies of a run get the same requests, so their losses are compared
pair by pair: what both lose alike cancels. The difference of two strategies is
that of their lost core-hours in percent of all core-hours. Its 95 % interval
is that of a ratio of two sums [Cochran-1977] over windows of one replay or
over replays of several seeds, by Student's t distribution.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from scipy import special

from hpcvirt.simulate import tally

#: With fewer parts an interval says nothing: that of two is 13 times as wide
#: as their standard error.
LEAST_PARTS = 3

#: The confidence of an interval.
LEVEL = 0.95

#: Sums of parts differ from each other by less, in percent, if only rounding
#: tells them apart.
_EQUAL = 1e-9


@dataclasses.dataclass(frozen=True)
class Difference:
    """What a strategy loses more than another one.

    :ivar percent: core-hours, in percent of all core-hours; negative if the
        strategy loses less than the reference
    :ivar reach: half of the interval; None if there is none
    :ivar why_none: the reason then
    :ivar parts: how many parts were compared
    """

    strategy: str
    reference: str
    percent: float
    reach: float | None
    why_none: str
    parts: int

    @property
    def ends(self) -> tuple[float, float] | None:
        """Return the ends of the interval, if there is one."""
        return (None if self.reach is None else
                (self.percent - self.reach, self.percent + self.reach))


def differences(shares: Mapping[str, Sequence[tally.Share]],
                ) -> Iterator[Difference]:
    """Compare each strategy with each one before it.

    :param shares: the parts of each strategy, the same parts for all
    """
    for reference, strategy in itertools.combinations(shares, 2):
        yield difference(strategy, shares[strategy],
                         reference, shares[reference])


def difference(strategy: str, shares: Sequence[tally.Share],
               reference: str, others: Sequence[tally.Share]) -> Difference:
    """Compare a strategy with another one."""
    offered = [share.offered for share in shares]
    more = [own.lost - other.lost
            for own, other in zip(shares, others, strict=True)]
    total = math.fsum(offered)
    ratio = math.fsum(more) / total if total else 0.0
    parts = len(shares)
    reach, why_none = None, ''
    if parts < LEAST_PARTS:
        why_none = f'an interval needs at least {LEAST_PARTS} parts'
    elif not any(more):
        why_none = 'both lose the same in each part'
    else:
        squares = math.fsum((each - ratio * hours) ** 2 for each, hours
                            in zip(more, offered, strict=True))
        error = 100 * math.sqrt(squares * parts / (parts - 1)) / total
        if error > _EQUAL:
            reach = error * float(special.stdtrit(parts - 1, (1 + LEVEL) / 2))
        else:
            why_none = 'the difference is the same in each part'
    return Difference(strategy, reference, 100 * ratio, reach, why_none,
                      parts)
