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

"""What a few noisy pairs say about the loss in a guest.

A *loss* is the logarithm of a ratio, turned so that a positive number is a
guest that does worse: ln(native / guest) for a rate, ln(guest / native) for
a time. On this scale a slowdown has the same size whichever way the metric
counts, and ratios average as they should. Losses are compared with a limit,
the loss that is still acceptable.

Georges, Buytaert and Eeckhout, OOPSLA 2007, on intervals instead of single
runs; Kalibera and Jones, ISMM 2013, on repetitions and ratios.
"""

import dataclasses
import math
import statistics
from collections.abc import Sequence

from hpcvirt.bench.analysis import student
from hpcvirt.bench.model import outcome

#: Confidence of each end of an interval alone: one-sided 95 %, which makes
#: 90 % two-sided. The two errors, a false PASS and a false FAIL, are at most
#: 5 % each.
LEVEL = 0.95

#: Losses closer than this are equal: far below what any clock resolves,
#: above what adding up floating point numbers loses.
EQUAL = 1e-12

#: The outlier rule, fixed here and nowhere else: see :func:`disturbed`. With
#: 5 deviations calm noise of 10 pairs would lose a pair in 2 % of all runs,
#: which makes a false FAIL 5.6 % likely instead of 5.1 % (60,000 simulated
#: runs); with 10 it makes no difference.
OUTLIER_DEVIATIONS = 10.0
OUTLIER_LEAST_PAIRS = 10
OUTLIER_LARGEST_PART = 0.1

#: Makes the median absolute deviation of normal noise its standard deviation.
_NORMAL = 1.4826


@dataclasses.dataclass(frozen=True, slots=True)
class Estimate:
    """A mean loss and how well it is known.

    :ivar error: standard error of the mean; 0 if nothing varied
    :ivar freedom: degrees of freedom
    """

    mean: float
    error: float
    freedom: float


def loss(native: float, guest: float,
         direction: outcome.Direction) -> float:
    """The loss of one pair; both values are above 0."""
    ratio = math.log(guest) - math.log(native)
    return -ratio if direction is outcome.Direction.UP else ratio


def loss_of_ratio(ratio: float, direction: outcome.Direction) -> float:
    """The loss that a ratio guest / native stands for."""
    return loss(1.0, ratio, direction)


def ratio_of_loss(value: float, direction: outcome.Direction) -> float:
    """The ratio guest / native that a loss stands for."""
    return math.exp(-value if direction is outcome.Direction.UP else value)


def paired(losses: Sequence[float]) -> Estimate:
    """Estimate from losses of pairs, two at least."""
    count = len(losses)
    spread = statistics.stdev(losses)
    if spread <= EQUAL:
        spread = 0.0
    return Estimate(statistics.fmean(losses), spread / math.sqrt(count),
                    count - 1)


def unpaired(native: Sequence[float], guest: Sequence[float],
             direction: outcome.Direction) -> Estimate:
    """Estimate from two independent sets of values, two at least in each.

    Welch's interval: the arms may vary by different amounts.
    """
    arms = [[loss_of_ratio(value, direction) for value in arm]
            for arm in (native, guest)]
    mean = statistics.fmean(arms[1]) - statistics.fmean(arms[0])
    shares = [statistics.variance(arm) / len(arm) for arm in arms]
    together = sum(shares)
    if math.sqrt(together) <= EQUAL:
        return Estimate(mean, 0.0, len(native) + len(guest) - 2)
    freedom = together ** 2 / sum(
        share ** 2 / (len(arm) - 1)
        for share, arm in zip(shares, arms, strict=True))
    return Estimate(mean, math.sqrt(together), freedom)


def ends(estimate: Estimate, level: float = LEVEL) -> tuple[float, float]:
    """Both ends of the interval of the loss; each holds with ``level``."""
    if estimate.error == 0:
        return estimate.mean, estimate.mean
    reach = student.quantile(level, estimate.freedom) * estimate.error
    return estimate.mean - reach, estimate.mean + reach


def p_beyond(estimate: Estimate, limit: float) -> float:
    """How well the data agree with a loss beyond the limit.

    The p-value of the one-sided test whose rejection is a PASS: at most 0.05
    exactly if the worse end of the interval is within the limit. The other
    test, whose rejection is a FAIL, has the complement.
    """
    if estimate.error == 0:
        return 0.0 if estimate.mean <= limit + EQUAL else 1.0
    return student.below((estimate.mean - limit) / estimate.error,
                         estimate.freedom)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Holm's adjustment: compare each result with the level as it is.

    With it the chance of even one false rejection among all is at most the
    level, whatever the dependence between the tests (Holm, Scandinavian
    Journal of Statistics 6, 1979).
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
    """Indices of pairs whose native run was disturbed: the outlier rule.

    A pair is set aside if its loss lies more than 10 standard deviations
    (estimated from the median absolute deviation) on the guest's better side
    of the median, there are 10 pairs at least, and at most a tenth of them
    would go. If more would go, noise is what the machine is like, and all
    stay. A pair in which the guest did badly always stays: a small fraction
    of runs that is ten times slower is what one has to find
    [CERN-HEPiX-2015].
    """
    count = len(losses)
    if count < OUTLIER_LEAST_PAIRS:
        return ()
    middle = statistics.median(losses)
    spread = _NORMAL * statistics.median(
        abs(value - middle) for value in losses)
    if spread <= EQUAL:
        return ()
    far = tuple(index for index, value in enumerate(losses)
                if middle - value > OUTLIER_DEVIATIONS * spread)
    return far if len(far) <= OUTLIER_LARGEST_PART * count else ()
