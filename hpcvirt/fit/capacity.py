# SPDX-License-Identifier: Apache-2.0

"""Count the guests of one flavor that a host takes.

Guests are placed one after another, as Placement and Nova's claim would place
them (:mod:`hpcvirt.fit.admission`), until one is refused.

A fleet has thousands of hosts, whose cells differ in which CPUs are free, but
rarely in how many threads are free on how many cores. For a guest of equal
cells with dedicated CPUs and pages of a given size that may use any host
cells, the number of guest cells that a host cell takes does not depend on
other host cells: it is the lesser of the numbers for its CPUs and for its
pages. :class:`GuestCounter` fills each kind of such cells only once.
"""

import dataclasses
import itertools
from collections.abc import Sequence

from hpcvirt.fit import admission
from hpcvirt.fit import allocation
from hpcvirt.fit import cell as cells
from hpcvirt.fit import claim
from hpcvirt.fit import demand as demands
from hpcvirt.fit import engine
from hpcvirt.fit import guest as guests
from hpcvirt.fit import placement
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model

#: More pages than any cell has.
_AMPLE = 2 ** 60


@dataclasses.dataclass(frozen=True, slots=True)
class Filling:
    """A host filled with guests of one flavor.

    :ivar count: number of guests placed
    :ivar host: what they leave of the host
    :ivar misfit: why the next guest was refused; None if the limit was
        reached
    """

    count: int
    host: placement.HostState
    misfit: reasons.Misfit | None = None

    @property
    def supply(self) -> supplies.Supply:
        """The resources of each cell that are left."""
        return self.host.supply

    @property
    def free_pcpus(self) -> int:
        return sum(len(cell.free) for cell in self.supply.cells)


def fill(guest: guests.Guest, host: placement.HostState,
         limit: int | None = None) -> Filling:
    """Fill a host with guests.

    :param limit: the number of guests after which to stop
    :raises ValueError: for a guest that needs nothing if there is no limit,
        because no host ever refuses it
    """
    if limit is None and not any(guest.sums):
        raise ValueError('a guest that needs nothing needs a limit')
    count = 0
    while limit is None or count < limit:
        placed = admission.predict(guest, host)
        if isinstance(placed, reasons.Misfit):
            return Filling(count, host, placed)
        host = admission.take(guest, host, placed)
        lean = tuple(map(_without_full_cores, host.supply.cells))
        host = dataclasses.replace(
            host, supply=dataclasses.replace(host.supply, cells=lean))
        count += 1
    return Filling(count, host)


def _without_full_cores(cell: supplies.CellSupply) -> supplies.CellSupply:
    """Drop cores without a free CPU once they outnumber the others.

    Otherwise each claim would examine them again. One of the cores with the
    most threads stays, because Nova counts the threads of a core.
    """
    if len(cell.siblings) < 2 * len(cell.free) + 8:
        return cell
    widest = max(cell.siblings, key=len)
    return cell._replace(siblings=tuple(
        core for core in cell.siblings
        if core is widest or not core.isdisjoint(cell.free)))


@dataclasses.dataclass(frozen=True, eq=False)
class CellKind:
    """A kind of cells: equal free CPUs, renumbered, and ample pages.

    For example, all cells of two-threaded cores with 3 whole free cores and
    one with a single free thread are of one kind, whichever cores these are.
    Kinds are compared by identity, which makes look-ups fast.
    """

    cell: supplies.CellSupply


class CellKinds:
    """Finds the kinds of cells, and remembers them."""

    def __init__(self) -> None:
        self._known: dict[supplies.CellSupply, CellKind] = {}

    def find(self, supply: supplies.Supply) -> tuple[CellKind, ...]:
        """Return the kind of each cell of a host."""
        found = []
        for cell in supply.cells:
            renumbered = _renumber(cell)
            found.append(self._known.setdefault(renumbered,
                                                CellKind(renumbered)))
        return tuple(found)


def _renumber(cell: supplies.CellSupply) -> supplies.CellSupply:
    """Renumber the free CPUs, and leave out cores without a free CPU."""
    width = cell.threads_per_core
    siblings: list[frozenset[int]] = []
    for core in cell.siblings:
        threads = len(core & cell.free)
        if threads:
            first = len(siblings) * width
            siblings.append(frozenset(range(first, first + threads)))
    free = frozenset().union(*siblings)
    return supplies.CellSupply(
        0, None, frozenset(range(len(cell.dedicated))), free, frozenset(),
        tuple(siblings), 0, 0, 0,
        tuple(supplies.PageSupply(pool.size_kib, _AMPLE, 0, _AMPLE)
              for pool in cell.pages))


class GuestCounter:
    """Counts the guests of one flavor on one host after another.

    The counts are those of :func:`fill`.
    """

    def __init__(self, guest: guests.Guest) -> None:
        self._guest = guest
        self._demand = guest.demand
        self._regular = _is_regular(guest.demand)
        # A kind -> such a cell with 0, 1, 2 and more guest cells.
        self._fillings: dict[CellKind, list[supplies.CellSupply]] = {}

    def count(self, host: placement.HostState,
              kinds: Sequence[CellKind]) -> int:
        """Count the guests that a host takes.

        :param kinds: the kind of each of its cells
        """
        limit = placement.count(self._guest, host)
        if not limit:
            return 0
        supply = host.supply
        if not (self._regular and claim.counts_cells(self._demand, supply)):
            return fill(self._guest, host, limit).count
        room = [self._count_cells(cell, kind) for cell, kind
                in zip(supply.cells, kinds, strict=True)]
        wanted = len(self._demand.cells)
        if wanted == 1:
            return min(limit, sum(room))
        if sum(map(bool, room)) < wanted:
            return 0
        return self._repeat_claims(supply, kinds, room, min(limit, sum(room)))

    def _repeat_claims(self, supply: supplies.Supply,
                       kinds: Sequence[CellKind], room: list[int],
                       limit: int) -> int:
        """Repeat claims that each take the first host cells with room."""
        wanted = len(self._demand.cells)
        memory_mib = self._demand.cells[0].memory_mib
        left = {cell.id: number for cell, number
                in zip(supply.cells, room, strict=True)}
        now = list(supply.cells)
        for count in range(limit):
            ordered = engine.claim_order(
                self._demand, supplies.Supply(
                    now, supply.pools,
                    spares_devices=supply.spares_devices,
                    packing=supply.packing))
            roomy = [cell.id for cell in ordered if left[cell.id]]
            if len(roomy) < wanted:
                return count
            chosen = set(roomy[:wanted])
            for place, cell in enumerate(now):
                if cell.id not in chosen:
                    continue
                left[cell.id] -= 1
                taken = room[place] - left[cell.id]
                now[place] = cell._replace(
                    free=self._fillings[kinds[place]][taken].free,
                    memory_used_mib=cell.memory_used_mib + memory_mib)
        return limit

    def _count_cells(self, cell: supplies.CellSupply, kind: CellKind) -> int:
        """Count the guest cells that a host cell takes."""
        by_pages = cells.count_by_memory(self._demand.cells[0], cell)
        if not by_pages:
            return 0
        filling = self._fillings.get(kind)
        if filling is None:
            filling = self._fillings[kind] = self._fill_cell(kind)
        return min(by_pages, len(filling) - 1)

    def _fill_cell(self, kind: CellKind) -> list[supplies.CellSupply]:
        """Return a cell with 0, 1, 2 and more guest cells until it is full."""
        guest_cell = self._demand.cells[0]
        filled = [kind.cell]
        needed = guest_cell.pcpus + guest_cell.emulator_pcpus
        while cells.obstacle(guest_cell, filled[-1]) is None:
            last = filled[-1]
            if guest_cell.threads is shape_model.ThreadPolicy.REQUIRE:
                filled.append(allocation.take(guest_cell, last,
                                              guest_cell.page_kib))
            else:
                # It does not matter which CPUs are taken.
                rest = itertools.islice(last.free, needed, None)
                filled.append(last._replace(free=frozenset(rest)))
        return filled


def _is_regular(demand: demands.Demand) -> bool:
    """Whether cells of one kind take equally many cells of a guest."""
    if not demand.cells:
        return False
    cell = demand.cells[0]
    return (cell.policy is shape_model.CPUPolicy.DEDICATED
            and cell.threads is not shape_model.ThreadPolicy.ISOLATE
            and cell.page_kib is not None)
