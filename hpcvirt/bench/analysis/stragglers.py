# SPDX-License-Identifier: Apache-2.0

"""Judge the tail: runs of a guest that are much slower than its other runs.

A few slow runs hardly change the loss of a typical run. But a guest is bad if
one run in twenty takes ten times as long, as happened to a site that had
tested its guests for weeks [CERN-HEPiX-2015]. Therefore the tail is judged
separately, by the number of such runs, the *stragglers*, and by their length.
A run that failed, hung or reached its time limit is a straggler of infinite
length.
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
#: loses more than this many times as much time.
LONGER = 2.0
#: The chance that the tail of a guest that is as good as native fails: one
#: half by the number of stragglers and one half by their length.
ALPHA = 0.0025
#: If native has stragglers too, the guest may have more of them, unless the
#: chance of this difference is less than this.
_OFTEN = 0.2
#: The confidence that no larger part of all runs are stragglers.
LEVEL = 0.95


@dataclasses.dataclass(frozen=True, slots=True)
class Stragglers:
    """Runs that are much slower than the others of their side.

    :ivar in_native: losses of the native stragglers against the native median
    :ivar in_guest: the same for the guest; losses of failed runs are infinite
    :ivar runs: numbers of native and guest runs, failed ones included
    :ivar mean_loss: logarithm of the ratio of the mean times, stragglers
        included; infinite if more guest runs than native runs failed
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
        """The chance of the guest's number if both sides were alike."""
        return find_chance(self.native, self.guest, *self.runs)

    @property
    def p_length(self) -> float:
        """The chance of the guest's number that exceed all native ones."""
        longest = max(self.in_native, default=0.0)
        return find_chance(0, sum(loss > longest for loss in self.in_guest),
                           *self.runs)

    @property
    def is_longer(self) -> bool:
        """Whether the guest's longest lost much more than the native one."""
        native, guest = (_lost(max(side, default=0.0))
                         for side in (self.in_native, self.in_guest))
        return guest > LONGER * native

    @property
    def worst_loss(self) -> float:
        """The loss of the mean times with :attr:`most` guest stragglers."""
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
        :param share: the share of a single run's chance of an error
        :param together: the stragglers of all figures that are judged
            together, this one included
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

        A single figure has too few stragglers to tell, and of many figures,
        one nearly always has more in the guest by chance.
        """
        native: list[float] = []
        for each in together:
            native += each.in_native
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
        """The largest part of all guest runs that may be stragglers.

        It is the end of the exact one-sided 95 % interval.
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

    :param native: logarithms of the time per work, or negated logarithms of
        its inverse
    :param guest: the same for the guest
    :param failed: numbers of further runs of both sides that failed
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
    # Avoid an overflow of the exponential.
    shift = max((*native, *guest))
    means = [statistics.fmean(math.exp(value - shift) for value in side)
             for side in (native, guest)]
    return math.log(means[1] / means[0])


def replace(native: Sequence[float], guest: Sequence[float],
            ) -> tuple[list[float], list[float]]:
    """Replace stragglers by the median of their side."""
    deviations: list[float] = []
    for side in (native, guest):
        deviations += [value - statistics.median(side) for value in side]
    least = max(MIN_LOSS, DEVIATIONS * stats.robust_deviation(deviations))
    native, guest = (
        [value if value - statistics.median(side) <= least
         else statistics.median(side) for value in side]
        for side in (native, guest))
    return native, guest


def _lost(loss: float) -> float:
    """Return the additional time, as a part of that of a typical run."""
    return math.expm1(min(loss, stats.EXTREME))


def find_chance(in_native: int, in_guest: int, native: int,
                guest: int) -> float:
    """Return the chance of at least as many in the guest by Fisher's test."""
    total = in_native + in_guest
    ways = sum(math.comb(guest, number) * math.comb(native, total - number)
               for number in range(in_guest, min(total, guest) + 1))
    return ways / math.comb(native + guest, total)
