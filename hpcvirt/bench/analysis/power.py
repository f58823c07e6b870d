# SPDX-License-Identifier: Apache-2.0

"""Compute what a run can decide, before it begins or after it was undecided.

The distance from the bound at which a guest is decided depends on the noise of
its runs, on the number of pairs (or of boots, if each boot counts once), and
on the number of figures that are judged together. It is known in advance for
log-normal noise; other noise needs more pairs.
"""

import bisect
import math
import statistics

from hpcvirt.bench.analysis import interim_analyses
from hpcvirt.bench.analysis import losses
from hpcvirt.bench.analysis import signed_rank
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.model import judgement

#: The efficiency of signed ranks compared with the mean.
_EFFICIENCY = 0.955
#: Few losses need a distance that is larger by the square of the quantile /
#: (this number x losses), within 5 % of simulations.
_FEW = 3.2
_NORMAL = statistics.NormalDist()


def find_reach(count: int, figures: int = 1) -> float:
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
        return _NORMAL.inv_cdf(interim_analyses.POWER ** (1 / count))
    quantile = stats.quantile(signed_rank.find_chance(count, rank_sum))
    return ((quantile + _NORMAL.inv_cdf(interim_analyses.POWER))
            / math.sqrt(_EFFICIENCY * count)
            * (1 + quantile ** 2 / (_FEW * count)))


def find_decided(interval: judgement.Interval, limit: float,
                 room: float = 0.0) -> tuple[float, float]:
    """Return the ratios that such an interval decides in 4 of 5 cases.

    :param limit: the ratio of the bound
    :param room: a loss that is nearer to the bound than this is not decided
    :returns: the ratio below the limit and the ratio above it
    """
    half = math.log(interval.high / interval.low) / 2
    distance = half * (_NORMAL.inv_cdf(interim_analyses.POWER)
                       / _NORMAL.inv_cdf(interval.level)) + max(room, half)
    return limit * math.exp(-distance), limit * math.exp(distance)


def find_margin(variation: float, count: int, figures: int,
                pairs: int, limit: float) -> float:
    """Return the distance from its bound that decides a guest, 4 of 5 times.

    :param variation: coefficient of variation of a single run, on both sides
    :param count: number of pairs, or of boots without noise of their own
    :param pairs: number of pairs
    :param limit: the largest acceptable loss
    """
    error = variation * math.sqrt(2 / max(1, pairs))
    return max(find_reach(count, figures) * error * math.sqrt(count),
               losses.Caution(limit).find_room(max(1, count))
               + _NORMAL.inv_cdf(interim_analyses.POWER) * error)


def find_pairs(variation: float, distance: float, figures: int) -> int | None:
    """Return the smallest number of pairs that decides a guest without loss.

    :param distance: the loss at the bound
    :returns: None if it is more than
        :data:`hpcvirt.bench.analysis.interim_analyses.MAX_PAIRS`
    """
    most = interim_analyses.MAX_PAIRS
    found = bisect.bisect_left(
        range(most + 1), True, key=lambda pairs: find_margin(
            variation, pairs, figures, pairs, distance) <= distance)
    return found if found <= most else None
