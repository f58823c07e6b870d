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
        self._fixed: dict[Hashable, int] = {}
        self._numbers: dict[Hashable, int] = {}
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
        empty = self._fixed.get(fixed)
        if empty is None:
            empty = self._fixed[fixed] = len(self._states)
            state = cell_room.CellState._make((*fixed, *changing))
            self._add(empty, state.replace(state.emptied()))
        number = self._numbers.get((empty, changing))
        return (self._add(empty, self._states[empty].replace(changing))
                if number is None else number)

    def _add(self, empty: int, state: cell_room.CellState) -> int:
        number = len(self._states)
        self._numbers[empty, state.changing] = number
        self._states.append(state)
        self._empty.append(empty)
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
        columns = list(self._columns.items())[first:]
        by_memory: dict[Hashable, int] = {}
        if any(cpus):
            for guest, memory in columns:
                if memory is not None and memory not in by_memory:
                    by_memory[memory] = self.isolate(
                        guest, cell_room.count_by_memory, guest, cell)
        return [
            self.isolate(guest, cell_room.count, guest, cell)
            if memory is None else room and min(room, by_memory[memory])
            for (guest, memory), room in zip(columns, cpus[first:],
                                             strict=True)]

    def isolate(self, kind: object, count: Callable[..., int],
                *arguments: object) -> int:
        """Count guests; 0 if an error is raised."""
        try:
            return count(*arguments)
        except Exception as exc:  # noqa: BLE001
            self._forgive(kind, exc)
            return 0
