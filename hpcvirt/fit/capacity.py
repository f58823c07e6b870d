# SPDX-License-Identifier: Apache-2.0

"""Count the guests of one shape that a host can hold.

Guests are placed one after another, as Nova's claim would place them
(:mod:`hpcvirt.fit.claim`), until one is refused.
"""

import dataclasses

from hpcvirt.fit import allocation
from hpcvirt.fit import demand as demands
from hpcvirt.fit import new_guest
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model


@dataclasses.dataclass(frozen=True, slots=True)
class Filling:
    """A host filled with guests of one shape.

    :ivar count: number of guests placed
    :ivar supply: the resources that are left
    :ivar misfit: why the next guest was refused; None if the limit was
        reached
    """

    count: int
    supply: supplies.Supply
    misfit: reasons.Misfit | None = None

    @property
    def free_pcpus(self) -> int:
        return sum(len(cell.free) for cell in self.supply.cells)


def fill(shape: shape_model.Shape, supply: supplies.Supply,
         limit: int | None = None) -> Filling:
    """Fill a host with guests.

    :param supply: the resources of the host, see
        :func:`hpcvirt.fit.supply.make_supply`
    :param limit: the number of guests after which to stop
    :raises ValueError: for a guest without NUMA cells if there is no limit,
        because the engine never refuses it
    """
    demand = demands.compile_shape(shape)
    if not demand.cells and limit is None:
        raise ValueError('a guest without NUMA cells needs a limit')
    count = 0
    while limit is None or count < limit:
        placement = new_guest.predict(demand, supply)
        if isinstance(placement, reasons.Misfit):
            return Filling(count, supply, placement)
        supply = allocation.allocate(demand, supply, placement)
        supply = dataclasses.replace(supply, cells=tuple(
            _without_full_cores(cell) for cell in supply.cells))
        count += 1
    return Filling(count, supply)


def _without_full_cores(cell: supplies.CellSupply) -> supplies.CellSupply:
    """Drop cores without a free CPU once they outnumber the others.

    Otherwise each claim would examine them again. One of the cores with the
    most threads stays, because Nova counts the threads of a core.
    """
    if len(cell.siblings) < 2 * len(cell.free) + 8:
        return cell
    widest = max(cell.siblings, key=len)
    return cell._replace(siblings=tuple(
        core for core in cell.siblings
        if core is widest or not core.isdisjoint(cell.free)))
