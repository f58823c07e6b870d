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


class Table:
    """Every pair of a guest cell and a host cell, judged.

    Host cells go by their rank: their place in the order given.

    :ivar cells: the host cells, by rank
    :ivar wishes: for each guest cell the ranks where it fits, ascending
    """

    def __init__(self, demand: demands.Demand, supply: supplies.Supply,
                 ordered: Sequence[supplies.CellSupply]) -> None:
        self.cells = ordered
        self._misfits: dict[demands.CellDemand,
                            list[reasons.Misfit | None]] = {}
        wishes: dict[demands.CellDemand, tuple[int, ...]] = {}
        for wanted in demand.cells:
            if wanted not in wishes:
                column = self._misfits[wanted] = [
                    cells.obstacle(wanted, cell, supply.cpu_ratio,
                                   supply.ram_ratio) for cell in ordered]
                wishes[wanted] = tuple(
                    rank for rank, misfit in enumerate(column)
                    if misfit is None)
        self._demand = demand
        self.wishes = [wishes[wanted] for wanted in demand.cells]

    def shortage(self) -> reasons.Misfit | None:
        """Say why guest cells, each alone, find too few host cells."""
        if self._demand.uniform:
            if len(self.wishes[0]) >= len(self.wishes):
                return None
            contending = list(range(len(self.wishes)))
        else:
            contending = matching.contenders(self.wishes)
            if not contending:
                return None
        free = len(set().union(*(self.wishes[guest]
                                 for guest in contending)))
        causes = self.obstacles(contending)
        if len(contending) == len(self.wishes):
            return reasons.too_few_cells(free, len(contending), causes)
        return reasons.Misfit(reasons.Code.CELLS_CONTENDED, {
            'guest_cells': ', '.join(map(str, contending)),
            'free': free, 'needed': len(contending)}, causes)

    def obstacles(self, guests: Sequence[int] | None = None,
                  ranks: Sequence[int] | None = None,
                  ) -> tuple[reasons.Misfit, ...]:
        """What keeps guest cells off host cells, without repetitions.

        :param guests: numbers of guest cells, all of them if None
        :param ranks: ranks of host cells, all of them if None
        """
        found: list[reasons.Misfit] = []
        numbers = range(len(self.wishes)) if guests is None else guests
        for wanted in dict.fromkeys(self._demand.cells[g] for g in numbers):
            column = self._misfits[wanted]
            for rank in range(len(column)) if ranks is None else ranks:
                misfit = column[rank]
                if misfit is not None and misfit not in found:
                    found.append(misfit)
        return tuple(sorted(
            found, key=lambda misfit: misfit.details.get('cell', -1)))
