# SPDX-License-Identifier: Apache-2.0

"""Estimate the loss in a guest from a few noisy pairs.

A *loss* is the logarithm of a ratio, with the sign chosen so that a positive
number means a slower guest: ln(native / guest) for a rate, ln(guest / native)
for a time. On this scale a slowdown has the same size for rates and times,
and ratios average correctly. Losses are compared with a limit, the largest
acceptable loss.

Pairs are judged by :mod:`hpcvirt.bench.analysis.signed_rank`, sides that were
not measured in pairs by Student's t distribution. It comes from scipy, which
is imported for the first such verdict only: it takes as long to load as
everything else.

Intervals instead of single runs: [Georges-2007]. Repetitions and ratios:
[Kalibera-Jones-2013].
"""

import dataclasses
import functools
import itertools
import math
import operator
import statistics
from collections.abc import Sequence
from typing import Protocol

from hpcvirt import exception
from hpcvirt.bench.model import outcome

#: The promised chance that a guest exactly at the bound passes, and that it
#: fails.
PROMISED = 0.05
#: What a verdict spends of it, which is less: the tail takes 0.25 %
#: (:mod:`hpcvirt.bench.analysis.stragglers`), and noise that a run leaves for
#: the next one needs a margin.
ALPHA = 0.0425

#: Confidence of each end of an interval.
LEVEL = 1 - ALPHA

#: Losses closer than this are equal: it is far below the resolution of any
#: clock, and above the rounding errors of floating-point sums.
EQUAL = 1e-12

#: Makes the median absolute deviation of normal noise its standard deviation.
_NORMAL = 1.4826

#: The correlation of successive runs is underestimated from a few of them, by
#: (a + b x correlation) / runs. With these figures the error rates hold for
#: correlations up to 0.5 and at least 5 runs in each side.
_BIAS = (2.0, 4.0)
#: A stronger correlation than this cannot be told from a trend.
LARGEST_CORRELATION = 0.9


class Estimate(Protocol):
    """A loss and its uncertainty."""

    @property
    def loss(self) -> float:
        """The most plausible loss."""

    def ends(self, level: float = LEVEL) -> tuple[float, float]:
        """Return both ends of the interval of the loss.

        :param level: confidence of each end alone
        """

    def p_beyond(self, limit: float) -> float:
        """Return the p-value of a loss of at least the limit.

        Its one-sided test is rejected for a PASS.
        """

    def p_within(self, limit: float) -> float:
        """Return the p-value of a loss of at most the limit.

        Its one-sided test is rejected for a FAIL.
        """


@dataclasses.dataclass(frozen=True, slots=True)
class Cautious:
    """The loss of the first of several estimates; all must reject a test."""

    estimates: tuple[Estimate, ...]

    @property
    def loss(self) -> float:
        return self.estimates[0].loss

    def ends(self, level: float = LEVEL) -> tuple[float, float]:
        low, high = zip(*(each.ends(level) for each in self.estimates),
                        strict=True)
        return min(low), max(high)

    def p_beyond(self, limit: float) -> float:
        return max(each.p_beyond(limit) for each in self.estimates)

    def p_within(self, limit: float) -> float:
        return max(each.p_within(limit) for each in self.estimates)


#: About the largest exponent of e with a result.
EXTREME = 700.0


@dataclasses.dataclass(frozen=True, slots=True)
class Normal:
    """A mean loss with Student's t distribution.

    :ivar error: standard error of the mean; 0 if nothing varied
    :ivar freedom: degrees of freedom
    :ivar least_p: no p-value is smaller: that of ranks if the sides do not
        overlap, since t has none of its own for noise that is not normal
    :raises Unreachable: by each method, if scipy is not installed
    """

    loss: float
    error: float
    freedom: float
    least_p: float = 0.0

    def ends(self, level: float = LEVEL) -> tuple[float, float]:
        if self.error == 0:
            return self.loss, self.loss
        reach = _quantile(level, self.freedom) * self.error
        return self.loss - reach, self.loss + reach

    def p_beyond(self, limit: float) -> float:
        return max(self.least_p, self._below(limit))

    def p_within(self, limit: float) -> float:
        return max(self.least_p, 1 - self._below(limit))

    def _below(self, limit: float) -> float:
        if self.error == 0:
            return 0.0 if self.loss <= limit + EQUAL else 1.0
        return float(_special().stdtr(
            self.freedom, (self.loss - limit) / self.error))


def loss_of_ratio(ratio: float, direction: outcome.Direction) -> float:
    """Convert a ratio guest / native, which is above 0, to a loss."""
    return (-math.log(ratio) if direction is outcome.Direction.UP
            else math.log(ratio))


def ratio_of_loss(value: float, direction: outcome.Direction) -> float:
    """Convert a loss to a ratio guest / native.

    An interval of two pairs may end beyond all floating-point numbers.
    """
    exponent = -value if direction is outcome.Direction.UP else value
    return math.exp(max(-EXTREME, min(exponent, EXTREME)))


def estimate_unpaired(native: Sequence[float],
                      guest: Sequence[float]) -> Normal:
    """Estimate the mean loss from at least two runs in each side.

    Uses Welch's interval: the sides may vary by different amounts. Each side
    was measured by itself, so that a slow change of its machine looks like a
    loss. How much runs resemble those before them tells how slowly it
    changes, and how many runs count as one.

    :param native: logarithms of the time per work, in the order of measurement
    """
    sides = (native, guest)
    mean = statistics.fmean(guest) - statistics.fmean(native)
    correlation = statistics.fmean(map(_correlation, sides))
    runs_as_one = (1 + correlation) / (1 - correlation)
    counts = [max(2.0, len(side) / runs_as_one) for side in sides]
    shares = [statistics.variance(side) * runs_as_one / len(side)
              for side in sides]
    total = sum(shares)
    least_p = 1 / math.comb(len(native) + len(guest), len(guest))
    if math.sqrt(total) <= EQUAL:
        return Normal(mean, 0.0, len(native) + len(guest) - 2, least_p)
    freedom = total ** 2 / sum(
        share ** 2 / (count - 1)
        for share, count in zip(shares, counts, strict=True))
    return Normal(mean, math.sqrt(total), freedom, least_p)


def _correlation(values: Sequence[float]) -> float:
    """Estimate how much values resemble those before them, 0 to 0.9."""
    found = autocorrelation(values, 1)
    if found:
        found += (_BIAS[0] + _BIAS[1] * found) / len(values)
    return min(max(found, 0.0), LARGEST_CORRELATION)


def autocorrelation(values: Sequence[float], distance: int) -> float:
    """Return the correlation of values with those at a distance before them.

    :returns: 0 if all values are equal
    """
    mean = statistics.fmean(values)
    deviations = [value - mean for value in values]
    total = sum(value * value for value in deviations)
    if math.sqrt(total) <= EQUAL:
        return 0.0
    return math.fsum(
        map(operator.mul, deviations, deviations[distance:])) / total


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjust p-values by Holm's method [Holm-1979].

    If each adjusted value is compared with the level, the chance of any false
    rejection is at most the level, however the tests depend on each other.
    """
    count = len(p_values)
    order = sorted(range(count), key=p_values.__getitem__)
    adjusted = itertools.accumulate(
        (min(1.0, (count - rank) * p_values[index])
         for rank, index in enumerate(order)), max)
    return tuple(p for _, p in sorted(zip(order, adjusted, strict=True)))


def quantile(chance: float) -> float:
    """Return what a normal value exceeds with this chance."""
    return statistics.NormalDist().inv_cdf(1 - chance)


def robust_deviation(values: Sequence[float]) -> float:
    """Estimate the standard deviation from the median absolute deviation."""
    middle = statistics.median(values)
    return _NORMAL * statistics.median(
        abs(value - middle) for value in values)


@functools.lru_cache(maxsize=4096)
def _quantile(part: float, freedom: float) -> float:
    """Return the value that t stays below with probability ``part``."""
    return float(_special().stdtrit(freedom, part))


@functools.cache
def _special():  # type: ignore[no-untyped-def]
    try:
        import scipy.special  # noqa: PLC0415 - see the module's docstring
    except ImportError as exc:
        raise exception.Unreachable(
            'verdicts need scipy: install hpcvirt[bench]') from exc
    return scipy.special
