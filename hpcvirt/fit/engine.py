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

"""Decide whether a guest fits on a host, and on which cells.

There are three entry points:

* :func:`fit` takes a Shape, a Host and its Usage;
* :func:`place` takes a Demand and a Supply, compiled once for many calls;
* :func:`check` returns no placement, and stops as soon as it has an answer.

The result is a :class:`~hpcvirt.fit.placement.Placement` or a
:class:`~hpcvirt.fit.reasons.Misfit`. It is exact: of all arrangements that
fit, it is the one that Nova's claim tries first.
:mod:`hpcvirt.fit.claim` predicts what the claim really does where Nova has a
defect.
"""

from collections.abc import Iterable
from collections.abc import Sequence

from hpcvirt.fit import affinity_check
from hpcvirt.fit import cell as cells
from hpcvirt.fit import cell_search
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import fit_matrix
from hpcvirt.fit import order
from hpcvirt.fit import placement as placements
from hpcvirt.fit import reasons
from hpcvirt.fit import scope_check
from hpcvirt.fit import supply as supplies
from hpcvirt.model import host as host_model
from hpcvirt.model import shape as shape_model
from hpcvirt.model import usage as usage_model


def fit(shape: shape_model.Shape, host: host_model.Host,
        usage: usage_model.Usage, pools: Sequence[devices.Pool] = (),
        packing: bool = False) -> placements.Placement | reasons.Misfit:
    """Place a Shape on a Host in its current state.

    :param pools: free PCI devices, see :func:`hpcvirt.fit.devices.pool`
    :param packing: ``packing_host_numa_cells_allocation_strategy``
    """
    return place(demands.of_shape(shape),
                 supplies.of_host(host, usage, pools), packing)


def check(demand: demands.Demand, supply: supplies.Supply,
          packing: bool = False,
          providers: devices.Providers = ()) -> reasons.Misfit | None:
    """Say why a guest does not fit.

    As exact as :func:`place` but cheaper: where host cells need only be
    counted, it examines no more of them than necessary.

    :returns: None if the guest fits
    """
    result: object
    if demand.cells and demand.uniform and not demand.selective:
        result = first_with_room(demand, supply, supply.cells)
    else:
        result = place(demand, supply, packing, providers)
    return result if isinstance(result, reasons.Misfit) else None


def place(demand: demands.Demand, supply: supplies.Supply,
          packing: bool = False, providers: devices.Providers = (),
          ) -> placements.Placement | reasons.Misfit:
    """Place a guest on the first cells that fit, in the claim's order.

    :param packing: ``packing_host_numa_cells_allocation_strategy``
    :param providers: what Placement allocated to each PCI request
    """
    if not demand.cells:
        return placements.Placement(())
    ordered = order.claim_order(demand, supply, packing)
    ranks = arrange(demand, supply, ordered,
                    affinity_check.AffinityCheck(demand, supply, providers))
    if isinstance(ranks, reasons.Misfit):
        return ranks
    chosen = [ordered[rank] for rank in ranks]
    return scope_check.enforce(demand, supply, placements.Placement(
        cells=tuple(cell.id for cell in chosen),
        pages_kib=tuple(map(cells.page_size, demand.cells, chosen))))


def arrange(demand: demands.Demand, supply: supplies.Supply,
            ordered: Sequence[supplies.CellSupply],
            affinity: affinity_check.AffinityCheck,
            ) -> tuple[int, ...] | reasons.Misfit:
    """Find the first arrangement of a guest on host cells in an order.

    :returns: for each guest cell the rank of its host cell
    """
    misfit = _too_small(demand, supply)
    if misfit is not None:
        return misfit
    matrix = fit_matrix.FitMatrix(demand, supply, ordered)
    return (matrix.shortage() or
            cell_search.first_arrangement(matrix, affinity))


def is_short(demand: demands.Demand, supply: supplies.Supply) -> bool:
    """Whether counting CPUs and pages shows that a guest does not fit.

    It takes a fraction of the time of :func:`check`, and looks at no more
    cells than that for a guest that fits.

    :returns: False if the guest may fit
    """
    needed = len(demand.cells)
    if not demand.uniform or needed > len(supply.cells):
        return False
    guest_cell = demand.cells[0]
    spare = len(supply.cells) - needed
    for cell in supply.cells:
        if (cells.has_pcpus(guest_cell, cell)
                and cells.has_pages(guest_cell, cell)
                and cells.has_siblings(guest_cell, cell)):
            needed -= 1
            if not needed:
                return False
        else:
            spare -= 1
            if spare < 0:
                return True
    return False


def first_with_room(demand: demands.Demand, supply: supplies.Supply,
                    ordered: Iterable[supplies.CellSupply],
                    ) -> list[supplies.CellSupply] | reasons.Misfit:
    """Find a host cell with room for each of several equal guest cells.

    :param demand: a uniform one
    :returns: the first such cells in this order, or why there are too few
    """
    misfit = _too_small(demand, supply)
    if misfit is not None:
        return misfit
    found: list[supplies.CellSupply] = []
    obstacles: list[reasons.Misfit] = []
    guest_cell = demand.cells[0]
    for cell in ordered:
        misfit = cells.obstacle(guest_cell, cell, supply.cpu_ratio,
                                supply.ram_ratio)
        if misfit is not None:
            obstacles.append(misfit)
            continue
        found.append(cell)
        if len(found) == len(demand.cells):
            return found
    return reasons.too_few_cells(len(found), len(demand.cells), obstacles)


def _too_small(demand: demands.Demand,
               supply: supplies.Supply) -> reasons.Misfit | None:
    if len(supply.cells) >= len(demand.cells):
        return None
    return reasons.Misfit(reasons.Code.HOST_CELLS, {
        'total': len(supply.cells), 'needed': len(demand.cells)})
