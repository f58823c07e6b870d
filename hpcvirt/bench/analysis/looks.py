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

"""Judge growing evidence: stop as soon as it decides, without more errors.

A run that is judged after every pair, and ends when the verdict is welcome,
is wrong four times as often as promised. So the numbers of pairs at which a
run may stop are fixed in advance, and the chance of an error is divided among
them. Whatever the noise, the chances add up to that of a single verdict.
"""

import dataclasses
from collections.abc import Sequence

from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import stats

#: Pairs before the first look, and their growth until the next one.
_FIRST = 6
_GROWTH = 1.5


@dataclasses.dataclass(frozen=True, slots=True)
class Sequential:
    """The evidence of several looks, of which each holds those before it.

    :ivar estimates: of each look so far
    :ivar shares: of the chance of an error, for each of them
    """

    estimates: tuple[stats.Estimate, ...]
    shares: tuple[float, ...]

    @property
    def loss(self) -> float:
        """That of the last look."""
        return self.estimates[-1].loss

    def ends(self, level: float = stats.LEVEL) -> tuple[float, float]:
        """Return the ends of what no look rejects."""
        found = [estimate.ends(1 - (1 - level) * share) for estimate, share
                 in zip(self.estimates, self.shares, strict=True)]
        return max(low for low, _ in found), min(high for _, high in found)

    def p_beyond(self, limit: float) -> float:
        """Return the p-value of a loss of at least the limit."""
        return min(1.0, *(
            estimate.p_beyond(limit) / share for estimate, share
            in zip(self.estimates, self.shares, strict=True)))

    def p_within(self, limit: float) -> float:
        """Return the p-value of a loss of at most the limit."""
        return min(1.0, *(
            estimate.p_within(limit) / share for estimate, share
            in zip(self.estimates, self.shares, strict=True)))


def plan(most: int, first: int = _FIRST) -> tuple[int, ...]:
    """Return the numbers of pairs at which a run may stop.

    :param most: number of pairs at which it stops in any case, at least
        :data:`hpcvirt.bench.analysis.sample_pairs.LEAST_PAIRS`
    :param first: number of pairs before the first look
    """
    found = []
    pairs = float(first)
    while round(pairs) < most:
        found.append(round(pairs))
        pairs *= _GROWTH
    return (*found, most)


def shares(looks: Sequence[int]) -> tuple[float, ...]:
    """Divide the chance of an error by the pairs that each look adds."""
    before = (0, *looks[:-1])
    return tuple((pairs - last) / looks[-1]
                 for pairs, last in zip(looks, before, strict=True))


def reached(looks: Sequence[int], pairs: int) -> tuple[int, ...]:
    """Return the looks that so many pairs are enough for."""
    return tuple(look for look in looks if look <= pairs)


def first(values: sample_pairs.Values, pairs: int) -> sample_pairs.Values:
    """Return the first pairs of both arms."""
    return sample_pairs.Values(*(
        tuple(getattr(values, field.name)[:pairs])
        for field in dataclasses.fields(values)))
