# SPDX-License-Identifier: Apache-2.0

"""Judge the tail: runs of a guest that are much slower than its other runs.

The loss of a guest is that of a typical run, which a few slow runs hardly
change. But a guest of which one run in twenty takes ten times as long is a
bad guest: exactly that happened to a site which had tested its guests for
weeks [CERN-HEPiX-2015]. So the tail has a judgement of its own, by the number
of such runs and by their length. A run that failed, hung or was stopped at its
time limit is a straggler of unbounded length.
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
#: Stragglers of the guest are longer than those of native if the longest one
#: loses this number of times as much time.
LONGER = 2.0
#: Chance of a FAIL for the tail of a guest that is as good as native, one half
#: of it for the number of stragglers and one for their length.
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
        which stragglers count in full; infinite if more runs of the guest
        failed
    :ivar p: chance of this number in the guest if native had as many
    :ivar p_length: chance of as many that are longer than any of native, if
        those of native were as long
    :ivar is_longer: whether those of the guest are longer
    :ivar runs: number of runs of the guest, failed ones included
    """

    native: int
    guest: int
    mean_loss: float
    p: float
    p_length: float
    is_longer: bool
    runs: int

    def word(self, limit: float, share: float = 1.0,
             figures: int = 1) -> judgement.VerdictResult:
        """Judge the tail.

        :param limit: the largest acceptable loss
        :param share: of the chance of an error
        :param figures: number of figures that are judged together
        """
        is_worse = self.guest > self.native or self.is_longer
        if not is_worse or self.mean_loss <= limit:
            return judgement.VerdictResult.PASS
        if min(self.p, self.p_length) <= share * ALPHA / 2 / figures:
            return judgement.VerdictResult.FAIL
        if self.native and not self.is_longer and self.p > _OFTEN / figures:
            return judgement.VerdictResult.PASS
        return judgement.VerdictResult.INCONCLUSIVE

    @property
    def most(self) -> float:
        """The largest part of all runs of the guest that may be stragglers.

        It is the end of the exact interval of 95 % for their number.
        """
        low, high = self.guest / self.runs, 1.0
        for _ in range(40):
            part = (low + high) / 2
            fewer = sum(math.comb(self.runs, number) * part ** number
                        * (1 - part) ** (self.runs - number)
                        for number in range(self.guest + 1))
            low, high = (part, high) if fewer > 0.05 else (low, part)
        return high


def find(native: Sequence[float], guest: Sequence[float],
         failed: tuple[int, int] = (0, 0)) -> Stragglers:
    """Find the stragglers of both sides.

    :param native: logarithms of the time per work, or of its inverse negated
    :param failed: number of further runs of both sides that did not end
    """
    sides = [[value - statistics.median(side) for value in side]
             for side in (native, guest)]
    least = max(MIN_LOSS, DEVIATIONS * stats.robust_deviation(
        [*sides[0], *sides[1]]))
    shift = max((*native, *guest))
    means = [statistics.fmean(math.exp(value - shift) for value in side)
             for side in (native, guest)]
    mean_loss = (math.inf if failed[1] > failed[0]
                 else math.log(means[1] / means[0]))
    counts = [len(side) + number
              for side, number in zip(sides, failed, strict=True)]
    slow = [[*(value for value in side if value > least),
             *[math.inf] * number]
            for side, number in zip(sides, failed, strict=True)]
    longest = [max(side, default=0.0) for side in slow]
    longer = sum(value > longest[0] for value in slow[1])
    return Stragglers(
        len(slow[0]), len(slow[1]), mean_loss,
        _chance(len(slow[0]), len(slow[1]), *counts),
        _chance(0, longer, *counts),
        _lost(longest[1]) > LONGER * _lost(longest[0]), counts[1])


def _lost(loss: float) -> float:
    """Return the additional time, as a part of that of a typical run."""
    return math.expm1(min(loss, stats.EXTREME))


def _chance(in_native: int, in_guest: int, native: int, guest: int) -> float:
    """Fisher's exact test, one-sided."""
    total = in_native + in_guest
    ways = sum(math.comb(guest, number) * math.comb(native, total - number)
               for number in range(in_guest, min(total, guest) + 1))
    return ways / math.comb(native + guest, total)
