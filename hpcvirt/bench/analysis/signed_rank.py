# SPDX-License-Identifier: Apache-2.0

"""Estimate the loss in a guest from pairs, whatever their distribution.

The pairs are judged by Wilcoxon's signed-rank test [Wilcoxon-1945], and the
interval holds the losses that the test does not reject [Hodges-Lehmann-1963].
Both are exact if the losses are distributed symmetrically around the true
one. The difference of two sides with the same noise is, however long the tail
of that noise, because each side is as likely as the other to meet it. A few
runs that are several times slower widen the interval little, whereas they
make a t interval useless.

Fewer pairs than LEAST have too few ranks, and are judged by Student's t. Its
error rates hold for them as well: long tails make it cautious.
"""

import bisect
import dataclasses
import functools
import itertools
import math
import statistics
from collections.abc import Callable
from collections.abc import Iterable

from hpcvirt.bench.analysis import stats

MIN_PAIRS = 8

#: Up to this number of pairs the distribution is counted, beyond it is
#: normal to within 0.001.
_COUNTED = 60


@dataclasses.dataclass(frozen=True, slots=True)
class SignedRank:
    """The evidence of some losses.

    :ivar count: number of losses
    :ivar averages: the means of all pairs of losses, each loss with itself
        included, ascending
    :ivar normal: the same losses as Student's t sees them
    """

    count: int
    averages: tuple[float, ...]
    normal: stats.Normal

    @property
    def loss(self) -> float:
        """The Hodges-Lehmann estimate: the median of the averages."""
        return statistics.median(self.averages)

    def ends(self, level: float = stats.LEVEL) -> tuple[float, float]:
        """Return both ends of the interval of the loss.

        :param level: confidence of each end alone
        """
        rank = _critical(self.count, 1 - level)
        return self.averages[rank], self.averages[-1 - rank]

    def p_beyond(self, limit: float) -> float:
        """Return the p-value of a loss of at least the limit."""
        below = bisect.bisect_left(self.averages, limit - stats.EQUAL)
        return self._p(len(self.averages) - below,
                       self.normal.p_beyond, limit)

    def p_within(self, limit: float) -> float:
        """Return the p-value of a loss of at most the limit."""
        return self._p(bisect.bisect_right(
            self.averages, limit + stats.EQUAL), self.normal.p_within, limit)

    def _p(self, rank_sum: int, of_normal: Callable[[float], float],
           limit: float) -> float:
        """Return the p-value of the ranks.

        If all losses are on one side of the limit, it is the same however far
        away they are, and would decide nothing among many figures.
        """
        found = _at_most(self.count, rank_sum)
        return found if rank_sum else min(found, of_normal(limit))


def estimate(losses: Iterable[float]) -> stats.Estimate:
    """Estimate from at least two losses."""
    found = tuple(losses)
    normal = stats.estimate_normal(found)
    if len(found) < MIN_PAIRS:
        return normal
    pairs = itertools.combinations_with_replacement(found, 2)
    return SignedRank(len(found), tuple(sorted(
        (first + second) / 2 for first, second in pairs)), normal)


def _at_most(count: int, rank_sum: int) -> float:
    """Return the chance of a rank sum of at most this one."""
    if count <= _COUNTED:
        return _distribution(count)[rank_sum]
    middle = count * (count + 1) / 4
    deviation = math.sqrt(middle * (2 * count + 1) / 6)
    return statistics.NormalDist(middle, deviation).cdf(rank_sum + 0.5)


@functools.lru_cache(maxsize=1024)
def _critical(count: int, alpha: float) -> int:
    """Return the largest rank sum that the test rejects."""
    rank_sum = 0
    while _at_most(count, rank_sum + 1) <= alpha:
        rank_sum += 1
    return rank_sum


@functools.cache
def _distribution(count: int) -> tuple[float, ...]:
    """Return the chance of each rank sum or a smaller one."""
    ways = [1]
    for rank in range(1, count + 1):
        ways = list(map(sum, itertools.zip_longest(
            [0] * rank + ways, ways, fillvalue=0)))
    return tuple(total / 2 ** count for total in itertools.accumulate(ways))
