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

"""Compute what is left of a host once a guest has been placed on it."""

import dataclasses
from collections.abc import Sequence

from hpcvirt.fit import affinity_check
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import pins
from hpcvirt.fit import placement as placements
from hpcvirt.fit import supply as supplies


def allocate(demand: demands.Demand, supply: supplies.Supply,
             placement: placements.Placement,
             providers: devices.Providers = ()) -> supplies.Supply:
    """Allocate CPUs, memory, pages and devices as Nova's claim does.

    :param placement: where the engine has placed the guest
    :param providers: what Placement allocated to each PCI request
    :returns: the host without what the guest has now
    """
    guest_cells = dict(zip(placement.cells, demand.cells, strict=True))
    pages_kib = dict(zip(placement.cells, placement.pages_kib, strict=True))
    cells = tuple(
        take(guest_cells[cell.id], cell, pages_kib[cell.id])
        if cell.id in guest_cells else cell for cell in supply.cells)
    return dataclasses.replace(
        supply, cells=cells,
        pools=_pools(demand, supply, placement, providers))


def take(demand: demands.CellDemand, cell: supplies.CellSupply,
         page_kib: int | None) -> supplies.CellSupply:
    """Allocate CPUs, memory and pages of a host cell to a guest cell."""
    sizes = [pool.size_kib for pool in cell.pages]
    size_kib = page_kib or min(sizes, default=None)
    count = demand.memory_mib * 1024 // size_kib if size_kib else 0
    return cell._replace(
        free=cell.free - pins.choose(demand, cell).taken,
        cpu_usage=cell.cpu_usage + demand.vcpus,
        memory_used_mib=cell.memory_used_mib + demand.memory_mib,
        pages=tuple(
            pool._replace(used=pool.used + count, free=pool.free - count)
            if pool.size_kib == size_kib else pool for pool in cell.pages))


def _pools(demand: demands.Demand, supply: supplies.Supply,
           placement: placements.Placement, providers: devices.Providers,
           ) -> Sequence[devices.Pool] | None:
    allocator = affinity_check.device_allocator(demand, supply, providers)
    # Affinity means nothing for a guest without NUMA topology.
    left = allocator.allocate(placement.cells or None) if allocator else None
    if supply.pools is None or left is None:
        return supply.pools
    # Nova drops a pool when it becomes empty.
    return tuple(pool._replace(free=free)
                 for pool, free in zip(supply.pools, left, strict=True)
                 if free or not pool.free)
