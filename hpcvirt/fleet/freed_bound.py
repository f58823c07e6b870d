# SPDX-License-Identifier: Apache-2.0

"""Count the guests that a host takes after some of its instances have left.

For most guests the claim only counts cells with room. Only the cells of the
instances that left are then examined again, which makes the search of
:mod:`hpcvirt.fleet.move_search` fast.
"""

import functools
import itertools
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt.fit import admission
from hpcvirt.fit import cell as cells
from hpcvirt.fit import claim
from hpcvirt.fit import guest as guests
from hpcvirt.fit import placement
from hpcvirt.fit import supply as supplies
from hpcvirt.fleet import moving
from hpcvirt.fleet import state


class FreedHost:
    """Counts the guests of one kind that a host takes without instances.

    :ivar name: the name of the host
    :ivar now: the number of guests that it takes now
    """

    def __init__(self, guest: guests.Guest, host: state.FleetHost, now: int,
                 most: int, leavers: Sequence[state.Instance]) -> None:
        """Prepare the counts.

        :param now: the number of guests that the host takes now
        :param most: the number of guests that are needed
        :param leavers: the instances that may leave
        """
        self.name = host.name
        self.now = now
        self._guest = guest
        self._host = host
        self._most = (most if placement.explain_unfit(guest, host.state)
                      is None else 0)
        self._leavers = leavers
        demand = guest.demand
        #: Whether the guest fits if enough cells have room.
        self._counts = claim.counts_cells(demand, host.state.supply)
        self._width = (len(demand.cells) if demand.cells and
                       demand.immune else 0)
        self._cells = {cell.id: cell for cell in host.state.supply.cells}
        self._takes = {number: self._taken(cell)
                       for number, cell in self._cells.items()}

    def bound(self, gone: Collection[state.Instance]) -> int:
        """Return the most guests that the host may take without instances.

        The bound is never too low, and never falls if more instances leave.
        """
        most = self._by_sums(gone)
        # The bound by cells takes longer to compute.
        return (most if most <= self.now else
                min(most, self._by_cells(gone)))

    def gain(self, gone: Collection[state.Instance]) -> int:
        """Count how many more guests the host takes without instances."""
        most = self.bound(gone)
        if most > 1 or (most > self.now and not self._counts):
            most = len(admission.place_guests(
                self._guest, moving.leave_all(gone, self._host).state, most))
        return max(0, most - self.now)

    def find_sets(self, size: int) -> Iterator[tuple[state.Instance, ...]]:
        """Yield sets of instances that may all have to leave.

        :param size: the number of instances in a set
        """
        if self._by_sums(self._leavers) <= self.now:
            return
        for chosen in itertools.combinations(self._leavers, size):
            count = self.bound(chosen)
            if count > self.now and (not self._counts or all(
                    self.bound(fewer) < count for fewer
                    in itertools.combinations(chosen, size - 1))):
                yield chosen

    def _taken(self, cell: supplies.CellSupply) -> int:
        """Return the most guest cells that a host cell may take."""
        if not self._width:
            return self._most
        demand = self._guest.demand.cells[0]
        supply = self._host.state.supply
        if cells.obstacle(demand, cell, supply.cpu_ratio,
                          supply.ram_ratio) is not None:
            return 0
        needed = demand.pcpus + demand.emulator_pcpus
        return min(self._most,
                   len(cell.free) // needed if needed else self._most)

    def _by_sums(self, gone: Collection[state.Instance]) -> int:
        most = self._most
        for needed, *free in zip(
                self._guest.sums, self._host.state.free,
                *(instance.guest.sums for instance in gone), strict=True):
            if needed > sum(free):
                return 0
            if needed:
                most = min(most, sum(free) // needed)
        return most

    def _by_cells(self, gone: Collection[state.Instance]) -> int:
        if not self._width:
            return self._most
        takes = dict(self._takes)
        numbers: set[int] = set()
        for instance in gone:
            numbers.update(instance.cells)
        for number in numbers:
            own = [one for one in gone if number in one.cells]
            takes[number] = self._taken(functools.reduce(
                lambda cell, one: moving.release_cell(one, cell), own,
                self._cells[number]))
        # Each cell of a guest is on another host cell.
        count = self._most
        while count and sum(min(take, count) for take in takes.values()
                            ) < count * self._width:
            count -= 1
        return count
