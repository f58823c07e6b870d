# SPDX-License-Identifier: Apache-2.0

"""Estimate the two losses of a guest: of a typical run, and of the mean time.

The loss of a *typical run* is the median of the losses of pairs; the loss of
the *mean time* tells how much longer users wait. Both are equal if losses are
distributed symmetrically around the true one. Then the signed-rank test
(:mod:`hpcvirt.bench.analysis.signed_rank`) judges both, and no other test
decides more often. If losses are visibly skewed, for example because the guest
has two levels, the two losses differ, and the mean time is judged by
:mod:`hpcvirt.bench.analysis.mean_time` as well. Signed ranks of skewed losses
may lie beyond a bound that the median keeps; therefore a typical run then
fails only if the sign test, which holds for any distribution, rejects too.

A few runs do not show all noise. The following conditions keep the error rates
where noise may violate them; ``benchmarks/verdict.py`` shows the rates.

* **Distance.** Rare runs that were not measured may change the mean, and
  correlated runs look more precise than they are. Therefore a loss that is
  nearer to the bound than :data:`DISTANCE` times the bound, divided by the
  square root of the number of losses, is not decided.
* **Resemblance.** If losses are correlated with those before them, the
  interval is widened as for autoregressive noise. If the correlation is high,
  nothing is decided.
* **Spread.** Slow changes of the machine affect both sides of a pair, but slow
  changes of the guest alone look like a loss. If the guest varies more than
  native in one boot, a few pairs decide nothing (:func:`explain_spread`), and
  more are judged as if they had the largest correlation that does not show.

Stragglers are judged by their number and length
(:mod:`hpcvirt.bench.analysis.stragglers`). In the mean time, they are replaced
by typical runs of their side.
"""

import dataclasses
import math
import statistics
from collections.abc import Sequence

from hpcvirt.bench.analysis import mean_time
from hpcvirt.bench.analysis import signed_rank
from hpcvirt.bench.analysis import stats

#: See above.
DISTANCE = 1.5
#: A larger bound requires no larger distance than this one.
_BOUND = 0.05
#: In 14 of 15 cases, the correlation of independent losses is less than this,
#: divided by the square root of their number.
_DETECTABLE_CORRELATION = 1.5
#: Nothing is decided if the mean correlation over a tenth of all distances is
#: higher than this, divided in the same way.
_MAX_CORRELATION = 1.5
#: First losses that are farther from the others than this many robust standard
#: deviations differ from them.
_TRANSIENT = 3.0
#: With this number of pairs, losses that change slowly resemble each other.
_SHOWS_CHANGES = 20
#: A guest that varies more than this many times as much as native may change
#: slowly by itself.
_SPREAD = 2.0
#: What changes slowly does not move the mean of a boot by more than this many
#: times the spread of its runs.
_FAR = 10.0


@dataclasses.dataclass(frozen=True, slots=True)
class Losses:
    """The evidence of some pairs about both losses.

    :ivar typical: the loss of a typical run by signed ranks
    :ivar signs: the same by the sign test, None if losses are not skewed
    :ivar mean: the loss of the mean time, None if it is that of a typical run
    :ivar widening: the factor by which correlation widens the interval
    :ivar required_distance: a loss that is nearer to the bound than this is
        not decided
    :ivar correlation_obstacle: why correlated losses decide nothing, None if
        they may
    :ivar share: the share of a single run's chance of an error
    """

    typical: stats.Estimate
    signs: stats.Estimate | None = None
    mean: stats.Estimate | None = None
    widening: float = 1.0
    required_distance: float = -math.inf
    correlation_obstacle: str | None = None
    share: float = 1.0

    @property
    def loss(self) -> float:
        """The loss of a typical run."""
        return self.typical.loss

    def ends(self, level: float = stats.LEVEL) -> tuple[float, float]:
        """Return both ends of the interval of the loss of a typical run."""
        low, high = self._widened(self.typical, level)
        if self.signs is not None:
            low = min(low, self._widened(self.signs, level)[0])
        return low, high

    def mean_ends(self, level: float = stats.LEVEL) -> tuple[float, float]:
        """Return both ends of the interval of the loss of the mean time."""
        return self._widened(self.mean or self.typical, level)

    def p_beyond(self, limit: float) -> float:
        """Return the p-value of either loss being at least the limit."""
        return max(self._p_beyond(self.typical, limit),
                   self._p_beyond(self.mean or self.typical, limit))

    def p_within(self, limit: float) -> float:
        """Return the p-value of both losses being at most the limit.

        The typical run decides, unless it is clearly within the limit: then
        the mean time decides.
        """
        of_typical = max(self._p_within(self.typical, limit),
                         self._p_within(self.signs or self.typical, limit))
        of_mean = max(self._p_within(self.mean or self.typical, limit),
                      self._p_beyond(self.typical, limit))
        return min(of_typical, of_mean)

    def _p_beyond(self, found: stats.Estimate, limit: float) -> float:
        if limit - found.loss < self.required_distance:
            return 1.0
        return min(1.0, found.p_beyond(self._narrowed(limit)) / self.share)

    def _p_within(self, found: stats.Estimate, limit: float) -> float:
        if found.loss - limit < self.required_distance:
            return 1.0
        return min(1.0, found.p_within(self._narrowed(limit)) / self.share)

    def _narrowed(self, limit: float) -> float:
        """Move a limit towards the loss instead of widening the interval."""
        return self.loss + (limit - self.loss) / self.widening

    def _widened(self, found: stats.Estimate,
                 level: float) -> tuple[float, float]:
        low, high = (self.loss + (end - self.loss) * self.widening
                     for end in found.ends(1 - self.share * (1 - level)))
        return low, high


@dataclasses.dataclass(frozen=True, slots=True)
class JudgingContext:
    """What the strictness of the conditions depends on.

    :ivar limit: the largest acceptable loss, None if there is no bound
    :ivar figures: number of figures that are judged together; of many figures,
        one nearly always looks skewed by chance
    """

    limit: float | None = None
    figures: int = 1

    def find_required_distance(self, count: int) -> float:
        """Return the distance from the bound that a loss must exceed."""
        if self.limit is None:
            return 0.0
        return DISTANCE * min(abs(self.limit), _BOUND) / math.sqrt(count)

    def allow(self, errors: float) -> float:
        """Return how many standard errors are allowed for several figures."""
        by_chance = 1 - statistics.NormalDist().cdf(errors)
        return stats.quantile(by_chance / self.figures)


def estimate(losses: Sequence[float], usual: Sequence[float],
             mean_loss: float, context: JudgingContext,
             obstacle: str | None = None, share: float = 1.0, *,
             varies_more: bool = False) -> Losses:
    """Estimate both losses from at least one pair.

    :param losses: in the order of measurement
    :param usual: the same with stragglers replaced
    :param mean_loss: the logarithm of the ratio of the mean times, without
        stragglers
    :param share: the share of a single run's chance of an error
    :param varies_more: see :func:`varies_more`, for losses of one boot
    """
    count = len(losses)
    correlation = stats.autocorrelation(usual, 1)
    detectable = context.allow(_DETECTABLE_CORRELATION) / math.sqrt(count)
    largest = detectable - 1 / count
    if correlation <= largest:
        # Of the guest alone, the largest correlation is assumed that does not
        # show; a correlation of the machine affects both sides of a pair.
        correlation = max(0.0, largest) if varies_more else 0.0
    mean = mean_time.estimate(usual, mean_loss,
                              context.allow(mean_time.SKEWED))
    return Losses(
        signed_rank.estimate(losses),
        None if mean is None else signed_rank.estimate_by_signs(losses),
        mean, _widen(min(correlation, stats.LARGEST_CORRELATION)),
        context.find_required_distance(count), obstacle, share)


def _widen(correlation: float) -> float:
    """Return the factor by which autoregressive noise widens an interval."""
    return math.sqrt((1 + correlation) / (1 - correlation))


def explain_correlation(losses: Sequence[float],
                        context: JudgingContext) -> str | None:
    """Return why correlated losses decide nothing, None if they may.

    :param losses: in the order of measurement, without stragglers
    """
    distances = range(1, max(1, len(losses) // 10) + 1)
    found = statistics.fmean(stats.autocorrelation(losses, distance)
                             for distance in distances)
    if found <= context.allow(_MAX_CORRELATION) / math.sqrt(len(losses)):
        return None
    return (f'the losses resemble those before them (correlation {found:.2f}),'
            ' so that they count as very few: something changes slowly')


def find_transient(losses: Sequence[float], context: JudgingContext) -> int:
    """Count the first losses that differ from all later ones.

    A guest that still warms up, or that heats up, has such losses. They are
    found only if those after them do not resemble each other.

    :param losses: in the order of measurement, without stragglers
    :returns: fewer than a third of the losses; 0 if there are none
    """
    most = len(losses) // 3
    middle = statistics.median(losses[most:])
    far = _TRANSIENT * max(stats.robust_deviation(losses[most:]), stats.EQUAL)
    first = 0
    while first < most and abs(losses[first] - middle) > far:
        first += 1
    if first in (0, most) or explain_correlation(losses[first:], context):
        return 0
    return first


def varies_more(native: Sequence[float], guest: Sequence[float]) -> bool:
    """Whether the guest may change slowly by itself.

    :param native: logarithms of the time per work, without stragglers, of at
        least two pairs
    :param guest: the same for the guest
    """
    return statistics.stdev(guest) > _SPREAD * statistics.stdev(native)


def explain_spread(native: Sequence[float], guest: Sequence[float],
                   distance: float) -> str | None:
    """Return why a few pairs of one boot decide nothing, None if they may.

    :param native: see :func:`varies_more`
    :param guest: see :func:`varies_more`
    :param distance: of the loss from the bound
    """
    if len(native) >= _SHOWS_CHANGES or not varies_more(native, guest):
        return None
    if abs(distance) > _FAR * statistics.stdev(guest):
        return None
    return ('the guest varies more than twice as much as native, and fewer '
            f'than {_SHOWS_CHANGES} pairs of one boot do not show whether it '
            'changes slowly by itself, which looks like a loss')
