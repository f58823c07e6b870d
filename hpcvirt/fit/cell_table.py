# SPDX-License-Identifier: Apache-2.0

"""Remember the states of host cells, and the guest cells that they take.

The table has a row for each state, which has a number, and a column for each
guest cell. Rows are filled when they are read.
"""

import itertools
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Sequence

from hpcvirt.fit import cell_room
from hpcvirt.fit import demand as demands
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model

Counts = tuple[int, ...]


class CellTable:
    """Counts the guest cells that host cells take."""

    def __init__(self, by_core: bool,
                 forgive: Callable[[object, Exception], None]) -> None:
        """Begin a table.

        :param by_core: see :func:`hpcvirt.fit.cell_room.describe`
        :param forgive: see :class:`hpcvirt.fit.host_room.HostRoom`
        """
        self._by_core = by_core
        self._forgive = forgive
        # Of guest cells with dedicated CPUs only, what their memory is.
        self._columns: dict[demands.CellDemand, Hashable] = {}
        # For the fields that do not change, the number of the state without
        # guests, and the numbers of all states by the fields that do.
        self._numbers: dict[Hashable, tuple[int, dict[
            cell_room.Changing, int]]] = {}
        self._states: list[cell_room.CellState] = []
        self._empty: list[int] = []
        self._by_pcpus: dict[Hashable, Counts] = {}
        self._rows: list[Counts] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, guest_cell: demands.CellDemand) -> int:
        """Return the column of a guest cell, which may be a new one."""
        self._columns.setdefault(guest_cell, (
            guest_cell.memory_mib, guest_cell.page_kib) if guest_cell.policy
            is shape_model.CPUPolicy.DEDICATED else None)
        return list(self._columns).index(guest_cell)

    def number(self, cell: supplies.CellSupply,
               supply: supplies.Supply) -> int:
        """Number the state of a cell of a host."""
        fixed, changing = cell_room.describe(cell, supply, self._by_core)
        alike = self._numbers.get(fixed)
        if alike is None:
            alike = self._numbers[fixed] = len(self._states), {}
            state = cell_room.CellState._make((*fixed, *changing))
            self._add(alike, state, state.emptied())
        number = alike[1].get(changing)
        return (self._add(alike, self._states[alike[0]], changing)
                if number is None else number)

    def _add(self, alike: tuple[int, dict[cell_room.Changing, int]],
             state: cell_room.CellState, changing: cell_room.Changing) -> int:
        number = alike[1][changing] = len(self._states)
        self._states.append(state.replace(changing))
        self._empty.append(alike[0])
        self._rows.append(())
        return number

    def states(self, cells: Sequence[int]) -> list[cell_room.CellState]:
        """Return the states with these numbers."""
        return [self._states[number] for number in cells]

    def emptied(self, cells: Sequence[int]) -> tuple[int, ...]:
        """Return the numbers of the states of cells without guests."""
        return tuple([self._empty[number] for number in cells])

    def rooms(self, cells: Sequence[int]) -> list[Counts]:
        """Count, for each cell, the guest cells that it takes."""
        for number in cells:
            row = self._rows[number]
            if len(row) < len(self._columns):
                self._rows[number] = (*row, *self._count(number, len(row)))
        return [self._rows[number] for number in cells]

    def _count(self, number: int, first: int) -> list[int]:
        """Count guest cells, from the first that has not been counted."""
        cell = self._states[number]
        # Many cells have as many free CPUs, and many guests as much memory.
        key = self._empty[number], cell.free, cell.core_free
        cpus = self._by_pcpus.get(key, ())
        if len(cpus) < len(self._columns):
            cpus = self._by_pcpus[key] = (*cpus, *[
                self.isolate(guest, cell_room.count_by_pcpus, guest, cell)
                for guest in itertools.islice(self._columns, len(cpus), None)])
        by_memory: dict[Hashable, int] = {}
        found = []
        for (guest, memory), room in itertools.islice(
                zip(self._columns.items(), cpus, strict=True), first, None):
            if memory is None:
                found.append(self.isolate(
                    guest, cell_room.count, guest, cell))
            elif room:
                if memory not in by_memory:
                    by_memory[memory] = self.isolate(
                        guest, cell_room.count_by_memory, guest, cell)
                found.append(min(room, by_memory[memory]))
            else:
                found.append(0)
        return found

    def isolate(self, kind: object, count: Callable[..., int],
                *arguments: object) -> int:
        """Count guests; 0 if an error is raised."""
        try:
            return count(*arguments)
        except Exception as exc:  # noqa: BLE001
            self._forgive(kind, exc)
            return 0
