# SPDX-License-Identifier: Apache-2.0

"""Cache fits and figures of hosts, which are computed once for each state."""

from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Sequence

import numpy as np

from hpcvirt.fit import cell as cells
from hpcvirt.fit import claim
from hpcvirt.fit import demand as demands
from hpcvirt.fit import new_guest
from hpcvirt.fit import supply as supplies
from hpcvirt.simulate import host_table

#: Limit of the cached states. States recur, but a long log can have any number
#: of them.
MAX_STATES = 100_000
#: Limit of the cached rows of all keys together.
MAX_ROWS = 400_000


class Rows:
    """Rows of numbers, one for each state of a host."""

    def __init__(self, width: int) -> None:
        self._places: host_table.Integers = np.empty(0, dtype=np.int64)
        self._rows: host_table.Floats = np.empty((0, width))
        self.used = 0

    def get(self, states: host_table.Integers,
            compute: Callable[[int], Sequence[float]]) -> host_table.Floats:
        """Return the rows of states; compute those that are missing.

        :param compute: computes the row of a state, given its index in states
        """
        size = int(states.max(initial=-1)) + 1
        if size > len(self._places):
            self._places = np.concatenate((self._places, np.full(
                max(1024, 2 * size) - len(self._places), -1)))
        for index in np.flatnonzero(self._places[states] < 0).tolist():
            if self._places[states[index]] >= 0:
                continue
            if self.used == len(self._rows):
                self._rows = np.concatenate((self._rows, np.empty(
                    (max(64, self.used), self._rows.shape[1]))))
            self._rows[self.used] = compute(index)
            self._places[states[index]] = self.used
            self.used += 1
        rows: host_table.Floats = self._rows[self._places[states]]
        return rows


class FitCache:
    """A cache of where and how well guests fit on the hosts of a table."""

    def __init__(self, table: host_table.HostTable,
                 of: Sequence[demands.Demand]) -> None:
        """Begin with an empty cache.

        :param of: the demands, which methods name by their numbers
        """
        self.table = table
        self._demands = of
        self._forget()

    def _forget(self) -> None:
        self._numbering = self.table.numbering
        self._placements: dict[int,
                               dict[int, demands.CellAssignment]] = {}
        self._figures: dict[Hashable, Rows] = {}
        self._cell_figures: dict[Hashable, dict[int, int]] = {}
        self.forget_rows()

    def limit_states(self) -> None:
        """Forget everything if there are too many states."""
        if self.table.number_of_states > MAX_STATES:
            self.table.forget_states()

    def _check(self) -> None:
        """Forget everything if the states were renumbered."""
        if self.table.numbering != self._numbering:
            self._forget()

    def fits(self, number: int,
             hosts: host_table.Integers) -> host_table.Booleans:
        """Return for each host whether a guest fits on it."""
        fits: host_table.Booleans = self.figures(
            ('fits', number), hosts, lambda host: self._ask(number, host)) > 0
        return fits

    def _ask(self, number: int, host: int) -> bool:
        demand, supply = self._demands[number], self.table.supplies[host]
        if not claim.counts_cells(demand, supply):
            return self._predict(number, host) is not None
        own = demand.cells[0]
        return len(demand.cells) <= self.sum_over_cells(
            ('fits', number), host, lambda cell: cells.obstacle(
                own, cell, supply.cpu_ratio, supply.ram_ratio) is None)

    def _predict(self, number: int,
                 host: int) -> demands.CellAssignment | None:
        placed = new_guest.predict(self._demands[number],
                                   self.table.supplies[host])
        if not isinstance(placed, demands.CellAssignment):
            return None
        self._placements.setdefault(number, {})[
            int(self.table.states[host])] = placed
        return placed

    def placement(self, number: int,
                  host: int) -> demands.CellAssignment:
        """Return the host cells of a guest on a host on which it fits."""
        self._check()
        placed = (self._placements.get(number, {}).get(
            int(self.table.states[host])) or self._predict(number, host))
        if placed is None:
            raise ValueError('the guest does not fit on the host')
        return placed

    def sum_over_cells(self, key: Hashable, host: int,
                       compute: Callable[[supplies.CellSupply], int]) -> int:
        """Return the sum of a figure over the cells of a host.

        :param key: identifies the figure and the demand
        :param compute: computes the figure of a host cell
        """
        self._check()
        known = self._cell_figures.setdefault(key, {})
        total = 0
        for index, number in enumerate(self.table.cells[host]):
            found = known.get(number)
            if found is None:
                found = known[number] = compute(
                    self.table.supplies[host].cells[index])
            total += found
        return total

    def rows(self, key: Hashable, width: int) -> Rows:
        """Return the cached rows of a key."""
        if sum(rows.used for rows in self._rows.values()) > MAX_ROWS:
            self.forget_rows()
        return self._rows.setdefault(key, Rows(width))

    def forget_rows(self) -> None:
        self._rows: dict[Hashable, Rows] = {}

    def figures(self, key: Hashable, hosts: host_table.Integers,
                compute: Callable[[int], float]) -> host_table.Floats:
        """Return a figure of hosts.

        :param key: identifies the figure and the demand
        :param compute: computes the figure of a host
        """
        self._check()
        return self._figures.setdefault(key, Rows(1)).get(
            self.table.states[hosts],
            lambda index: (compute(int(hosts[index])),))[:, 0]
