# SPDX-License-Identifier: Apache-2.0

"""Decide which guest cells fit on which host cells.

Guest cells are matched with host cells by Kuhn's algorithm. The graph is given
as adjacency lists: for each left node, the right nodes that it may be matched
with.
"""

from collections.abc import Collection
from collections.abc import Sequence

from hpcvirt.fit import cell as cells
from hpcvirt.fit import demand as demands
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies


class FitMatrix:
    """The result for every pair of a guest cell and a host cell.

    A host cell is identified by its rank: its position in ``ordered``.

    :ivar cells: the host cells, by rank
    :ivar fitting: for each guest cell the ranks where it fits, ascending
    """

    def __init__(self, demand: demands.Demand, supply: supplies.Supply,
                 ordered: Sequence[supplies.CellSupply]) -> None:
        self.cells = ordered
        self._misfits: dict[demands.CellDemand,
                            list[reasons.Misfit | None]] = {}
        fitting: dict[demands.CellDemand, tuple[int, ...]] = {}
        for guest_cell in demand.cells:
            if guest_cell not in fitting:
                column = self._misfits[guest_cell] = [
                    cells.obstacle(guest_cell, cell, supply.cpu_ratio,
                                   supply.ram_ratio) for cell in ordered]
                fitting[guest_cell] = tuple(
                    rank for rank, misfit in enumerate(column)
                    if misfit is None)
        self._demand = demand
        self.fitting = [fitting[guest_cell] for guest_cell in demand.cells]

    def shortage(self) -> reasons.Misfit | None:
        """Say why there are too few host cells with CPUs and memory.

        :returns: None if every guest cell can have a host cell of its own
        """
        if self._demand.uniform:
            if len(self.fitting[0]) >= len(self.fitting):
                return None
            contending = list(range(len(self.fitting)))
        else:
            contending = contenders(self.fitting)
            if not contending:
                return None
        free = len(set().union(*(self.fitting[guest]
                                 for guest in contending)))
        causes = self.obstacles(contending)
        if len(contending) == len(self.fitting):
            return reasons.refuse_host(free, len(contending), causes)
        if len(contending) == 1:
            return reasons.Misfit(reasons.Code.NO_CELL_FOR,
                                  {'guest_cell': contending[0]}, causes)
        return reasons.Misfit(reasons.Code.CELLS_CONTENDED, {
            'guest_cells': ', '.join(map(str, contending)),
            'free': free, 'needed': len(contending)}, causes)

    def obstacles(self, guests: Sequence[int] | None = None,
                  ranks: Sequence[int] | None = None,
                  ) -> tuple[reasons.Misfit, ...]:
        """List why guest cells do not fit on host cells, without repetitions.

        :param guests: numbers of guest cells; None for all
        :param ranks: ranks of host cells; None for all
        """
        found: list[reasons.Misfit] = []
        numbers = range(len(self.fitting)) if guests is None else guests
        for guest_cell in dict.fromkeys(self._demand.cells[number]
                                        for number in numbers):
            column = self._misfits[guest_cell]
            for rank in range(len(column)) if ranks is None else ranks:
                misfit = column[rank]
                if misfit is not None:
                    found.append(misfit)
        return reasons.sort_by_cell(found)


def match(neighbors: Sequence[Collection[int]],
          excluded: Collection[int] = ()) -> dict[int, int] | None:
    """Match every left node with a right node of its own.

    :param neighbors: the right nodes adjacent to each left node
    :param excluded: right nodes that must not be used
    :returns: right node -> left node; None if there is no such matching
    """
    partner: dict[int, int] = {}
    for left in range(len(neighbors)):
        if not _augment(left, neighbors, partner, set(excluded)):
            return None
    return partner


def contenders(neighbors: Sequence[Collection[int]]) -> list[int]:
    """Find left nodes that have too few right nodes between them.

    :returns: their numbers, ascending; empty if all can be matched
    """
    partner: dict[int, int] = {}
    for left in range(len(neighbors)):
        seen: set[int] = set()
        if not _augment(left, neighbors, partner, seen):
            return sorted({left, *(partner[right] for right in seen)})
    return []


def _augment(left: int, neighbors: Sequence[Collection[int]],
             partner: dict[int, int], seen: set[int]) -> bool:
    for right in neighbors[left]:
        if right in seen:
            continue
        seen.add(right)
        if right not in partner or _augment(partner[right], neighbors,
                                            partner, seen):
            partner[right] = left
            return True
    return False
