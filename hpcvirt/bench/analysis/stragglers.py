# SPDX-License-Identifier: Apache-2.0

"""Judge the tail: runs of a guest that are much slower than its other runs.

The loss of a guest is that of a typical run, which a few slow runs hardly
change. But a guest of which one run in twenty takes ten times as long is a
bad guest: exactly that happened to a site which had tested its guests for
weeks [CERN-HEPiX-2015]. So the tail has a judgement of its own.
"""

import dataclasses
import math
import statistics
from collections.abc import Sequence

from hpcvirt.bench.analysis import stats
from hpcvirt.bench.model import judgement

#: A run is a straggler if it is slower than the median of its side by this
#: loss and by this number of robust standard deviations of both sides.
MIN_LOSS = math.log(1.2)
DEVIATIONS = 6.0
#: Chance of a FAIL for the tail of a guest that is as good as native.
ALPHA = 0.0025
#: A guest with more stragglers than native, which has some as well, is not
#: held up by a difference that chance makes more often than this.
_OFTEN = 0.2


@dataclasses.dataclass(frozen=True, slots=True)
class Stragglers:
    """Runs that are much slower than the others of their side.

    :ivar native: number of native runs
    :ivar guest: number of runs of the guest
    :ivar mean_loss: logarithm of the ratio of the mean times of a run, in
        which stragglers count in full
    :ivar p: chance of this number in the guest if native had as many
    """

    native: int
    guest: int
    mean_loss: float
    p: float

    def word(self, limit: float,
             share: float = 1.0) -> judgement.VerdictResult:
        """Judge the tail.

        :param limit: the largest acceptable loss
        :param share: of the chance of an error
        """
        if self.guest <= self.native or self.mean_loss <= limit:
            return judgement.VerdictResult.PASS
        if self.p <= share * ALPHA:
            return judgement.VerdictResult.FAIL
        if self.native and self.p > _OFTEN:
            return judgement.VerdictResult.PASS
        return judgement.VerdictResult.INCONCLUSIVE


def find(native: Sequence[float], guest: Sequence[float]) -> Stragglers:
    """Find the stragglers of both sides.

    :param native: logarithms of the time per work, or of its inverse negated
    """
    residuals = [value - statistics.median(side)
                 for side in (native, guest) for value in side]
    least = max(MIN_LOSS, DEVIATIONS * stats.robust_deviation(residuals))
    in_native, in_guest = (
        sum(value - statistics.median(side) > least for value in side)
        for side in (native, guest))
    shift = max((*native, *guest))
    means = [statistics.fmean(math.exp(value - shift) for value in side)
             for side in (native, guest)]
    return Stragglers(
        in_native, in_guest, math.log(means[1] / means[0]),
        _chance(in_native, in_guest, len(native), len(guest)))


def _chance(in_native: int, in_guest: int, native: int, guest: int) -> float:
    """Fisher's exact test, one-sided."""
    total = in_native + in_guest
    ways = sum(math.comb(guest, number) * math.comb(native, total - number)
               for number in range(in_guest, min(total, guest) + 1))
    return ways / math.comb(native + guest, total)
