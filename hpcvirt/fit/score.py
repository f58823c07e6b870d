# SPDX-License-Identifier: Apache-2.0

"""Score a placement by how near the devices of the guest are."""

from hpcvirt.fit import cell_assignment as cell_assignments
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model


def has_choice(demand: demands.Demand) -> bool:
    """Whether devices of a guest may be on cells other than its own."""
    return bool(demand.cells) and any(
        request.affinity is not shape_model.PCIAffinity.REQUIRED
        for request in demand.requests)


def locality(demand: demands.Demand, supply: supplies.Supply,
             placement: cell_assignments.CellAssignment,
             providers: devices.Providers = ()) -> float:
    """Compute the fraction of a guest's devices on its own host cells.

    :param providers: what Placement allocated to each PCI request
    :returns: 0.0 to 1.0; 0.0 if no device can be allocated
    """
    if not demand.requests or supply.pools is None:
        return 0.0
    left = devices.Allocator(
        demand.requests, supply.pools,
        {cell.id: cell.socket for cell in supply.cells},
        providers or placement.providers).allocate(placement.cells)
    if left is None:
        return 0.0
    near = total = 0
    for pool, free in zip(supply.pools, left, strict=True):
        total += pool.free - free
        if pool.cell in placement.cells:
            near += pool.free - free
    return near / total if total else 0.0
