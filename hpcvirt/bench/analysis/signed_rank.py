# SPDX-License-Identifier: Apache-2.0

"""Estimate the loss of a guest from pairs by a rank test.

The pairs are judged by Wilcoxon's signed-rank test [Wilcoxon-1945], and the
interval holds the losses that the test does not reject [Hodges-Lehmann-1963].
Both are exact if the losses are distributed symmetrically around the true one.
This holds for the difference of two sides with the same noise, even if the
noise has a long tail, because it is equally likely on both sides. A few runs
that are several times slower hardly widen the interval, whereas they make a t
interval useless.

The evidence is limited by the number of losses: 5 losses that are all on one
side of a bound have a p-value of 1 / 32, however far away they are. Hence
several figures that are judged together need more pairs than one
(:func:`find_least`). A test that uses the distance of the losses does not
replace more pairs: it is wrong in half of all cases for 5 pairs of 23 figures
if the noise has two levels.
"""

import bisect
import dataclasses
import functools
import itertools
import math
import statistics
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt.bench.analysis import stats

#: Up to this number of pairs, the distribution is counted. Beyond it, the
#: normal distribution is used, with an error of at most 0.001.
_COUNTED = 60
#: Tolerance for rounding errors of a calculated level.
_ROUNDING = 1 + 1e-9


@dataclasses.dataclass(frozen=True, slots=True)
class SignedRank:
    """The evidence of some losses.

    :ivar averages: the means of all pairs of losses, each loss with itself
        included, ascending; for the sign test, the losses
    :ivar chance: a function that returns the chance that at most this number
        of the averages are on one side of the true loss
    """

    averages: tuple[float, ...]
    chance: Callable[[int], float]

    @property
    def loss(self) -> float:
        """The Hodges-Lehmann estimate: the median of the averages."""
        return statistics.median(self.averages)

    def ends(self, level: float = stats.LEVEL) -> tuple[float, float]:
        rank = bisect.bisect_right(range(len(self.averages) + 1),
                                   (1 - level) * _ROUNDING,
                                   key=self.chance) - 1
        if rank < 0:
            return -math.inf, math.inf
        return self.averages[rank], self.averages[-1 - rank]

    def p_beyond(self, limit: float) -> float:
        below = bisect.bisect_left(self.averages, limit - stats.EQUAL)
        return self.chance(len(self.averages) - below)

    def p_within(self, limit: float) -> float:
        return self.chance(bisect.bisect_right(
            self.averages, limit + stats.EQUAL))


def estimate(losses: Iterable[float]) -> SignedRank:
    """Estimate from at least one loss."""
    found = tuple(losses)
    pairs = itertools.combinations_with_replacement(found, 2)
    return SignedRank(tuple(sorted((first + second) / 2
                                   for first, second in pairs)),
                      functools.partial(find_chance, len(found)))


def estimate_by_signs(losses: Sequence[float]) -> SignedRank:
    """Estimate the median by the sign test, for any distribution."""
    count = len(losses)
    return SignedRank(tuple(sorted(losses)), lambda below: sum(
        math.comb(count, number) for number in range(below + 1)) / (
            1 << count))


def find_least(share: float) -> int:
    """Return the smallest number of losses that can decide.

    :param share: the share of the chance of an error, 1 / figures for one of
        several figures
    """
    return math.ceil(-math.log2(share * stats.ALPHA))


@functools.lru_cache(maxsize=1024)
def find_critical(count: int, level: float) -> int:
    """Return the largest rank sum that the test rejects, or -1."""
    return bisect.bisect_right(
        range(count * (count + 1) // 2 + 1), level * _ROUNDING,
        key=functools.partial(find_chance, count)) - 1


def find_chance(count: int, rank_sum: int) -> float:
    """Return the chance of at most this rank sum."""
    if count <= _COUNTED:
        return _distribution(count)[rank_sum]
    middle = count * (count + 1) / 4
    deviation = math.sqrt(middle * (2 * count + 1) / 6)
    return statistics.NormalDist(middle, deviation).cdf(rank_sum + 0.5)


@functools.cache
def _distribution(count: int) -> tuple[float, ...]:
    """Return the chance of each rank sum or a smaller one."""
    ways = [1]
    for rank in range(1, count + 1):
        ways = list(map(sum, itertools.zip_longest(
            [0] * rank + ways, ways, fillvalue=0)))
    return tuple(total / 2 ** count for total in itertools.accumulate(ways))
