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
#: Confidence that no larger part of all runs are stragglers.
LEVEL = 0.95


@dataclasses.dataclass(frozen=True, slots=True)
class Stragglers:
    """Runs that are much slower than the others of their side.

    :ivar in_native: losses of the native stragglers against their median
    :ivar in_guest: the same of the guest; those of failed runs are infinite
    :ivar runs: numbers of native runs and of runs of the guest, failed ones
        included
    :ivar mean_loss: logarithm of the ratio of the mean times of a run, in
        which stragglers count in full; infinite if more runs of the guest
        failed
    :ivar other_loss: the same without stragglers
    """

    in_native: tuple[float, ...]
    in_guest: tuple[float, ...]
    runs: tuple[int, int]
    mean_loss: float
    other_loss: float

    @property
    def native(self) -> int:
        """Number of native stragglers."""
        return len(self.in_native)

    @property
    def guest(self) -> int:
        """Number of stragglers of the guest."""
        return len(self.in_guest)

    @property
    def p(self) -> float:
        """The chance of this number in the guest if native had as many."""
        return find_chance(self.native, self.guest, *self.runs)

    @property
    def p_length(self) -> float:
        """The chance of as many that are longer than any of native."""
        longest = max(self.in_native, default=0.0)
        return find_chance(0, sum(loss > longest for loss in self.in_guest),
                           *self.runs)

    @property
    def is_longer(self) -> bool:
        """Whether the longest of the guest lost much more than of native."""
        native, guest = (_lost(max(side, default=0.0))
                         for side in (self.in_native, self.in_guest))
        return guest > LONGER * native

    @property
    def worst_loss(self) -> float:
        """The loss of the mean times if the guest has most stragglers."""
        if self.mean_loss == math.inf:
            return math.inf
        native, guest = (
            statistics.fmean(map(_lost, side)) if side else 0.0
            for side in (self.in_native, self.in_guest))
        part = self.native / self.runs[0]
        return (self.other_loss + math.log1p(self.most * guest)
                - math.log1p(part * native))

    def word(self, limit: float, share: float = 1.0,
             together: Sequence['Stragglers'] = ()) -> judgement.VerdictResult:
        """Judge the tail.

        :param limit: the largest acceptable loss
        :param share: of the chance of an error
        :param together: those of all figures that are judged together, this
            one included
        """
        is_worse = self.guest > self.native or self.is_longer
        if not is_worse or self.worst_loss <= limit:
            return judgement.VerdictResult.PASS
        if self.mean_loss > limit and min(self.p, self.p_length) <= (
                share * ALPHA / 2 / max(1, len(together))):
            return judgement.VerdictResult.FAIL
        if self.mean_loss < math.inf and (
                self._is_usual(together) if len(together) > 1
                else self.native and not self.is_longer
                and self.p > _OFTEN):
            return judgement.VerdictResult.PASS
        return judgement.VerdictResult.INCONCLUSIVE

    def _is_usual(self, together: Sequence['Stragglers']) -> bool:
        """Whether native has such stragglers in any of several figures.

        Each figure alone has too few of them to tell, and of many figures one
        nearly always has more in the guest by chance.
        """
        native = [loss for each in together for loss in each.in_native]
        longer = sum(loss > max(native, default=0.0)
                     for loss in self.in_guest)
        often = _OFTEN / len(together)
        return bool(native) and find_chance(
            len(native), self.guest, sum(each.runs[0] for each in together),
            self.runs[1]) > often and (
                math.comb(self.guest, longer)
                > often * math.comb(self.guest + len(native), longer))

    @property
    def most(self) -> float:
        """The largest part of all runs of the guest that may be stragglers.

        It is the end of the exact interval of 95 % for their number.
        """
        runs = self.runs[1]
        low, high = self.guest / runs, 1.0
        for _ in range(40):
            part = (low + high) / 2
            fewer = sum(math.comb(runs, fewer) * part ** fewer
                        * (1 - part) ** (runs - fewer)
                        for fewer in range(self.guest + 1))
            low, high = (part, high) if fewer > 1 - LEVEL else (low, part)
        return high


def find(native: Sequence[float], guest: Sequence[float],
         failed: tuple[int, int] = (0, 0)) -> Stragglers:
    """Find the stragglers of both sides.

    :param native: logarithms of the time per work, or of its inverse negated
    :param failed: number of further runs of both sides that did not end
    """
    usual = replace(native, guest)
    slow_native, slow_guest = (
        (*(value - statistics.median(side)
           for value, kept in zip(side, typical, strict=True)
           if value != kept), *[math.inf] * number)
        for side, typical, number in zip((native, guest), usual, failed,
                                         strict=True))
    return Stragglers(
        slow_native, slow_guest,
        (len(native) + failed[0], len(guest) + failed[1]),
        math.inf if failed[1] > failed[0] else compare_means(native, guest),
        compare_means(*usual))


def compare_means(native: Sequence[float], guest: Sequence[float]) -> float:
    """Return the logarithm of the ratio of the mean times."""
    # Logarithms of times may be beyond what has an exponential.
    shift = max((*native, *guest))
    means = [statistics.fmean(math.exp(value - shift) for value in side)
             for side in (native, guest)]
    return math.log(means[1] / means[0])


def replace(native: Sequence[float], guest: Sequence[float],
            ) -> tuple[list[float], list[float]]:
    """Replace stragglers by typical runs of their side."""
    least = max(MIN_LOSS, DEVIATIONS * stats.robust_deviation([
        value - statistics.median(side) for side in (native, guest)
        for value in side]))
    native, guest = (
        [value if value - statistics.median(side) <= least
         else statistics.median(side) for value in side]
        for side in (native, guest))
    return native, guest


def count_runs(part: float) -> int:
    """Return the number of runs that exclude a part of stragglers.

    If none of them is a straggler, no larger part of all runs is one
    with a confidence of 95 %.
    """
    return math.ceil(math.log(1 - LEVEL) / math.log1p(-part))


def _lost(loss: float) -> float:
    """Return the additional time, as a part of that of a typical run."""
    return math.expm1(min(loss, stats.EXTREME))


def find_chance(in_native: int, in_guest: int, native: int,
                guest: int) -> float:
    """Return the chance of as many in the guest (Fisher's exact test)."""
    total = in_native + in_guest
    ways = sum(math.comb(guest, number) * math.comb(native, total - number)
               for number in range(in_guest, min(total, guest) + 1))
    return ways / math.comb(native + guest, total)
