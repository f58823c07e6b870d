# SPDX-License-Identifier: Apache-2.0

"""Estimate the loss of the mean time if losses are skewed.

It is judged by Student's t. A correction for skewness decides no case better
that was simulated, and takes most decisions from runs of many pairs.
"""

import math
import statistics
from collections.abc import Sequence

from hpcvirt.bench.analysis import stats

#: Losses are skewed if their skewness, or the distance of their mean from
#: their median, exceeds this number of standard errors of normal losses.
SKEWED = 2.0
_MEDIAN_ERROR = math.sqrt(math.pi / 2 - 1)


def estimate(losses: Sequence[float], mean_loss: float,
             errors: float) -> stats.Normal | None:
    """Estimate the mean time of skewed losses, None if they are not skewed.

    :param mean_loss: the logarithm of the ratio of the mean times
    :param errors: number of standard errors that do not show skewness
    """
    count = len(losses)
    mean = statistics.fmean(losses)
    variance = statistics.pvariance(losses, mean)
    if count <= 2 or math.sqrt(variance) <= stats.EQUAL:
        return None
    skewness = statistics.fmean(
        (loss - mean) ** 3 for loss in losses) / variance ** 1.5
    deviation = statistics.stdev(losses, mean)
    apart = (mean - statistics.median(losses)) / deviation
    skewness_error = math.sqrt(
        6 * (count - 2) / ((count + 1) * (count + 3)))
    apart_error = _MEDIAN_ERROR * math.sqrt((1 - 2 / count) / count)
    if (abs(skewness) <= errors * skewness_error
            and abs(apart) <= errors * apart_error):
        return None
    return stats.Normal(mean_loss, deviation / math.sqrt(count), count - 1)
