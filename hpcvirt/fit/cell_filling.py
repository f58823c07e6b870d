# SPDX-License-Identifier: Apache-2.0

"""Count guests on thousands of hosts, filling each kind of cell only once.

The cells of a large fleet differ in which CPUs are free, but rarely in how
many threads are free on how many cores. Consider a guest of equal cells with
dedicated CPUs and pages of a given size that may use any host cells. The
number of guest cells that a host cell takes then does not depend on other
host cells: it is the lesser of the numbers for its CPUs and for its pages.
The result of :func:`hpcvirt.fit.capacity.fill` follows from fillings of
single cells. All other guests are counted by that function itself.
"""

import dataclasses
import itertools
import math
from collections.abc import Sequence

from hpcvirt.fit import allocation
from hpcvirt.fit import capacity
from hpcvirt.fit import cell as cells
from hpcvirt.fit import claim
from hpcvirt.fit import claim_replay
from hpcvirt.fit import demand as demands
from hpcvirt.fit import engine
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model

#: More pages than any cell has.
_AMPLE = 2 ** 60


class CellFillings:
    """Counts guests of one shape on one host after another."""

    def __init__(self, shape: shape_model.Shape) -> None:
        self._shape = shape
        self._demand = demands.compile_shape(shape)
        self._regular = _is_regular(self._demand)
        self._fillings: dict[CellKind, list[supplies.CellSupply]] = {}

    def count(self, supply: supplies.Supply, kinds: Sequence['CellKind'],
              limit: int) -> int:
        """Count the guests that a host takes, as ``capacity.fill`` does.

        :param kinds: the kind of each of its cells
        :param limit: the number of guests after which to stop
        """
        if not limit:
            return 0
        wanted = len(self._demand.cells)
        if not self._regular or (math.perm(len(supply.cells), wanted)
                                 > claim_replay.MAX_ARRANGEMENTS):
            return capacity.fill(self._shape, supply, limit).count
        room = [self._room(cell, cell_kind) for cell, cell_kind
                in zip(supply.cells, kinds, strict=True)]
        if wanted == 1:
            return min(limit, sum(room))
        if sum(map(bool, room)) < wanted:
            return 0
        return self._in_order(supply, kinds, room, min(limit, sum(room)))

    def _in_order(self, supply: supplies.Supply,
                  kinds: Sequence['CellKind'], room: list[int],
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
            chosen = {cell.id for cell in
                      [cell for cell in ordered if left[cell.id]][:wanted]}
            if len(chosen) < wanted:
                return count
            for place, cell in enumerate(now):
                if cell.id in chosen:
                    left[cell.id] -= 1
                    taken = room[place] - left[cell.id]
                    now[place] = cell._replace(
                        free=self._fillings[kinds[place]][taken].free,
                        memory_used_mib=cell.memory_used_mib + memory_mib)
        return limit

    def _room(self, cell: supplies.CellSupply, kind: 'CellKind') -> int:
        """Count the guest cells that a host cell takes."""
        guest_cell = self._demand.cells[0]
        page_kib = guest_cell.page_kib or 0
        for pool in cell.pages:
            if pool.size_kib == page_kib:
                room = pool.free * page_kib // (guest_cell.memory_mib * 1024)
                break
        else:
            return 0
        if room <= 0:
            return 0
        filling = self._fillings.get(kind)
        if filling is None:
            filling = self._fillings[kind] = self._filling(kind)
        return min(room, len(filling) - 1)

    def _filling(self, kind: 'CellKind') -> list[supplies.CellSupply]:
        """Return a cell with 0, 1, 2 and more guest cells until it is full."""
        guest_cell = self._demand.cells[0]
        filled = [kind.cell]
        needed = guest_cell.pcpus + guest_cell.emulator_pcpus
        while cells.obstacle(guest_cell, filled[-1]) is None:
            last = filled[-1]
            filled.append(
                allocation.take(guest_cell, last, guest_cell.page_kib)
                if guest_cell.threads is shape_model.ThreadPolicy.REQUIRE
                # It does not matter which CPUs are taken.
                else last._replace(free=frozenset(
                    itertools.islice(last.free, needed, None))))
        return filled


@dataclasses.dataclass(frozen=True, eq=False)
class CellKind:
    """A kind of cells: equal free CPUs, renumbered, and ample pages.

    Kinds are compared by identity, which makes look-ups fast.
    """

    cell: supplies.CellSupply


class CellKinds:
    """Finds the kinds of cells, and remembers them."""

    def __init__(self) -> None:
        self._known: dict[supplies.CellSupply, CellKind] = {}

    def find(self, supply: supplies.Supply) -> tuple[CellKind, ...]:
        """Return the kind of each cell of a host."""
        reduced = map(_reduced, supply.cells)
        return tuple(self._known.setdefault(cell, CellKind(cell))
                     for cell in reduced)


def _reduced(cell: supplies.CellSupply) -> supplies.CellSupply:
    """Renumber the free CPUs, and leave out cores without a free CPU."""
    width = cell.threads_per_core
    cores = [core for core in (core & cell.free for core in cell.siblings)
             if core]
    siblings = [frozenset(range(number * width, number * width + len(core)))
                for number, core in enumerate(cores)]
    free = frozenset().union(*siblings)
    if cell.siblings:
        # Nova also counts the threads of a core that is in use.
        siblings.append(frozenset(range(-width, 0)))
    return supplies.CellSupply(
        0, None, frozenset(range(len(cell.dedicated))), free, frozenset(),
        tuple(siblings), 0, 0, 0,
        tuple(supplies.PageSupply(pool.size_kib, _AMPLE, 0, _AMPLE)
              for pool in cell.pages))


def _is_regular(demand: demands.Demand) -> bool:
    if not demand.cells or demand.selective or not claim.is_immune(demand):
        return False
    cell = demand.cells[0]
    return (cell.policy is shape_model.CPUPolicy.DEDICATED
            and cell.threads is not shape_model.ThreadPolicy.ISOLATE
            and cell.page_kib is not None and cell.page_kib > 0
            and cell.memory_mib > 0)
