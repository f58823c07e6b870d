# SPDX-License-Identifier: Apache-2.0

"""Compute what a host has left with a guest, and without it again.

:func:`release` is the inverse of :func:`charge`, whatever other guests have
come and gone between.
"""

import dataclasses
from collections.abc import Set

from hpcvirt.fit import affinity_check
from hpcvirt.fit import cell_assignment as cell_assignments
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import pins
from hpcvirt.fit import supply as supplies


@dataclasses.dataclass(frozen=True, slots=True)
class Holding:
    """The resources of its host that a guest holds.

    :ivar placement: its host cells, and the page size on each of them
    :ivar cpus: the host CPUs that are its own
    :ivar devices: how many devices it has of each PCI pool of the host; empty
        if it has none
    """

    placement: cell_assignments.CellAssignment
    cpus: frozenset[int] = frozenset()
    devices: tuple[int, ...] = ()


def allocate(demand: demands.Demand, supply: supplies.Supply,
             placement: cell_assignments.CellAssignment,
             providers: devices.Providers = ()) -> supplies.Supply:
    """Allocate CPUs, memory, pages and devices as nova-scheduler does.

    :param placement: where the engine has placed the guest
    :param providers: what Placement allocated to each PCI request
    :returns: the host without the resources of the guest
    """
    left = _devices_left(demand, supply, placement, providers)
    pools = supply.pools
    if pools is not None and left is not None:
        # The scheduler drops a pool when it becomes empty.
        pools = tuple(pool._replace(free=free)
                      for pool, free in zip(pools, left, strict=True)
                      if free or not pool.free)
    return dataclasses.replace(
        supply, cells=_charged_cells(demand, supply, placement), pools=pools)


def charge(demand: demands.Demand, supply: supplies.Supply,
           placement: cell_assignments.CellAssignment,
           ) -> tuple[supplies.Supply, Holding]:
    """Allocate CPUs, memory, pages and devices as nova-compute does.

    Like nova-compute, keep a PCI pool that becomes empty in its place.

    :returns: the host without the resources of the guest, and these resources
    """
    cells = _charged_cells(demand, supply, placement)
    cpus = frozenset[int]().union(*(
        old.free - new.free for old, new
        in zip(supply.cells, cells, strict=True) if old is not new))
    left = _devices_left(demand, supply, placement, ())
    pools = supply.pools
    own: tuple[int, ...] = ()
    if pools is not None and left is not None:
        own = tuple(pool.free - free
                    for pool, free in zip(pools, left, strict=True))
        pools = tuple(pool._replace(free=free)
                      for pool, free in zip(pools, left, strict=True))
    return (dataclasses.replace(supply, cells=cells, pools=pools),
            Holding(placement, cpus, own))


def release(demand: demands.Demand, supply: supplies.Supply,
            holding: Holding) -> supplies.Supply:
    """Give the resources of a guest back to its host."""
    own = dict(zip(holding.placement.cells, zip(
        demand.cells, holding.placement.pages_kib, strict=True), strict=True))
    cells = tuple(
        release_cell(own[cell.id][0], cell, own[cell.id][1], holding.cpus)
        if cell.id in own else cell for cell in supply.cells)
    pools = supply.pools
    if pools is not None and holding.devices:
        pools = tuple(pool._replace(free=pool.free + count) for pool, count
                      in zip(pools, holding.devices, strict=True))
    return dataclasses.replace(supply, cells=cells, pools=pools)


def take(demand: demands.CellDemand, cell: supplies.CellSupply,
         page_kib: int | None) -> supplies.CellSupply:
    """Allocate CPUs, memory and pages of a host cell to a guest cell."""
    return charge_cell(demand, cell, page_kib,
                       pins.choose(demand, cell).taken)


def charge_cell(demand: demands.CellDemand, cell: supplies.CellSupply,
                page_kib: int | None,
                cpus: frozenset[int]) -> supplies.CellSupply:
    """Compute what a host cell has left with a guest cell.

    :param page_kib: the size of its pages; None for the smallest
    :param cpus: the host CPUs of the guest, which may be of other cells too
    """
    return _changed(demand, cell, page_kib, cell.free - cpus, 1)


def release_cell(demand: demands.CellDemand, cell: supplies.CellSupply,
                 page_kib: int | None,
                 cpus: frozenset[int]) -> supplies.CellSupply:
    """Compute what a host cell has left without a guest cell on it."""
    return _changed(demand, cell, page_kib,
                    cell.free | (cpus & cell.dedicated), -1)


def _changed(demand: demands.CellDemand, cell: supplies.CellSupply,
             page_kib: int | None, free: Set[int],
             sign: int) -> supplies.CellSupply:
    size_kib = page_kib or min(
        [pool.size_kib for pool in cell.pages], default=None)
    count = sign * (demand.memory_mib * 1024 // size_kib) if size_kib else 0
    return cell._replace(
        free=free, cpu_usage=cell.cpu_usage + sign * demand.vcpus,
        memory_used_mib=cell.memory_used_mib + sign * demand.memory_mib,
        pages=tuple(
            pool._replace(used=pool.used + count, free=pool.free - count)
            if pool.size_kib == size_kib else pool for pool in cell.pages))


def _charged_cells(demand: demands.Demand, supply: supplies.Supply,
                   placement: cell_assignments.CellAssignment,
                   ) -> tuple[supplies.CellSupply, ...]:
    guest_cells = dict(zip(placement.cells, demand.cells, strict=True))
    pages_kib = dict(zip(placement.cells, placement.pages_kib, strict=True))
    return tuple(
        take(guest_cells[cell.id], cell, pages_kib[cell.id])
        if cell.id in guest_cells else cell for cell in supply.cells)


def _devices_left(demand: demands.Demand, supply: supplies.Supply,
                  placement: cell_assignments.CellAssignment,
                  providers: devices.Providers) -> list[int] | None:
    """Count the devices that each pool has left; None if none are taken."""
    allocator = affinity_check.device_allocator(demand, supply, providers)
    # Affinity means nothing for a guest without NUMA topology.
    return allocator.allocate(placement.cells or None) if allocator else None
