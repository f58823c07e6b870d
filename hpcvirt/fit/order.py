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

"""The order in which Nova's claim tries host cells.

Only the claim on the compute host chooses cells. It accepts the first
arrangement that fits, in lexicographic order of the sorted cells
(``nova.virt.hardware.numa_fit_instance_to_host`` in Nova 32 to 34).
"""

from hpcvirt.fit import demand as demands
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model


def claim_order(demand: demands.Demand, supply: supplies.Supply,
                packing: bool = False) -> list[supplies.CellSupply]:
    """Sort host cells as the claim does.

    Cells are sorted by free PCI devices, then by free CPUs, then by free
    memory. Cells with devices come first for a guest that requests devices.
    For one that does not they come last, except that Nova 32 and 33 then
    ignore devices (:class:`hpcvirt.fit.supply.Supply`). If the guest needs
    every cell of the host, the cells are not sorted.

    :param packing: ``[compute]packing_host_numa_cells_allocation_strategy``:
        False takes the emptiest cells first, True the fullest
    """
    cells = list(supply.cells)
    if len(cells) <= len(demand.cells):
        return cells
    sign = 1 if packing else -1
    near = {cell.id: 0 for cell in cells}
    # The claim does not know of vGPUs, which only Placement allocates.
    wants = any(not request.one_pool for request in demand.requests)
    if wants or supply.spares_devices:
        for pool in supply.pools or ():
            if pool.cell in near and pool.is_pci:
                near[pool.cell] += -pool.free if wants else pool.free
    if demand.cells[0].policy is shape_model.CPUPolicy.SHARED:
        return sorted(cells, key=lambda cell: (
            near[cell.id], -sign * cell.cpu_usage,
            sign * cell.memory_free_mib))
    return sorted(cells, key=lambda cell: (
        near[cell.id], sign * len(cell.free), sign * cell.memory_free_mib))
