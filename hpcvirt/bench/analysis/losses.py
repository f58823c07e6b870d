# SPDX-License-Identifier: Apache-2.0

"""Estimate the two losses of a guest: of a typical run, and of the mean time.

The loss of a *typical run* is the median of the losses of pairs; the loss of
the *mean time* tells how much longer users wait. Both are equal if losses are
distributed symmetrically around the true one. Then the signed-rank test
(:mod:`hpcvirt.bench.analysis.signed_rank`) judges both, and no other test
decides more often. If losses are visibly skewed, for example because the guest
has two levels, the two losses differ and are judged separately:

* the loss of a typical run also by the sign test, which holds for any
  distribution;
* the loss of the mean time by :mod:`hpcvirt.bench.analysis.mean_time`.

A few runs do not show all noise. The following conditions keep the error rates
where noise may violate them; ``benchmarks/verdict.py`` shows the rates.

* **Distance.** Rare runs that were not measured may change the mean, and
  correlated runs look more precise than they are. Therefore a loss that is
  nearer to the bound than :data:`DISTANCE` times the bound, divided by the
  square root of the number of losses, is not decided.
* **Resemblance.** If losses are correlated with those before them, the
  interval is widened as for autoregressive noise. If the correlation is high,
  nothing is decided.
* **Own noise.** A few pairs hardly show a correlation. Slow changes of the
  machine affect both sides of a pair, but slow changes of the guest alone look
  like a loss. Therefore the loss of a guest that varies more than native is
  decided only if it is far from the bound compared with the guest's own noise;
  the higher the correlation, the farther.

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
_RESEMBLE = 1.5
#: Nothing is decided if the mean correlation over a tenth of all distances is
#: higher than this, divided in the same way.
_RESEMBLE_MUCH = 1.5
#: The guest has own noise if the logarithm of the ratio of both standard
#: deviations exceeds this number of standard errors.
_OWN = 2.0
#: Such a guest has to be farther from the bound than its own noise times the
#: larger one of (correlation + _UNSEEN) x _FEW / (n^2 - 10), which keeps the
#: promise for AR(1) up to 0.9, and of the standard errors that the interval
#: would have with a correlation of _HIDDEN, or of _SEEN / sqrt(n) if that is
#: smaller: a larger one would show.
_UNSEEN = 0.4
_FEW = 460.0
_HIDDEN = 0.5
_SEEN = 3.0


@dataclasses.dataclass(frozen=True, slots=True)
class Losses:
    """The evidence of some pairs about both losses.

    :ivar mean: the loss of the mean time, None if it is that of a typical run
    :ivar widening: the factor by which correlation widens the interval
    :ivar room: a loss that is nearer to the bound than this is not decided
    :ivar has_own_noise: whether the guest's own noise determines the room
    :ivar resemblance: why correlated losses decide nothing, None if they may
    """

    typical: stats.Estimate
    mean: mean_time.MeanTime | None = None
    widening: float = 1.0
    room: float = -math.inf
    has_own_noise: bool = False
    resemblance: str | None = None

    @property
    def loss(self) -> float:
        """The loss of a typical run."""
        return self.typical.loss

    def ends(self, level: float = stats.LEVEL) -> tuple[float, float]:
        """Return both ends of the interval of the loss of a typical run."""
        return self._widened(self.typical, level)

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
        return min(self._p_within(self.typical, limit),
                   max(self._p_within(self.mean or self.typical, limit),
                       self._p_beyond(self.typical, limit)))

    def _p_beyond(self, found: stats.Estimate, limit: float) -> float:
        return (1.0 if limit - found.loss < self.room
                else found.p_beyond(self._narrowed(limit)))

    def _p_within(self, found: stats.Estimate, limit: float) -> float:
        return (1.0 if found.loss - limit < self.room
                else found.p_within(self._narrowed(limit)))

    def _narrowed(self, limit: float) -> float:
        """Move a limit towards the loss instead of widening the interval."""
        return self.loss + (limit - self.loss) / self.widening

    def _widened(self, found: stats.Estimate,
                 level: float) -> tuple[float, float]:
        low, high = (self.loss + (end - self.loss) * self.widening
                     for end in found.ends(level))
        return low, high


@dataclasses.dataclass(frozen=True, slots=True)
class Caution:
    """What the strictness of the conditions depends on.

    :ivar limit: the largest acceptable loss, None if there is no bound
    :ivar figures: number of figures that are judged together; of many figures,
        one nearly always looks skewed by chance
    :ivar looks: number of verdicts on growing numbers of boots, each of which
        may be wrong because the loss is near the bound
    """

    limit: float | None = None
    figures: int = 1
    looks: int = 1

    def find_room(self, count: int) -> float:
        """Return the distance from the bound that a loss must exceed."""
        if self.limit is None:
            return 0.0
        return (DISTANCE * min(abs(self.limit), _BOUND) / math.sqrt(count)
                * stats.quantile(stats.ALPHA / self.looks)
                / stats.quantile(stats.ALPHA))

    def find_own_noise(self, native: Sequence[float],
                       guest: Sequence[float]) -> float:
        """Return the standard deviation that native does not explain.

        :param native: logarithms of the values, of at least two pairs
        """
        by_chance = math.exp(
            2 * self.allow(_OWN) / math.sqrt(len(native) - 1))
        return math.sqrt(max(0.0, statistics.variance(guest)
                             - by_chance * statistics.variance(native)))

    def find_own_room(self, own: float, correlation: float,
                      count: int) -> float:
        """Return the distance that own noise requires, see :meth:`find_room`.

        :param own: see :meth:`find_own_noise`
        :param correlation: of the losses with those before them
        """
        if self.limit is None:
            return 0.0
        errors = stats.quantile(stats.ALPHA / self.figures)
        hidden = min(_HIDDEN, _SEEN / math.sqrt(count))
        return own * errors * max(
            (correlation + _UNSEEN) * _FEW / max(1, count ** 2 - 10)
            / stats.quantile(stats.ALPHA), _widen(hidden) / math.sqrt(count))

    def allow(self, errors: float) -> float:
        """Return how many standard errors are allowed for several figures."""
        by_chance = 1 - statistics.NormalDist().cdf(errors)
        return stats.quantile(by_chance / self.figures)


def estimate(losses: Sequence[float], usual: Sequence[float],
             mean_loss: float, caution: Caution, own: float = 0.0,
             resemblance: str | None = None) -> Losses:
    """Estimate both losses from at least one pair.

    :param losses: in the order of measurement
    :param usual: the same with stragglers replaced
    :param mean_loss: the logarithm of the ratio of the mean times, without
        stragglers
    :param own: noise of the guest alone
    """
    count = len(losses)
    correlation = stats.autocorrelation(usual, 1)
    room = caution.find_room(count)
    own_room = caution.find_own_room(own, correlation, count)
    if correlation + 1 / count <= caution.allow(_RESEMBLE) / math.sqrt(count):
        correlation = 0.0
    typical: stats.Estimate = signed_rank.estimate(losses)
    mean = mean_time.estimate(usual, mean_loss,
                              caution.allow(mean_time.SKEWED))
    if mean is not None:
        typical = stats.Cautious((signed_rank.estimate_by_signs(losses),
                                  typical))
    return Losses(
        typical, mean, _widen(min(correlation, stats.LARGEST_CORRELATION)),
        max(room, own_room), own_room > room, resemblance)


def _widen(correlation: float) -> float:
    """Return the factor by which autoregressive noise widens an interval."""
    return math.sqrt((1 + correlation) / (1 - correlation))


def explain_resemblance(losses: Sequence[float],
                        caution: Caution) -> str | None:
    """Return why correlated losses decide nothing, None if they may.

    :param losses: in the order of measurement, without stragglers
    """
    distances = range(1, max(1, len(losses) // 10) + 1)
    found = statistics.fmean(stats.autocorrelation(losses, distance)
                             for distance in distances)
    if found <= caution.allow(_RESEMBLE_MUCH) / math.sqrt(len(losses)):
        return None
    return (f'the losses resemble those before them (correlation {found:.2f}),'
            ' so that they count as very few: something changes slowly')


def find_least(distance: float, limit: float, own: float = 0.0) -> int:
    """Return how many losses can decide at a distance from the bound.

    :param own: noise of the guest alone
    """
    own_room = _widen(_HIDDEN) * stats.quantile(stats.ALPHA) * own
    return math.ceil(max(
        (max(Caution(limit).find_room(1), own_room) / distance) ** 2,
        math.sqrt(_FEW * _UNSEEN * own / distance + 10)))
