# SPDX-License-Identifier: Apache-2.0

"""Charge a host with the resources of a guest, and release them.

:func:`release` is the inverse of :func:`charge`, even if other guests have
come and gone in between.

Nova pins a guest to CPUs of its host cells (:func:`choose_pins`). Pins do not
decide whether a guest fits, but which resources the host has left. The rules
are those of ``nova.virt.hardware._pack_instance_onto_cores``.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from collections.abc import Set

from hpcvirt.fit import cell_search
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model

_ISOLATE = shape_model.ThreadPolicy.ISOLATE


@dataclasses.dataclass(frozen=True, slots=True)
class Pins:
    """The dedicated CPUs of one guest cell.

    :ivar cpus: a host CPU for each dedicated vCPU, in vCPU order
    :ivar emulator: host CPUs of the emulator threads
    :ivar idle: SMT siblings kept idle for an isolated guest
    """

    cpus: tuple[int, ...]
    emulator: frozenset[int] = frozenset()
    idle: frozenset[int] = frozenset()

    @property
    def taken(self) -> frozenset[int]:
        """All CPUs that other instances cannot use."""
        return self.emulator | self.idle | frozenset(self.cpus)


def pin_guest(demand: demands.Demand, supply: supplies.Supply,
              numbers: Sequence[int]) -> frozenset[int]:
    """Return the dedicated CPUs of a whole guest.

    :param numbers: for each guest cell the id of its host cell
    """
    cells = {cell.id: cell for cell in supply.cells}
    return frozenset[int]().union(*(
        choose_pins(own, cells[number]).taken
        for number, own in zip(numbers, demand.cells, strict=True)))


def choose_pins(demand: demands.CellDemand, cell: supplies.CellSupply) -> Pins:
    """Choose pins for a guest cell on a host cell where it fits."""
    if demand.policy is shape_model.CPUPolicy.SHARED:
        return Pins(())
    isolated = demand.threads is _ISOLATE
    if not isolated and not demand.emulator_pcpus:
        cpus = _whole_cores(demand.pcpus, cell)
        if len(cpus) == demand.pcpus:
            return Pins(cpus)
    cores = [free for core in cell.siblings
             if (free := sorted(core & cell.free))]
    cpus = _spread(demand, cell, cores)
    if isolated:
        rest = [core for core in cores if not set(core) & set(cpus)]
    else:
        rest = [[cpu for cpu in core if cpu not in cpus] for core in cores]
    emulator = frozenset(itertools.islice(
        itertools.chain(*rest), demand.emulator_pcpus))
    own = emulator | frozenset(cpus)
    idle = frozenset().union(*(
        core for core in cell.siblings if isolated and core & own)) - own
    return Pins(cpus, emulator, idle)


def _whole_cores(needed: int, cell: supplies.CellSupply) -> tuple[int, ...]:
    """Take the first free cores with the most threads, as _spread does.

    Stop when there are enough: a cell may have thousands of cores.
    """
    width, free = cell.threads_per_core, cell.free
    cpus: list[int] = []
    for core in cell.siblings:
        if len(cpus) >= needed:
            break
        if len(core) == width and core <= free:
            cpus += sorted(core)
    return tuple(cpus[:needed])


def _spread(demand: demands.CellDemand, cell: supplies.CellSupply,
            cores: list[list[int]]) -> tuple[int, ...]:
    """Fill cores with vCPUs, using as many threads per core as possible."""
    needed = demand.pcpus
    if demand.threads is _ISOLATE:
        width = cell.threads_per_core
        whole = [core for core in cores if len(core) >= width]
        return tuple(core[0] for core in whole[:needed])
    widest = max(map(len, cores), default=0)
    for threads in range(widest, 0, -1):
        wide = [core[:threads] for core in cores if len(core) >= threads]
        if threads * len(wide) >= needed:
            return tuple(itertools.chain(*wide))[:needed]
    return tuple(itertools.chain(*cores))[:needed]


@dataclasses.dataclass(frozen=True, slots=True)
class Holding:
    """The resources of its host that a guest holds.

    :ivar placement: its host cells, and the page size on each of them
    :ivar cpus: its dedicated host CPUs
    :ivar devices: the number of devices that each PCI pool of the host loses
        to it, see :mod:`hpcvirt.fit.devices`; empty if it has none
    """

    placement: demands.CellAssignment
    cpus: frozenset[int] = frozenset()
    devices: tuple[int, ...] = ()


def allocate(demand: demands.Demand, supply: supplies.Supply,
             placement: demands.CellAssignment,
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
           placement: demands.CellAssignment,
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
        pools = tuple(map(devices.return_devices, pools, holding.devices))
    return dataclasses.replace(supply, cells=cells, pools=pools)


def take(demand: demands.CellDemand, cell: supplies.CellSupply,
         page_kib: int | None) -> supplies.CellSupply:
    """Allocate CPUs, memory and pages of a host cell to a guest cell."""
    return charge_cell(demand, cell, page_kib,
                       choose_pins(demand, cell).taken)


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
                   placement: demands.CellAssignment,
                   ) -> tuple[supplies.CellSupply, ...]:
    own = dict(zip(placement.cells, zip(
        demand.cells, placement.pages_kib, strict=True), strict=True))
    return tuple([take(own[cell.id][0], cell, own[cell.id][1])
                  if cell.id in own else cell for cell in supply.cells])


def _charged_pools(demand: demands.Demand, supply: supplies.Supply,
                   placement: demands.CellAssignment,
                   providers: devices.Providers,
                   ) -> tuple[Sequence[devices.Pool] | None, tuple[int, ...]]:
    """Take devices from pools, and count what each pool loses."""
    allocator = cell_search.device_allocator(demand, supply, providers)
    # A guest without NUMA topology has no cells, and ignores affinity.
    lost = allocator.take(placement.cells or None) if allocator else ()
    if supply.pools is None or not isinstance(lost, list):
        return supply.pools, ()
    return tuple(devices.return_devices(pool, -count) for pool, count in zip(
        supply.pools, lost, strict=True)), tuple(lost)
