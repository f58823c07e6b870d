# SPDX-License-Identifier: Apache-2.0

"""Say how many guests a host may take once some of its instances are gone.

What is said here is never too few, and grows with who is gone: a host that
takes more guests without some instances is found among the departures.
"""

import itertools
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt.fit import cell as cells
from hpcvirt.fit import claim
from hpcvirt.fit import supply as supplies
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import moving
from hpcvirt.fleet import state


class FreedBound:
    """The instances of one host that may leave it for guests of one kind.

    :ivar now: how many guests it takes as it is
    """

    def __init__(self, guest: guests.Guest, host: state.FleetHost, now: int,
                 most: int, leavers: Sequence[state.Instance]) -> None:
        """Look at a host.

        :param most: the number of guests that are needed
        :param leavers: the instances that may leave
        """
        self.now = now
        self._guest = guest
        self._host = host
        self._most = most
        self._leavers = leavers
        demand = guest.demand
        self._width = (len(demand.cells) if demand.cells and
                       claim.is_immune(demand) else 0)
        self._takes = {cell.id: self._taken(cell)
                       for cell in host.state.supply.cells}
        self._memo: dict[tuple[int, tuple[int, ...]], int] = {}

    def bound(self, gone: Collection[state.Instance]) -> int:
        """Compute how many guests it may take at most."""
        return min(self._by_sums(gone), self._by_cells(gone))

    def of(self, size: int) -> Iterator[tuple[state.Instance, ...]]:
        """Yield sets of this size whose instances all have to leave."""
        if self._by_sums(self._leavers) <= self.now:
            return
        found = (self._unions(size) if self._width else
                 map(frozenset, itertools.combinations(
                     range(len(self._leavers)), size)))
        for numbers in found:
            chosen = [self._leavers[number] for number in sorted(numbers)]
            count = self.bound(chosen)
            if count > self.now and all(
                    self.bound([one for one in chosen if one is not spared])
                    < count for spared in chosen):
                yield tuple(chosen)

    def _unions(self, size: int) -> set[frozenset[int]]:
        """Combine the sets after which single cells take more."""
        parts = set(itertools.chain.from_iterable(
            self._parts(number, size) for number in self._takes))
        by_sums = {frozenset((number,))
                   for number in range(len(self._leavers))}
        found: set[frozenset[int]] = set()
        layer = {frozenset[int]()}
        while layer:
            wider = set()
            for numbers in layer:
                chosen = [self._leavers[number] for number in numbers]
                limited = self._by_sums(chosen) < self._by_cells(chosen)
                if self.bound(chosen) >= self._most:
                    continue
                for part in by_sums if limited else parts:
                    union = numbers | part
                    if len(union) <= size and union not in found:
                        wider.add(union)
            found |= wider
            layer = wider
        return {numbers for numbers in found if len(numbers) == size}

    def _parts(self, cell: int, size: int) -> Iterator[frozenset[int]]:
        there = [number for number, instance in enumerate(self._leavers)
                 if cell in instance.cells]
        takes: dict[tuple[int, ...], int] = {(): self._takes[cell]}
        if takes[()] >= self._most:
            return
        for count in range(1, min(size, len(there)) + 1):
            for chosen in itertools.combinations(there, count):
                takes[chosen] = self._without(cell, chosen)
                if takes[chosen] > max(
                        takes[fewer] for fewer
                        in itertools.combinations(chosen, count - 1)):
                    yield frozenset(chosen)

    def _without(self, number: int, gone: tuple[int, ...]) -> int:
        key = number, gone
        if key not in self._memo:
            cell = next(cell for cell in self._host.state.supply.cells
                        if cell.id == number)
            for one in gone:
                cell = moving.release_cell(self._leavers[one], cell)
            self._memo[key] = self._taken(cell)
        return self._memo[key]

    def _taken(self, cell: supplies.CellSupply) -> int:
        """Compute how many guest cells a host cell takes at most."""
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
        free = self._host.state.free
        for instance in gone:
            free = free.plus(instance.guest.sums)
        return min(self._most, free.times(self._guest.sums))

    def _by_cells(self, gone: Collection[state.Instance]) -> int:
        if not self._width:
            return self._most
        places = {instance.id: place
                  for place, instance in enumerate(self._leavers)}
        takes = dict(self._takes)
        for number in {cell for instance in gone for cell in instance.cells}:
            takes[number] = self._without(number, tuple(sorted(
                places[instance.id] for instance in gone
                if number in instance.cells)))
        # Each of these guests has each of its cells on another host cell.
        count = self._most
        while count and sum(min(take, count) for take in takes.values()
                            ) < count * self._width:
            count -= 1
        return count
