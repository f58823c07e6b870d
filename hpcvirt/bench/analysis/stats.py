# SPDX-License-Identifier: Apache-2.0

"""Estimate the loss of a guest from a few noisy runs.

A *loss* is the logarithm of a ratio, with the sign chosen so that a positive
number means a slower guest: ln(native / guest) for a rate, ln(guest / native)
for a time. On this scale, a slowdown has the same size for rates and times,
and ratios average correctly. Losses are compared with a limit, the largest
acceptable loss.

Pairs are judged by :mod:`hpcvirt.bench.analysis.signed_rank`, unpaired sides
by Student's t distribution. This needs scipy, which is imported only for the
first such verdict, because it takes as long to load as everything else.

[Georges-2007] explains why intervals are needed instead of single runs;
[Kalibera-Jones-2013] covers repetitions and ratios.
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

#: The promised largest chance that a guest exactly at the bound passes, and
#: that it fails.
PROMISED = 0.05
#: The part of PROMISED that a verdict spends. The tail takes 0.25 %
#: (:mod:`hpcvirt.bench.analysis.stragglers`), and correlated noise needs a
#: margin.
ALPHA = 0.0425

#: Confidence of each end of an interval.
LEVEL = 1 - ALPHA

#: Losses that differ by less are equal. This is far below the resolution of
#: any clock, and above the rounding errors of floating-point sums.
EQUAL = 1e-12

#: Standard deviation / median absolute deviation of normal noise.
_NORMAL = 1.4826

#: A few runs underestimate the correlation of successive runs by
#: (a + b x correlation) / runs. With these figures, the error rates hold for
#: correlations up to 0.5 and at least 5 runs on each side.
_BIAS = (2.0, 4.0)
#: A higher correlation than this cannot be distinguished from a trend.
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

        A PASS rejects this one-sided hypothesis.
        """

    def p_within(self, limit: float) -> float:
        """Return the p-value of a loss of at most the limit.

        A FAIL rejects this one-sided hypothesis.
        """


@dataclasses.dataclass(frozen=True, slots=True)
class AllMustReject:
    """The first of several estimates; all must reject a hypothesis."""

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


#: About the largest exponent of e that does not overflow.
EXTREME = 700.0


@dataclasses.dataclass(frozen=True, slots=True)
class Normal:
    """A mean loss with Student's t distribution.

    :ivar error: standard error of the mean; 0 if nothing varied
    :ivar freedom: degrees of freedom
    :ivar least_p: the smallest p-value, which is that of ranks if the sides do
        not overlap, because t may give too small ones for other noise
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
    """Convert a loss to a ratio guest / native, without overflow."""
    exponent = -value if direction is outcome.Direction.UP else value
    return math.exp(max(-EXTREME, min(exponent, EXTREME)))


def estimate_unpaired(native: Sequence[float],
                      guest: Sequence[float]) -> Normal:
    """Estimate the mean loss from at least two runs on each side.

    Welch's interval allows for different variances of the sides. A slow change
    of the machine of one side looks like a loss. Therefore the correlation of
    successive runs determines how many runs count as one.

    :param native: logarithms of the time per work, in the order of measurement
    :param guest: the same for the guest
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
    """Estimate the correlation of successive values, 0 to 0.9."""
    found = autocorrelation(values, 1)
    if found:
        found += (_BIAS[0] + _BIAS[1] * found) / len(values)
    return min(max(found, 0.0), LARGEST_CORRELATION)


def autocorrelation(values: Sequence[float], distance: int) -> float:
    """Return the correlation of values with those at a distance before them.

    It is 0 if all values are equal.
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

    If adjusted values are compared with a level, the chance of any false
    rejection is at most this level, even if the tests depend on each other.
    """
    count = len(p_values)
    order = sorted(range(count), key=p_values.__getitem__)
    adjusted = itertools.accumulate(
        (min(1.0, (count - rank) * p_values[index])
         for rank, index in enumerate(order)), max)
    return tuple(p for _, p in sorted(zip(order, adjusted, strict=True)))


def quantile(chance: float) -> float:
    """Return the value that a standard normal one exceeds with this chance."""
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
