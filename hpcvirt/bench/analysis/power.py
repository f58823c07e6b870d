# SPDX-License-Identifier: Apache-2.0

"""Compute what a run can decide, before it begins or after it was undecided.

The distance from the bound at which a guest is decided depends on the noise of
its runs, on the number of pairs (or of boots, if each boot counts once), and
on the number of figures that are judged together. It is known in advance for
log-normal noise; other noise needs more pairs.
"""

import math
import statistics
from collections.abc import Callable

from hpcvirt.bench.analysis import attempts
from hpcvirt.bench.analysis import losses
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import signed_rank
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record

#: The probability that the pairs decide, if the ratio is as estimated.
POWER = 0.8
#: If 5 % of all runs are stragglers, this number of pairs has some with a
#: probability of 95 %.
STRAGGLERS = 60
#: The most pairs to suggest; beyond this number, the noise must be reduced.
MAX_PAIRS = 200
#: The coefficient of variation of single runs for which a run is planned.
PLANNED_VARIATION = 0.01
#: The efficiency of signed ranks compared with the mean.
_EFFICIENCY = 0.955
#: Few losses need a distance that is larger by the square of the quantile /
#: (this number x losses), within 5 % of simulations.
_FEW = 3.2
_NORMAL = statistics.NormalDist()


def find_detectable_distance(count: int, figures: float = 1) -> float:
    """Return the distance from its bound that decides a loss in 4 of 5 cases.

    :param count: number of losses
    :param figures: number of figures that are judged together, all at the
        same distance from their bounds
    :returns: the distance in standard deviations of a loss; infinite if there
        are too few losses
    """
    rank_sum = signed_rank.find_critical(count, stats.ALPHA / figures)
    if rank_sum < 0:
        return math.inf
    if rank_sum == 0:
        # All losses have to be on the same side.
        return _NORMAL.inv_cdf(POWER ** (1 / count))
    quantile = stats.quantile(signed_rank.find_chance(count, rank_sum))
    return ((quantile + _NORMAL.inv_cdf(POWER))
            / math.sqrt(_EFFICIENCY * count)
            * (1 + quantile ** 2 / (_FEW * count)))


def find_margin(variation: float, count: int, figures: float,
                pairs: int, limit: float) -> float:
    """Return the distance from its bound that decides a guest, 4 of 5 times.

    :param variation: coefficient of variation of a single run, on both sides
    :param count: number of pairs, or of boots without noise of their own
    :param pairs: number of pairs
    :param limit: the largest acceptable loss
    """
    deviation = variation * math.sqrt(2 / max(1, pairs)) * math.sqrt(count)
    return _find_margin(deviation, count, figures, limit)


def _find_margin(deviation: float, count: int, figures: float,
                 limit: float) -> float:
    """Return the same for losses with a known standard deviation."""
    detectable = find_detectable_distance(count, figures) * deviation
    required = losses.JudgingContext(limit).find_required_distance(
        max(1, count))
    error = deviation / math.sqrt(max(1, count))
    return max(detectable, required + _NORMAL.inv_cdf(POWER) * error)


def find_pairs(variation: float, distance: float, limit: float, figures: float,
               count_units: Callable[[int], int] = int) -> int | None:
    """Return the least number of pairs that passes a good guest, 4 of 5 times.

    :param distance: of the loss of the guest from the bound
    :param limit: the largest acceptable loss
    :param count_units: returns the number of losses of a number of pairs,
        which is smaller if each boot counts once
    :returns: None if it is more than :data:`MAX_PAIRS`
    """
    for pairs in range(sample_pairs.MIN_PASS_PAIRS, MAX_PAIRS + 1):
        if find_margin(variation, count_units(pairs), figures, pairs,
                       limit) <= distance:
            return pairs
    return None


def estimate_pairs(judged: judgement.Judgement, run: record.Run,
                   figures: int) -> int | None:
    """Estimate how many pairs of a further run decide, with 80 % probability.

    If the ratio and the noise are as estimated, that many pairs decide. A
    further run on a known subject adds its pairs to the evidence, for a
    smaller share of the errors; any other run is judged by itself.

    :param run: the run in which the figure was measured
    :param figures: number of figures that are judged together (Holm)
    :returns: a multiple of 5, more than were measured; None if it exceeds
        :data:`MAX_PAIRS`, as for a guest that is exactly at its bound
    """
    if judged.interval is None or judged.limit is None or not judged.pairs:
        return None
    least = max(judged.pairs + 1, sample_pairs.MIN_PASS_PAIRS)
    if (judged.tail
            and judged.tail.result is judgement.VerdictResult.INCONCLUSIVE):
        least = max(least, STRAGGLERS)
    limit = math.log(judged.limit)
    ratio = math.log(judged.interval.ratio)
    end = judged.interval.low if ratio > limit else judged.interval.high
    units = judged.launches or judged.pairs
    evidence = attempts.gather(run)
    reached = stats.quantile(evidence.share * stats.ALPHA)
    error = abs(math.log(end) - ratio) / reached
    distance = abs(ratio - limit)
    if distance <= stats.EQUAL:
        return None
    further = attempts.share(len(judged.earlier) + 2) if run.subject else 1.0
    deviation = error * math.sqrt(units)
    pairs = least
    while pairs <= MAX_PAIRS:
        count = max(1, pairs * units // judged.pairs)
        if _find_margin(deviation, count, figures / further,
                        limit) <= distance:
            break
        pairs += 1
    if run.subject:
        pairs = max(pairs - judged.pairs, sample_pairs.MIN_PAIRS)
    return None if pairs > MAX_PAIRS else 5 * math.ceil(pairs / 5)
