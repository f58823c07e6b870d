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

"""Estimate the loss in a guest from a few noisy pairs.

A *loss* is the logarithm of a ratio, with the sign chosen so that a positive
number means a slower guest: ln(native / guest) for a rate, ln(guest / native)
for a time. On this scale a slowdown has the same size for rates and times,
and ratios average correctly. Losses are compared with a limit, the largest
acceptable loss.

Student's t distribution comes from scipy, which is imported for the first
verdict only: it takes as long to load as everything else, and reading an
output does not need it.

Intervals instead of single runs: [Georges-2007]. Repetitions and ratios:
[Kalibera-Jones-2013].
"""

import dataclasses
import functools
import math
import statistics
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.bench.model import outcome

#: Confidence of each end of an interval alone: one-sided 95 %, which makes
#: 90 % two-sided. The two errors, a false PASS and a false FAIL, are at most
#: 5 % each.
LEVEL = 0.95

#: Losses closer than this are equal: it is far below the resolution of any
#: clock, and above the rounding errors of floating-point sums.
EQUAL = 1e-12

#: The outlier rule: see :func:`disturbed`. With 5 deviations, 2 % of all runs
#: of 10 undisturbed pairs would lose a pair, which raises the chance of a
#: false FAIL from 5.1 % to 5.6 % (60,000 simulated runs); with 10 it makes no
#: difference.
OUTLIER_DEVIATIONS = 10.0
OUTLIER_LEAST_PAIRS = 10
OUTLIER_LARGEST_PART = 0.1

#: Makes the median absolute deviation of normal noise its standard deviation.
_NORMAL = 1.4826


#: About the largest exponent of e with a result.
EXTREME = 700.0


@dataclasses.dataclass(frozen=True, slots=True)
class Estimate:
    """A mean loss and its uncertainty.

    :ivar error: standard error of the mean; 0 if nothing varied
    :ivar freedom: degrees of freedom
    """

    mean: float
    error: float
    freedom: float


def loss(native: float, guest: float,
         direction: outcome.Direction) -> float:
    """Calculate the loss of one pair; both values are above 0."""
    ratio = math.log(guest) - math.log(native)
    return -ratio if direction is outcome.Direction.UP else ratio


def loss_of_ratio(ratio: float, direction: outcome.Direction) -> float:
    """Convert a ratio guest / native to a loss."""
    return loss(1.0, ratio, direction)


def ratio_of_loss(value: float, direction: outcome.Direction) -> float:
    """Convert a loss to a ratio guest / native.

    An interval of two pairs may end beyond all floating-point numbers.
    """
    exponent = -value if direction is outcome.Direction.UP else value
    return math.exp(max(-EXTREME, min(exponent, EXTREME)))


def paired(losses: Sequence[float]) -> Estimate:
    """Estimate the mean loss of at least two pairs."""
    count = len(losses)
    spread = statistics.stdev(losses)
    if spread <= EQUAL:
        spread = 0.0
    return Estimate(statistics.fmean(losses), spread / math.sqrt(count),
                    count - 1)


def unpaired(native: Sequence[float], guest: Sequence[float],
             direction: outcome.Direction) -> Estimate:
    """Estimate the mean loss from at least two values in each arm.

    Uses Welch's interval: the arms may vary by different amounts.
    """
    arms = [[loss_of_ratio(value, direction) for value in arm]
            for arm in (native, guest)]
    mean = statistics.fmean(arms[1]) - statistics.fmean(arms[0])
    shares = [statistics.variance(arm) / len(arm) for arm in arms]
    total = sum(shares)
    if math.sqrt(total) <= EQUAL:
        return Estimate(mean, 0.0, len(native) + len(guest) - 2)
    freedom = total ** 2 / sum(
        share ** 2 / (len(arm) - 1)
        for share, arm in zip(shares, arms, strict=True))
    return Estimate(mean, math.sqrt(total), freedom)


def ends(estimate: Estimate, level: float = LEVEL) -> tuple[float, float]:
    """Return both ends of the interval of the loss.

    :param level: confidence of each end alone
    :raises Unreachable: if scipy is not installed
    """
    if estimate.error == 0:
        return estimate.mean, estimate.mean
    reach = _quantile(level, estimate.freedom) * estimate.error
    return estimate.mean - reach, estimate.mean + reach


def p_beyond(estimate: Estimate, limit: float) -> float:
    """Return the p-value of a loss beyond the limit.

    Its one-sided test is rejected for a PASS: the p-value is at most 0.05 if
    and only if the worse end of the interval is within the limit. The other
    test, which is rejected for a FAIL, has the complement.

    :raises Unreachable: if scipy is not installed
    """
    if estimate.error == 0:
        return 0.0 if estimate.mean <= limit + EQUAL else 1.0
    return float(_special().stdtr(
        estimate.freedom, (estimate.mean - limit) / estimate.error))


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjust p-values by Holm's method [Holm-1979].

    If each adjusted value is compared with the level, the chance of any false
    rejection is at most the level, however the tests depend on each other.
    """
    count = len(p_values)
    adjusted = [0.0] * count
    largest = 0.0
    order = sorted(range(count), key=lambda index: p_values[index])
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (count - rank) * p_values[index]))
        adjusted[index] = largest
    return tuple(adjusted)


def disturbed(losses: Sequence[float]) -> tuple[int, ...]:
    """Find the pairs whose native run was disturbed: the outlier rule.

    A pair is excluded if its loss lies more than 10 standard deviations
    (estimated from the median absolute deviation) below the median, there are
    at least 10 pairs, and at most a tenth of them would be excluded. If more
    would be, noise is normal on this machine, and all pairs stay. A pair in
    which the guest was slow always stays: a small fraction of runs that is
    ten times slower is exactly what has to be found [CERN-HEPiX-2015].

    :returns: indices
    """
    count = len(losses)
    if count < OUTLIER_LEAST_PAIRS:
        return ()
    middle = statistics.median(losses)
    spread = robust_deviation(losses)
    if spread <= EQUAL:
        return ()
    far = tuple(index for index, value in enumerate(losses)
                if middle - value > OUTLIER_DEVIATIONS * spread)
    return far if len(far) <= OUTLIER_LARGEST_PART * count else ()


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
