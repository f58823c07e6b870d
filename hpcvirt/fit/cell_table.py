# SPDX-License-Identifier: Apache-2.0

"""Remember the states of host cells, and the guest cells that they take.

The table has a numbered row for each state, and a column for each guest cell.
Rows are filled when they are read.
"""

import itertools
import typing
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt.fit import cell_room
from hpcvirt.fit import demand as demands
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model

#: A state of more cores than this counts as one more state for each few of
#: them, so that states are bounded by what they take.
_CORES = 128
_MORE_CORES = 8

Counts = tuple[int, ...]
#: The fields of a CellState that do not change.
_Fields = tuple[typing.Any, ...]


class CellTable:
    """Counts the guest cells that host cells take."""

    def __init__(self, by_core: bool,
                 forgive: Callable[[object, Exception], None]) -> None:
        """Initialize an empty table.

        :param by_core: see :func:`hpcvirt.fit.cell_room.describe`
        :param forgive: see :class:`hpcvirt.fit.host_room.HostRoom`
        """
        self._by_core = by_core
        self._forgive = forgive
        # Guest cell -> the index of its memory in _memories; None if it does
        # not have dedicated CPUs only.
        self._columns: dict[demands.CellDemand, int | None] = {}
        # Memory and page size -> a guest cell that has them.
        self._memories: dict[Hashable, demands.CellDemand] = {}
        # The columns of guest cells that do not have dedicated CPUs only.
        self._others: list[tuple[int, demands.CellDemand]] = []
        # Fields that do not change -> these fields, the number of the state
        # without guests, and the numbers of all states by the other fields.
        self._numbers: dict[Hashable, tuple[_Fields, int, dict[
            cell_room.Changing, int]]] = {}
        self._states: list[cell_room.CellState] = []
        self._empty: list[int] = []
        self._by_pcpus: dict[Hashable, Counts] = {}
        self._rows: list[Counts] = []
        self._surplus = 0
        # Many states have equal rows, which are kept once.
        self._alike: dict[tuple[Counts, ...], Counts] = {}

    @property
    def known(self) -> int:
        """About the number of states; large ones count as several."""
        return len(self._rows) + self._surplus

    def add(self, guest_cell: demands.CellDemand) -> int:
        """Return the column of a guest cell; add it if it is new."""
        if guest_cell not in self._columns:
            place = None
            if guest_cell.policy is shape_model.CPUPolicy.DEDICATED:
                memory = guest_cell.memory_mib, guest_cell.page_kib
                self._memories.setdefault(memory, guest_cell)
                place = list(self._memories).index(memory)
            else:
                self._others.append((len(self._columns), guest_cell))
            self._columns[guest_cell] = place
        return list(self._columns).index(guest_cell)

    def number(self, cell: supplies.CellSupply,
               supply: supplies.Supply) -> int:
        """Return the number of the state of a host cell."""
        fixed, changing = cell_room.describe(cell, supply, self._by_core)
        alike = self._numbers.get(fixed)
        if alike is None:
            alike = self._numbers[fixed] = fixed, len(self._states), {}
            self._add(alike, cell_room.CellState._make(
                fixed + changing).emptied())
        number = alike[2].get(changing)
        return self._add(alike, changing) if number is None else number

    def _add(self, alike: tuple[_Fields, int, dict[cell_room.Changing, int]],
             changing: cell_room.Changing) -> int:
        number = alike[2][changing] = len(self._states)
        state = cell_room.CellState._make(alike[0] + changing)
        self._states.append(state)
        self._surplus += max(len(state.core_free) - _CORES, 0) // _MORE_CORES
        self._empty.append(alike[1])
        self._rows.append(())
        return number

    def states(self, cells: Sequence[int]) -> list[cell_room.CellState]:
        """Return the states with these numbers."""
        return [self._states[number] for number in cells]

    def emptied(self, cells: Sequence[int]) -> tuple[int, ...]:
        """Return the numbers of the states of cells without guests."""
        return tuple([self._empty[number] for number in cells])

    def rooms(self, cells: Sequence[int]) -> list[Counts]:
        """Return a row for each cell: the count of each guest cell."""
        for number in cells:
            row = self._rows[number]
            if len(row) < len(self._columns):
                self._rows[number] = self._count(number, row)
        return [self._rows[number] for number in cells]

    def _count(self, number: int, row: Counts) -> Counts:
        """Append the counts to a row that it does not have yet."""
        cell = self._states[number]
        # Many cells have equal free CPUs, and many guests equal memory.
        key = self._empty[number], cell.free, cell.core_free
        cpus = self._by_pcpus.get(key, ())
        if len(cpus) < len(self._columns):
            cpus = self._by_pcpus[key] = cpus + self._count_each(
                cell_room.count_by_pcpus, itertools.islice(
                    self._columns, len(cpus), None), cell)
        memory = self._count_each(
            cell_room.count_by_memory, self._memories.values(),
            cell) if any(cpus) else ()
        rest = self._count_each(cell_room.count, [
            guest for place, guest in self._others if place >= len(row)], cell)
        counts = cpus, memory, rest, row
        known = self._alike.get(counts)
        if known is None:
            others = iter(rest)
            known = self._alike[counts] = *row, *[
                next(others) if place is None
                else min(room, memory[place]) if room else 0
                for room, place in itertools.islice(zip(
                    cpus, self._columns.values(), strict=True),
                    len(row), None)]
        return known

    def _count_each(
            self, count: Callable[[demands.CellDemand, cell_room.CellState],
                                  int],
            guests: Iterable[demands.CellDemand],
            cell: cell_room.CellState) -> Counts:
        """Count guest cells of each kind; 0 where an error is raised."""
        counts = []
        for guest in guests:
            try:
                room = count(guest, cell)
            except Exception as exc:  # noqa: BLE001
                self._forgive(guest, exc)
                room = 0
            counts.append(room)
        return tuple(counts)
