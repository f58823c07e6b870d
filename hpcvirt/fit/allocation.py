# SPDX-License-Identifier: Apache-2.0

"""Charge a host with the resources of a guest, and release them.

:func:`release` is the inverse of :func:`charge`, even if other guests have
come and gone in between.
"""

import dataclasses
from collections.abc import Sequence
from collections.abc import Set

from hpcvirt.fit import affinity_check
from hpcvirt.fit import cell_assignment as cell_assignments
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import pins
from hpcvirt.fit import supply as supplies
from hpcvirt.fit import taken_devices


@dataclasses.dataclass(frozen=True, slots=True)
class Holding:
    """The resources of its host that a guest holds.

    :ivar placement: its host cells, and the page size on each of them
    :ivar cpus: its dedicated host CPUs
    :ivar devices: the number of devices that each PCI pool of the host loses
        to it, see :mod:`hpcvirt.fit.taken_devices`; empty if it has none
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
    pools, lost = _charged_pools(demand, supply, placement,
                                 providers or placement.providers)
    if lost:
        # The scheduler drops a pool when it becomes empty.
        pools = tuple(after for before, after
                      in zip(supply.pools or (), pools or (), strict=True)
                      if after.free or not before.free)
    return dataclasses.replace(
        supply, cells=_charged_cells(demand, supply, placement), pools=pools)


def charge(demand: demands.Demand, supply: supplies.Supply,
           placement: cell_assignments.CellAssignment,
           ) -> tuple[supplies.Supply, Holding]:
    """Allocate CPUs, memory, pages and devices as nova-compute does.

    A PCI pool that becomes empty keeps its place.

    :returns: the host without the resources of the guest, and these resources
    """
    cells = _charged_cells(demand, supply, placement)
    cpus = frozenset[int]().union(*(
        old.free - new.free for old, new
        in zip(supply.cells, cells, strict=True) if old is not new))
    pools, lost = _charged_pools(demand, supply, placement,
                                 placement.providers)
    return (dataclasses.replace(supply, cells=cells, pools=pools),
            Holding(placement, cpus, lost))


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
        pools = tuple(map(taken_devices.give, pools, holding.devices))
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
    :param cpus: the host CPUs of the whole guest
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
        pages=tuple([
            supplies.PageSupply(size_kib, pool.total, pool.used + count,
                                pool.free - count)
            if pool.size_kib == size_kib else pool for pool in cell.pages]))


def _charged_cells(demand: demands.Demand, supply: supplies.Supply,
                   placement: cell_assignments.CellAssignment,
                   ) -> tuple[supplies.CellSupply, ...]:
    own = dict(zip(placement.cells, zip(
        demand.cells, placement.pages_kib, strict=True), strict=True))
    return tuple([take(own[cell.id][0], cell, own[cell.id][1])
                  if cell.id in own else cell for cell in supply.cells])


def _charged_pools(demand: demands.Demand, supply: supplies.Supply,
                   placement: cell_assignments.CellAssignment,
                   providers: devices.Providers,
                   ) -> tuple[Sequence[devices.Pool] | None, tuple[int, ...]]:
    """Take devices from pools, and count what each pool loses."""
    allocator = affinity_check.device_allocator(demand, supply, providers)
    # A guest without NUMA topology has no cells, and ignores affinity.
    lost = allocator.take(placement.cells or None) if allocator else ()
    if supply.pools is None or not isinstance(lost, list):
        return supply.pools, ()
    return tuple(taken_devices.give(pool, -count) for pool, count in zip(
        supply.pools, lost, strict=True)), tuple(lost)
