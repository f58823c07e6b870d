# SPDX-License-Identifier: Apache-2.0

"""Predict the result of Nova's claim on the compute host, with its defects.

Only the claim chooses cells and CPUs. It tries arrangements of host cells in a
known order (:func:`hpcvirt.fit.engine.claim_order`) and remembers which guest
cell fits on which host cell. The key of this memory is a number of the guest
cell that the attempts themselves overwrite, so that the result for one guest
cell is used for another. A guest that fits is then refused, or gets CPUs and
memory on a cell on which it was never fitted (defects A and B). The first host
cell that is tried fixes a page size that is requested by class (defect C). If
no arrangement succeeds, the claim tries all of them (defect D). This is the
behavior of ``nova.virt.hardware.numa_fit_instance_to_host`` in Nova 32 to 34.
The claim then searches for PCI devices once more, regardless of cells; for a
guest without NUMA topology, it does nothing else. Finally, nova-compute takes
the devices, which can be fewer than the claim has found (defects L and M).

:func:`predict` returns the placement that the claim will choose, and refuses a
host if there is none or if the placement is not sound. Most guests cannot be
affected by the defects; for the others a :class:`ClaimReplay` repeats the
attempts of the claim. It keeps the same state between attempts, but uses the
results of the fit engine instead of Nova's objects. It skips attempts that can
only end like the previous one: if an attempt has not changed the state, every
further arrangement with the same beginning stops at the same pair of cells.
"""

import dataclasses
import enum
import functools
import math
import typing
from collections.abc import Collection
from collections.abc import Hashable
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt.fit import allocation
from hpcvirt.fit import cell as cells
from hpcvirt.fit import cell_search
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import engine
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model

#: Attempts before the replay gives up. With PCI requests Nova needs one to two
#: milliseconds for each, while the claim locks the resources of the compute
#: host.
MAX_TRIES = 4096

#: Arrangements that the claim may go through. Nova needs about two
#: microseconds for one that it knows not to fit. With 24 host cells and 6
#: guest cells, there are 4 million for each full cell that it tries first.
MAX_ARRANGEMENTS = 1 << 22

_RATIOS = (reasons.Code.CPU_RATIO, reasons.Code.RAM_RATIO)


class CellFit(enum.Enum):
    """How Nova's attempt to fit a guest cell on a host cell ends."""

    FITS = enum.auto()
    UNFIT = enum.auto()
    #: A mixed guest cell is pinned and then refused because of a ratio. It
    #: keeps the pins and the number of that host cell.
    UNFIT_BUT_PINNED = enum.auto()
    #: Nova calls ``max()`` for no cores: the claim ends with a ValueError.
    RAISES = enum.auto()


@dataclasses.dataclass(frozen=True, slots=True)
class ClaimOutcome:
    """How the claim ends.

    :ivar ranks: for each guest cell the rank of its host cell; None if the
        claim refuses the guest
    :ivar pages_kib: for each guest cell the page size that it gets
    :ivar misplaced: the number of the first guest cell that was not fitted
        on its host cell or does not fit there; None if there is none
    :ivar misaccounted: the rank of the host cell where the emulator threads
        get a CPU on a core that is not free, so that the accounting of the
        compute host fails; None if there is none
    :ivar raised: the rank of the host cell on which the claim raises
    :ivar given_up: the claim makes more than MAX_TRIES attempts
    :ivar undecided: the effort for this host was spent before the end
    """

    ranks: tuple[int, ...] | None = None
    pages_kib: tuple[int | None, ...] = ()
    misplaced: int | None = None
    misaccounted: int | None = None
    raised: int | None = None
    given_up: bool = False
    undecided: bool = False

    @property
    def sound(self) -> bool:
        """Whether the claim accepts the guest on resources that are free."""
        return (self.ranks is not None and self.misplaced is None and
                self.misaccounted is None)


class _Attempt(typing.NamedTuple):
    """An arrangement on which the claim has fitted every guest cell.

    :ivar cells: the ids of its host cells
    :ivar ranks: for each guest cell the rank of its host cell
    :ivar guest_cells: the guest cells, with the page sizes chosen so far
    :ivar pinned: the rank on which each guest cell was pinned last
    """

    cells: frozenset[int]
    ranks: tuple[int, ...]
    guest_cells: tuple[demands.CellDemand, ...]
    pinned: tuple[int | None, ...]


class ClaimReplay:
    """Replays the attempts of one claim to arrange a guest on a host.

    What the claim attempts does not depend on devices and networks: they only
    decide which attempt it accepts. The replay can therefore be asked for one
    allocation of Placement after another, and makes each attempt once. Of the
    attempts on the same set of host cells, the claim accepts the first or
    none.
    """

    def __init__(self, demand: demands.Demand, supply: supplies.Supply,
                 ordered: Sequence[supplies.CellSupply],
                 settle_pages: bool = True) -> None:
        """Prepare to replay the claim.

        :param ordered: the host cells as the claim sorts them
        :param settle_pages: whether a page size is kept once it is chosen, as
            Nova does; False is a claim without defect C
        """
        self._state = _State(demand, supply, ordered, settle_pages)
        self._ordered = ordered
        self._upcoming: list[int] | None = list(range(len(demand.cells)))
        self._tries = 0
        self._attempts: list[_Attempt] = []
        self._seen: set[frozenset[int]] = set()
        # The id of a host cell -> the attempts with this cell.
        self._by_cell: dict[int, list[_Attempt]] = {}
        self._ended = False
        self._raised: int | None = None

    def run(self, affinity: cell_search.AffinityCheck,
            effort: cell_search.Effort) -> ClaimOutcome:
        """Replay the claim to its end.

        :param effort: counts the sets of cells that are tried
        """
        needed = affinity.needed
        for attempt in self._list_attempts(needed):
            if not needed <= attempt.cells:
                continue
            if not effort.spend():
                return ClaimOutcome(undecided=True)
            if affinity.met(attempt.cells):
                return self._state.outcome(attempt)
        return ClaimOutcome(raised=self._raised, given_up=(
            self._upcoming is not None and self._raised is None))

    def _list_attempts(self, needed: Collection[int]) -> Iterator[_Attempt]:
        """Yield the attempts that were made, then go on making them.

        :param needed: attempts without one of these cells may be left out
        """
        if self._ended and needed:
            # The attempts hardly vary the first cells, so that most of them
            # lack some cell.
            yield from min([self._by_cell.get(cell, []) for cell in needed],
                           key=len)
            return
        yield from self._attempts
        while self._go_on():
            yield self._attempts[-1]
        self._ended = True

    def _go_on(self) -> bool:
        """Make attempts until one fits on another set of host cells.

        :returns: False if the claim ends before
        """
        size = len(self._state.guest_cells)
        while (self._upcoming is not None and self._raised is None
                and self._tries < MAX_TRIES):
            arrangement = self._upcoming
            self._tries += 1
            stop, changed, raised = self._state.attempt(arrangement)
            if raised:
                self._raised = arrangement[stop]
                return False
            changing = size - 1 if changed else min(stop, size - 1)
            self._upcoming = _next(arrangement, len(self._ordered), changing)
            if stop < size:
                continue
            host_cells = frozenset([
                self._ordered[rank].id for rank in arrangement])
            if host_cells not in self._seen:
                self._seen.add(host_cells)
                attempt = self._state.note(host_cells, arrangement)
                self._attempts.append(attempt)
                for cell in host_cells:
                    self._by_cell.setdefault(cell, []).append(attempt)
                return True
        return False


class _State:
    """The state that the claim keeps between attempts.

    :ivar guest_cells: the guest cells, with the page sizes chosen so far

    ``_numbers`` are the values of ``InstanceNUMACell.id``: at first the
    number of the guest cell (or that of the demand), later the id of the host
    cell on which it was fitted last.
    """

    def __init__(self, demand: demands.Demand, supply: supplies.Supply,
                 ordered: Sequence[supplies.CellSupply],
                 settle_pages: bool) -> None:
        self._supply = supply
        self._ordered = ordered
        self._settle_pages = settle_pages
        self.guest_cells = list(demand.cells)
        self._numbers = list(demand.numbers or range(len(demand.cells)))
        self._pinned: list[int | None] = [None] * len(demand.cells)
        self._fit: set[tuple[int, int]] = set()
        self._unfit: set[tuple[int, int]] = set()
        kinds = list(dict.fromkeys(demand.cells))
        self._kinds = [kinds.index(cell) for cell in demand.cells]
        self._results: dict[tuple[int, int | None, int], CellFit] = {}

    def attempt(self, arrangement: Sequence[int]) -> tuple[int, bool, bool]:
        """Try one arrangement.

        :returns: the number of guest cells that were fitted, whether the
            state has changed, and whether the claim raised
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
            result = self._fit_cell(guest, rank)
            if result is CellFit.RAISES:
                return guest, True, True
            if result is not CellFit.UNFIT:
                self._numbers[guest] = host
                self._pinned[guest] = (
                    rank if result is CellFit.FITS else None)
            if result is not CellFit.FITS:
                self._unfit.add(pair)
                return guest, True, False
            self._fit.add(pair)
        return len(arrangement), changed, False

    def note(self, host_cells: frozenset[int],
             arrangement: Sequence[int]) -> _Attempt:
        """Keep what :meth:`outcome` needs to know of the last attempt."""
        return _Attempt(host_cells, tuple(arrangement),
                        tuple(self.guest_cells), tuple(self._pinned))

    def outcome(self, attempt: _Attempt) -> ClaimOutcome:
        """Describe the end of a claim that accepts an attempt."""
        misplaced = next((guest for guest in range(len(attempt.ranks))
                          if not self._is_sound(guest, attempt)), None)
        first = attempt.guest_cells[0], attempt.ranks[0]
        return ClaimOutcome(
            ranks=attempt.ranks,
            pages_kib=tuple(
                cells.page_size(guest_cell, self._ordered[rank])
                for guest_cell, rank in zip(attempt.guest_cells,
                                            attempt.ranks, strict=True)),
            misplaced=misplaced,
            misaccounted=None if misplaced is not None
            else self._misaccounted(*first))

    def _misaccounted(self, guest_cell: demands.CellDemand,
                      rank: int) -> int | None:
        cell = self._ordered[rank]
        taken = allocation.choose_pins(guest_cell, cell).taken
        return None if taken <= cell.free else rank

    def _is_sound(self, guest: int, attempt: _Attempt) -> bool:
        guest_cell, rank = attempt.guest_cells[guest], attempt.ranks[guest]
        if self._settle_pages and guest_cell.pages_by_class:
            return False
        if self._try_cell(guest, guest_cell, rank) is not CellFit.FITS:
            return False
        return not guest_cell.pcpus or attempt.pinned[guest] == rank

    def _fit_cell(self, guest: int, rank: int) -> CellFit:
        """Fit a guest cell on a host cell, which can settle its page size."""
        guest_cell = self.guest_cells[guest]
        if guest_cell.pages_by_class and self._settle_pages:
            size_kib = cells.page_size(guest_cell, self._ordered[rank])
            if size_kib is None:
                return CellFit.UNFIT
            guest_cell = dataclasses.replace(guest_cell, page_kib=size_kib)
            self.guest_cells[guest] = guest_cell
        return self._try_cell(guest, guest_cell, rank)

    def _try_cell(self, guest: int, guest_cell: demands.CellDemand,
                  rank: int) -> CellFit:
        """Return how an attempt to fit a guest cell on a host cell ends."""
        cell = self._ordered[rank]
        if guest_cell.pages_by_class:
            size_kib = cells.page_size(guest_cell, cell)
            if size_kib is None:
                return CellFit.UNFIT
            guest_cell = dataclasses.replace(guest_cell, page_kib=size_kib)
        key = self._kinds[guest], guest_cell.page_kib, rank
        result = self._results.get(key)
        if result is None:
            result = self._results[key] = _fit_cell(
                guest_cell, cell, self._supply)
        return result


def _fit_cell(guest_cell: demands.CellDemand, cell: supplies.CellSupply,
              supply: supplies.Supply) -> CellFit:
    misfit = cells.obstacle(guest_cell, cell, supply.cpu_ratio,
                            supply.ram_ratio)
    if misfit is None:
        return CellFit.FITS
    pinned_first = (guest_cell.policy is shape_model.CPUPolicy.MIXED and
                    misfit.code in _RATIOS)
    if pinned_first:
        misfit = cells.obstacle(guest_cell, cell, math.inf, math.inf)
        if misfit is None:
            return CellFit.UNFIT_BUT_PINNED
    if misfit.code is reasons.Code.NO_CORES:
        return CellFit.RAISES
    if (misfit.code is reasons.Code.FREE_CORES and
            _emulator_shares_core(guest_cell, cell)):
        return CellFit.UNFIT_BUT_PINNED if pinned_first else CellFit.FITS
    return CellFit.UNFIT


def _emulator_shares_core(guest_cell: demands.CellDemand,
                          cell: supplies.CellSupply) -> bool:
    """Whether Nova puts isolated emulator threads on a core in use.

    Without such threads, a guest cell lacks whole cores for its vCPUs.
    """
    free = [len(core & cell.free) for core in cell.siblings]
    whole = sum(count >= cell.threads_per_core for count in free)
    return (whole >= guest_cell.pcpus and
            sum(count > 0 for count in free) > guest_cell.pcpus)


def arrangements_before(ranks: Sequence[int], host_cells: int) -> int:
    """Count the arrangements that the claim goes through before this one.

    Nova iterates over the permutations of the host cells in lexicographic
    order, and cannot skip those that do not fit.

    :param ranks: for each guest cell the rank of its host cell
    """
    before = 0
    for guest, rank in enumerate(ranks):
        lower = rank - sum(taken < rank for taken in ranks[:guest])
        before += lower * math.perm(host_cells - guest - 1,
                                    len(ranks) - guest - 1)
    return before


def _next(arrangement: Sequence[int], ranks: int,
          position: int) -> list[int] | None:
    """Return the next arrangement that differs at or before a position."""
    for changing in range(position, -1, -1):
        before = arrangement[:changing]
        for rank in range(arrangement[changing] + 1, ranks):
            if rank not in before:
                rest = (r for r in range(ranks)
                        if r not in before and r != rank)
                after = [next(rest) for _ in arrangement[changing + 1:]]
                return [*before, rank, *after]
    return None


def check(demand: demands.Demand, supply: supplies.Supply,
          providers: devices.Providers = ()) -> reasons.Misfit | None:
    """Say why a guest must not be sent to a host.

    :returns: None if the guest fits and Nova's claim will place it soundly
    """
    return Claim(demand, supply).check(providers)


def counts_cells(demand: demands.Demand, supply: supplies.Supply) -> bool:
    """Whether a guest fits if enough host cells have room for a guest cell.

    For such a guest neither devices, networks nor defects matter, and more
    room never makes it fit less.
    """
    return (bool(demand.cells) and demand.immune
            and not demand.selective
            and math.perm(len(supply.cells), len(demand.cells))
            <= MAX_ARRANGEMENTS)


def predict(demand: demands.Demand, supply: supplies.Supply,
            providers: devices.Providers = (),
            ) -> demands.CellAssignment | reasons.Misfit:
    """Predict the placement that Nova's claim will choose.

    :param providers: what Placement allocated to each PCI request
    :returns: the placement, or why the guest must not be sent to this host
    """
    return Claim(demand, supply).predict(providers)


def find_defect(demand: demands.Demand, supply: supplies.Supply,
                providers: devices.Providers = (),
                ) -> reasons.Misfit | None:
    """Say what is wrong with the placement that the claim would choose.

    :returns: None if the placement is sound, or if the claim refuses the guest
    """
    return Claim(demand, supply).find_defect(providers)


class Claim:
    """The claim of one guest on one host, whatever Placement allocates.

    Placement can offer a guest hundreds of allocations on a host with 16
    devices. Which host cells have room, in which order the claim takes them
    and what it attempts does not depend on the allocation, and is determined
    once. Allocations of devices that are alike have one answer. All
    allocations share one limit of effort, so that a host takes a bounded time.

    For example, a host has two GPUs on each of two cells. Of the six
    allocations of two GPUs, one takes both GPUs of cell 0, one both of cell 1,
    and four take one of each: there are three answers.
    """

    def __init__(self, demand: demands.Demand, supply: supplies.Supply,
                 effort: cell_search.Effort | None = None) -> None:
        """Prepare to answer.

        :param effort: what has been spent on this guest and host; None for
            nothing so far
        """
        self._demand = demand
        self._supply = supply
        self._effort = effort or cell_search.Effort()
        self._answers: dict[Hashable, demands.CellAssignment
                            | reasons.Misfit] = {}

    def check(self, providers: devices.Providers = (),
              ) -> reasons.Misfit | None:
        """Do what :func:`check` does."""
        if counts_cells(self._demand, self._supply):
            return engine.check(self._demand, self._supply, providers)
        predicted = self.predict(providers)
        return predicted if isinstance(predicted, reasons.Misfit) else None

    def predict(self, providers: devices.Providers = (),
                ) -> demands.CellAssignment | reasons.Misfit:
        """Do what :func:`predict` does."""
        kind = self._alike.kind(providers)
        answer = self._answers.get(kind)
        if answer is None:
            affinity = self._follow(providers)
            answer = self._place(affinity)
            if isinstance(answer, demands.CellAssignment):
                answer = affinity.loss(answer.cells) or answer
            self._answers[kind] = answer
        return answer

    def find_defect(self, providers: devices.Providers = (),
                    ) -> reasons.Misfit | None:
        """Do what :func:`find_defect` does."""
        if len(self._supply.cells) < len(self._demand.cells):
            return None
        affinity = self._follow(providers)
        outcome = self._replay.run(affinity, self._effort)
        if outcome.ranks is None and not outcome.given_up:
            return self._effort.misfit() if outcome.undecided else None
        if not outcome.sound:
            return self._defect(affinity, outcome)
        placed = self._accept(outcome.ranks or (), outcome.pages_kib)
        return (placed if isinstance(placed, reasons.Misfit)
                else affinity.loss(placed.cells))

    def _follow(self, providers: devices.Providers,
                ) -> cell_search.AffinityCheck:
        return (self._affinity.following(providers) if any(providers)
                else self._affinity)

    @functools.cached_property
    def _alike(self) -> devices.AlikeDevices:
        return devices.AlikeDevices(self._demand.requests,
                                    self._supply.pools or ())

    @functools.cached_property
    def _affinity(self) -> cell_search.AffinityCheck:
        return cell_search.AffinityCheck(self._demand, self._supply)

    @functools.cached_property
    def _ordered(self) -> Sequence[supplies.CellSupply]:
        return engine.claim_order(self._demand, self._supply)

    @functools.cached_property
    def _roomy(self) -> list[supplies.CellSupply] | reasons.Misfit:
        """The first host cells with room for a guest of equal cells."""
        return engine.first_with_room(self._demand, self._supply,
                                      self._ordered)

    @functools.cached_property
    def _search(self) -> cell_search.CellSearch | reasons.Misfit:
        return engine.make_search(self._demand, self._supply, self._ordered,
                                  self._effort)

    @functools.cached_property
    def _replay(self) -> ClaimReplay:
        return ClaimReplay(self._demand, self._supply,
                           self._ordered)

    @functools.cached_property
    def _replay_by_class(self) -> ClaimReplay:
        """The replay of a claim without defect C."""
        return ClaimReplay(self._demand, self._supply,
                           self._ordered, settle_pages=False)

    def _place(self, affinity: cell_search.AffinityCheck,
               ) -> demands.CellAssignment | reasons.Misfit:
        misfit = affinity.second_look()
        if misfit is not None:
            return misfit
        if not self._demand.cells:
            return demands.CellAssignment(())
        if self._demand.immune:
            roomy = self._roomy
            if isinstance(roomy, reasons.Misfit):
                return roomy
            # If the first cells with room have the devices as well, the claim
            # fits each guest cell only once.
            ids = [cell.id for cell in roomy]
            if affinity.met(ids):
                return self._accept(
                    [rank for rank, cell in enumerate(self._ordered)
                     if cell.id in ids],
                    tuple(cell.page_kib for cell in self._demand.cells))
        search = self._search
        if isinstance(search, reasons.Misfit):
            return search
        misfit = search.find_misfit(affinity)
        if misfit is not None:
            return misfit
        outcome = self._replay.run(affinity, self._effort)
        if outcome.undecided:
            return self._effort.misfit()
        if outcome.ranks is None or not outcome.sound:
            return self._defect(affinity, outcome)
        return self._accept(outcome.ranks, outcome.pages_kib)

    def _accept(self, ranks: Sequence[int], pages_kib: tuple[int | None, ...],
                ) -> demands.CellAssignment | reasons.Misfit:
        """Accept the placement of the claim, if the claim finds it in time."""
        if (arrangements_before(ranks, len(self._ordered)) >=
                MAX_ARRANGEMENTS):
            return reasons.Misfit(reasons.Code.CLAIM_TOO_LONG, {
                'tried': MAX_ARRANGEMENTS,
                'defect': reasons.Defect.TOO_MANY_ATTEMPTS})
        return engine.enforce_scope(
            self._demand, self._supply, demands.CellAssignment(
                tuple(self._ordered[rank].id for rank in ranks), pages_kib))

    def _defect(self, affinity: cell_search.AffinityCheck,
                outcome: ClaimOutcome) -> reasons.Misfit:
        """Say which defect of Nova keeps a guest that fits off a host."""
        if outcome.given_up:
            return reasons.Misfit(reasons.Code.CLAIM_TOO_LONG, {
                'tried': MAX_TRIES,
                'defect': reasons.Defect.TOO_MANY_ATTEMPTS})
        if outcome.raised is not None:
            return reasons.Misfit(reasons.Code.CLAIM_RAISES, {
                'cell': self._ordered[outcome.raised].id,
                'defect': reasons.Defect.NO_CORES})
        if outcome.misaccounted is not None:
            return reasons.Misfit(reasons.Code.CLAIM_MISACCOUNTS, {
                'cell': self._ordered[outcome.misaccounted].id,
                'defect': reasons.Defect.EMULATOR_THREADS})
        defect = (reasons.Defect.DISTANT_DEVICES if self._demand.uniform
                  else reasons.Defect.UNEQUAL_CELLS)
        if (self._demand.pages_by_class
                and self._replay_by_class.run(affinity, self._effort).sound):
            defect = reasons.Defect.PAGE_CLASS
        if outcome.ranks is None or outcome.misplaced is None:
            # Of the refusals of many allocations, only one is read.
            return reasons.LateMisfit(self._explain_refusal, affinity,
                                      defect)
        return reasons.Misfit(reasons.Code.CLAIM_MISPLACES, {
            'guest_cell': outcome.misplaced,
            'cell': self._ordered[outcome.ranks[outcome.misplaced]].id,
            'defect': defect})

    def _explain_refusal(self, affinity: cell_search.AffinityCheck,
                         defect: reasons.Defect) -> reasons.Misfit:
        """Say on which host cells a guest fits that the claim refuses."""
        fitting = engine.arrange(self._demand, self._supply, self._ordered,
                                 affinity)
        if isinstance(fitting, reasons.Misfit):
            return fitting
        return reasons.Misfit(reasons.Code.CLAIM_REFUSES, {
            'cells': reasons.cells(self._ordered[rank].id for rank in fitting),
            'defect': defect})


def depends_on_start(demand: demands.Demand) -> bool:
    """Whether the result of a claim can depend on the demand it starts from.

    A move starts from another demand than a new instance. For guests without
    devices and networks whose cells are equal, have dedicated CPUs, and name
    their page size, that does not matter: every claim takes the first cells
    with room.
    """
    return bool(demand.cells) and (
        demand.selective or not demand.immune or
        demand.cells[0].policy is not shape_model.CPUPolicy.DEDICATED)
