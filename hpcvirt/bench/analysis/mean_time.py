# SPDX-License-Identifier: Apache-2.0

"""Estimate the loss of the mean time if losses are skewed.

It is judged by Student's t with Hall's correction for skewness [Hall-1992].
"""

import dataclasses
import math
import statistics
from collections.abc import Sequence

from hpcvirt.bench.analysis import stats

#: Losses are skewed if their skewness, or the distance of their mean from
#: their median, exceeds this number of standard errors of normal losses.
SKEWED = 2.0
_MEDIAN_ERROR = math.sqrt(math.pi / 2 - 1)
#: Up to this skewness, no correction is needed.
_NO_SKEWNESS = 1e-6


@dataclasses.dataclass(frozen=True, slots=True)
class MeanTime:
    """The loss of the mean time if losses are skewed.

    :ivar loss: the mean
    :ivar deviation: standard deviation of a loss
    :ivar skewness: of the losses
    :ivar count: number of losses
    """

    loss: float
    deviation: float
    skewness: float
    count: int

    def ends(self, level: float = stats.LEVEL) -> tuple[float, float]:
        _, reach = stats.Normal(0.0, 1.0, self.count - 1).ends(level)
        low, high = (self._limit(reach), self._limit(-reach))
        return low, high

    def p_beyond(self, limit: float) -> float:
        return self._at(limit).p_beyond(0.0)

    def p_within(self, limit: float) -> float:
        return self._at(limit).p_within(0.0)

    def _at(self, limit: float) -> stats.Normal:
        """Return the corrected statistic at a limit."""
        distance = (self.loss - limit) / self.deviation
        if abs(self.skewness) > _NO_SKEWNESS:
            distance = ((1 + self.skewness * distance / 3) ** 3
                        - 1) / self.skewness + self.skewness / (6 * self.count)
        return stats.Normal(distance * math.sqrt(self.count), 1.0,
                            self.count - 1)

    def _limit(self, statistic: float) -> float:
        """Return the limit at which the statistic has this value."""
        distance = statistic / math.sqrt(self.count)
        if abs(self.skewness) > _NO_SKEWNESS:
            distance -= self.skewness / (6 * self.count)
            distance = 3 / self.skewness * (
                math.cbrt(1 + self.skewness * distance) - 1)
        return self.loss - distance * self.deviation


def estimate(losses: Sequence[float], mean_loss: float,
             errors: float) -> MeanTime | None:
    """Estimate the mean time of skewed losses, None if they are not skewed.

    :param errors: number of standard errors that do not show skewness
    """
    count, mean = len(losses), statistics.fmean(losses)
    variance = statistics.pvariance(losses, mean)
    if count <= 2 or math.sqrt(variance) <= stats.EQUAL:
        return None
    skewness = statistics.fmean(
        (loss - mean) ** 3 for loss in losses) / variance ** 1.5
    deviation = statistics.stdev(losses, mean)
    apart = (mean - statistics.median(losses)) / deviation
    if (abs(skewness) <= errors * math.sqrt(
            6 * (count - 2) / ((count + 1) * (count + 3)))
            and abs(apart) <= errors * _MEDIAN_ERROR
            * math.sqrt((1 - 2 / count) / count)):
        return None
    return MeanTime(mean_loss, deviation, skewness, count)
