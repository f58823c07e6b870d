# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Which guest cell fits on which host cell."""

from collections.abc import Sequence

from hpcvirt.fit import cell as cells
from hpcvirt.fit import demand as demands
from hpcvirt.fit import matching
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies


class FitMatrix:
    """The result for every pair of a guest cell and a host cell.

    A host cell is identified by its rank: its position in the order given.

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
        """Say why there are too few host cells, devices and networks aside.

        :returns: None if every guest cell can have a host cell of its own
        """
        if self._demand.uniform:
            if len(self.fitting[0]) >= len(self.fitting):
                return None
            contending = list(range(len(self.fitting)))
        else:
            contending = matching.contenders(self.fitting)
            if not contending:
                return None
        free = len(set().union(*(self.fitting[guest]
                                 for guest in contending)))
        causes = self.obstacles(contending)
        if len(contending) == len(self.fitting):
            return reasons.too_few_cells(free, len(contending), causes)
        if len(contending) == 1:
            return reasons.Misfit(reasons.Code.NO_CELL_FOR,
                                  {'guest_cell': contending[0]}, causes)
        return reasons.Misfit(reasons.Code.CELLS_CONTENDED, {
            'guest_cells': ', '.join(map(str, contending)),
            'free': free, 'needed': len(contending)}, causes)

    def obstacles(self, guests: Sequence[int] | None = None,
                  ranks: Sequence[int] | None = None,
                  ) -> tuple[reasons.Misfit, ...]:
        """List what keeps guest cells off host cells, without repetitions.

        :param guests: numbers of guest cells, all of them if None
        :param ranks: ranks of host cells, all of them if None
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
        return reasons.by_cell(found)
