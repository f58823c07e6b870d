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

"""The walk of Nova's claim through the arrangements of host cells.

A faithful copy of what ``numa_fit_instance_to_host`` remembers on its way,
on a table of verdicts instead of Nova's objects. Arrangements that can only
end as the one before them are left out: when a try has changed nothing that
the walk remembers, every further arrangement with the same beginning stops
at the same pair.
"""

import dataclasses
import enum
import math
from collections.abc import Sequence

from hpcvirt.fit import cell as cells
from hpcvirt.fit import conditions as rules
from hpcvirt.fit import demand as demands
from hpcvirt.fit import pins
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model

#: Arrangements that are tried before the walk gives up. Nova needs some
#: microseconds for each, with PCI requests one or two milliseconds, during
#: which its claim keeps the compute host's resources locked.
MOST_TRIES = 4096

_RATIOS = (reasons.Code.CPU_RATIO, reasons.Code.RAM_RATIO)


class Verdict(enum.Enum):
    """What fitting one guest cell on one host cell comes to."""

    FITS = enum.auto()
    UNFIT = enum.auto()
    #: Refused for its ratios after it was pinned: a mixed guest cell keeps
    #: those pins, and the number of that host cell.
    UNFIT_BUT_PINNED = enum.auto()
    #: ``max()`` of no cores: the claim ends with a ValueError.
    RAISES = enum.auto()


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """How the walk ends.

    :ivar ranks: for each guest cell the rank of its host cell; None if the
        claim refuses the guest
    :ivar pages_kib: for each guest cell the page size that it got
    :ivar misplaced: the first guest cell that was not fitted on its host
        cell or does not fit there; None if all is well
    :ivar misaccounted: the rank of the host cell where the emulator threads
        got a CPU on a core that is not free, so that the accounting of the
        compute host fails; None if all is well
    :ivar raised: the rank of the host cell on which the claim raises
    :ivar given_up: the walk is longer than MOST_TRIES
    """

    ranks: tuple[int, ...] | None = None
    pages_kib: tuple[int | None, ...] = ()
    misplaced: int | None = None
    misaccounted: int | None = None
    raised: int | None = None
    given_up: bool = False

    @property
    def sound(self) -> bool:
        """The claim accepts the guest, and what it gives can be had."""
        return (self.ranks is not None and self.misplaced is None and
                self.misaccounted is None)


def follow(demand: demands.Demand, supply: supplies.Supply,
           ordered: Sequence[supplies.CellSupply],
           conditions: rules.Conditions,
           settle_pages: bool = True) -> Outcome:
    """Walk to the end.

    :param ordered: the host cells as the claim sorts them
    :param settle_pages: keep a page size once it is chosen, as Nova does;
        False shows what would happen without defect C
    """
    memory = _Memory(demand, supply, ordered, settle_pages)
    size = len(demand.cells)
    arrangement: list[int] | None = list(range(size))
    for _ in range(MOST_TRIES):
        if arrangement is None:
            return Outcome()
        stop, changed, raised = memory.attempt(arrangement)
        if raised:
            return Outcome(raised=arrangement[stop])
        if stop == size and conditions.met(
                ordered[rank].id for rank in arrangement):
            return memory.outcome(arrangement)
        arrangement = _next(arrangement, len(ordered),
                            size - 1 if changed else min(stop, size - 1))
    return Outcome(given_up=True)


class _Memory:
    """What the claim remembers from one arrangement to the next.

    ``_numbers`` are the ``InstanceNUMACell.id``: at first the number of the
    guest cell, then the id of the host cell where it was put last.
    """

    def __init__(self, demand: demands.Demand, supply: supplies.Supply,
                 ordered: Sequence[supplies.CellSupply],
                 settle_pages: bool) -> None:
        self._supply = supply
        self._ordered = ordered
        self._settle_pages = settle_pages
        self._asked = list(demand.cells)
        self._numbers = list(range(len(demand.cells)))
        self._pinned: list[int | None] = [None] * len(demand.cells)
        self._fit: set[tuple[int, int]] = set()
        self._unfit: set[tuple[int, int]] = set()
        kinds = list(dict.fromkeys(demand.cells))
        self._kinds = [kinds.index(cell) for cell in demand.cells]
        self._known: dict[tuple[int, int | None, int], Verdict] = {}

    def attempt(self, arrangement: Sequence[int]) -> tuple[int, bool, bool]:
        """Try an arrangement.

        :returns: the number of guest cells that went well, whether anything
            that is remembered has changed, and whether the claim raised
        """
        changed = False
        for guest, rank in enumerate(arrangement):
            host = self._ordered[rank].id
            pair = host, self._numbers[guest]
            if pair in self._unfit:
                return guest, changed, False
            if pair in self._fit:
                changed |= self._numbers[guest] != host
                self._numbers[guest] = host
                continue
            changed = True
            verdict = self._judge(guest, rank)
            if verdict is Verdict.RAISES:
                return guest, True, True
            if verdict is not Verdict.UNFIT:
                self._numbers[guest] = host
                self._pinned[guest] = (
                    rank if verdict is Verdict.FITS else None)
            if verdict is not Verdict.FITS:
                self._unfit.add(pair)
                return guest, True, False
            self._fit.add(pair)
        return len(arrangement), changed, False

    def outcome(self, arrangement: Sequence[int]) -> Outcome:
        """Judge what the claim has come to."""
        misplaced = next((guest for guest, rank in enumerate(arrangement)
                          if not self._sound(guest, rank)), None)
        return Outcome(
            ranks=tuple(arrangement),
            pages_kib=tuple(
                cells.page_size(asked, self._ordered[rank])
                for asked, rank in zip(self._asked, arrangement,
                                       strict=True)),
            misplaced=misplaced,
            misaccounted=None if misplaced is not None
            else self._misaccounted(arrangement[0]))

    def _misaccounted(self, rank: int) -> int | None:
        cell = self._ordered[rank]
        taken = pins.choose(self._asked[0], cell).taken
        return None if taken <= cell.free else rank

    def _sound(self, guest: int, rank: int) -> bool:
        if self._settle_pages and _by_class(self._asked[guest]):
            return False
        if self._judge(guest, rank) is not Verdict.FITS:
            return False
        return not self._asked[guest].pcpus or self._pinned[guest] == rank

    def _judge(self, guest: int, rank: int) -> Verdict:
        cell = self._ordered[rank]
        asked = self._asked[guest]
        if _by_class(asked):
            size_kib = cells.page_size(asked, cell)
            if size_kib is None:
                return Verdict.UNFIT
            asked = dataclasses.replace(asked, page_kib=size_kib)
            if self._settle_pages:
                self._asked[guest] = asked
        question = self._kinds[guest], asked.page_kib, rank
        known = self._known.get(question)
        if known is None:
            known = self._known[question] = _verdict(
                asked, cell, self._supply)
        return known


def _by_class(asked: demands.CellDemand) -> bool:
    return asked.page_kib is not None and asked.page_kib < 0


def _verdict(asked: demands.CellDemand, cell: supplies.CellSupply,
             supply: supplies.Supply) -> Verdict:
    misfit = cells.obstacle(asked, cell, supply.cpu_ratio, supply.ram_ratio)
    if misfit is None:
        return Verdict.FITS
    pinned_first = (asked.policy is shape_model.CPUPolicy.MIXED and
                    misfit.code in _RATIOS)
    if pinned_first:
        misfit = cells.obstacle(asked, cell, math.inf, math.inf)
        if misfit is None:
            return Verdict.UNFIT_BUT_PINNED
    if misfit.code is reasons.Code.NO_CORES:
        return Verdict.RAISES
    if (misfit.code is reasons.Code.FREE_CORES and
            _emulator_beside_others(asked, cell)):
        return (Verdict.UNFIT_BUT_PINNED if pinned_first else Verdict.FITS)
    return Verdict.UNFIT


def _emulator_beside_others(asked: demands.CellDemand,
                            cell: supplies.CellSupply) -> bool:
    """Nova gives isolated emulator threads a core that others use."""
    free = [len(core & cell.free) for core in cell.siblings]
    whole = sum(count >= cell.threads_per_core for count in free)
    return (asked.emulator_pcpus > 0 and whole >= asked.pcpus and
            sum(count > 0 for count in free) > asked.pcpus)


def _next(arrangement: Sequence[int], ranks: int,
          place: int) -> list[int] | None:
    """The next arrangement that differs at this place or before it."""
    for changing in range(place, -1, -1):
        before = arrangement[:changing]
        for rank in range(arrangement[changing] + 1, ranks):
            if rank not in before:
                rest = (r for r in range(ranks)
                        if r not in before and r != rank)
                after = [next(rest) for _ in arrangement[changing + 1:]]
                return [*before, rank, *after]
    return None
