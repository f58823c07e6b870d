# SPDX-License-Identifier: Apache-2.0

"""Decide whether a guest cell fits on a host cell, and how many fit.

:func:`obstacle` says why a guest cell does not fit, and :func:`count` counts
the equal guest cells that a host cell takes one after the other.
"""

import sys

from hpcvirt.fit import demand as demands
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model

_SHARED = shape_model.CPUPolicy.SHARED
_DEDICATED = shape_model.CPUPolicy.DEDICATED
_ISOLATE = shape_model.ThreadPolicy.ISOLATE
_REQUIRE = shape_model.ThreadPolicy.REQUIRE

#: The thread policies for which the free threads of each core matter.
BY_CORE = (_REQUIRE, _ISOLATE)

#: The count of a resource that does not limit guest cells.
AMPLE = sys.maxsize


def obstacle(demand: demands.CellDemand, cell: supplies.CellSupply,
             cpu_ratio: float = 1.0,
             ram_ratio: float = 1.0) -> reasons.Misfit | None:
    """Say why a guest cell does not fit on a host cell.

    :returns: None if it fits
    """
    policy = demand.policy
    if policy is not _SHARED:
        needed = demand.pcpus + demand.emulator_pcpus
        if needed > len(cell.free):
            if needed > len(cell.dedicated):
                return reasons.Misfit(reasons.Code.CELL_PCPUS, {
                    'cell': cell.id, 'total': len(cell.dedicated),
                    'needed': needed})
            return reasons.Misfit(reasons.Code.FREE_PCPUS, {
                'cell': cell.id, 'free': len(cell.free), 'needed': needed})
    if policy is not _DEDICATED:
        over = _over_limits(demand, cell, cpu_ratio, ram_ratio)
        if over is not None:
            return over
    misfit = _memory(demand, cell)
    if misfit is not None or policy is _SHARED:
        return misfit
    return _cores(demand, cell)


def page_size(demand: demands.CellDemand,
              cell: supplies.CellSupply) -> int | None:
    """Choose the page size that a guest cell gets on a host cell.

    :returns: the size in KiB; None if the guest cell requests no size, or
        if no size has room
    """
    if demand.page_kib is None:
        return None
    needed_kib = demand.memory_mib * 1024
    for pool in _candidate_pools(demand.page_kib, cell):
        if (needed_kib <= pool.free * pool.size_kib and
                needed_kib % pool.size_kib == 0):
            return pool.size_kib
    return None


def _candidate_pools(page_kib: int, cell: supplies.CellSupply,
                     ) -> list[supplies.PageSupply]:
    """List the pools for a page size or class, in Nova's order."""
    if page_kib > 0:
        for pool in cell.pages:
            if pool.size_kib == page_kib:
                return [pool]
        return []
    descending = sorted(cell.pages, key=lambda pool: pool.size_kib,
                        reverse=True)
    if page_kib == shape_model.PageClass.SMALL:
        return descending[-1:]
    if page_kib == shape_model.PageClass.LARGE:
        return descending[:-1]
    return descending


def _over_limits(demand: demands.CellDemand, cell: supplies.CellSupply,
                 cpu_ratio: float, ram_ratio: float) -> reasons.Misfit | None:
    """Check shared vCPUs against the cell's CPUs and allocation ratios."""
    if demand.vcpus > len(cell.shared):
        return reasons.Misfit(reasons.Code.SHARED_CPUS, {
            'cell': cell.id, 'total': len(cell.shared),
            'needed': demand.vcpus})
    vcpus = cell.cpu_usage + demand.vcpus
    if vcpus > len(cell.shared) * cpu_ratio:
        return reasons.Misfit(reasons.Code.CPU_RATIO, {
            'cell': cell.id, 'needed': vcpus,
            'limit': len(cell.shared) * cpu_ratio})
    memory_mib = cell.memory_used_mib + demand.memory_mib
    if memory_mib > cell.memory_mib * ram_ratio:
        return reasons.Misfit(reasons.Code.RAM_RATIO, {
            'cell': cell.id, 'needed': memory_mib,
            'limit': cell.memory_mib * ram_ratio})
    return None


def _memory(demand: demands.CellDemand,
            cell: supplies.CellSupply) -> reasons.Misfit | None:
    page_kib = demand.page_kib
    if page_kib is not None and page_kib < 0:
        if page_size(demand, cell) is not None:
            return None
        return reasons.Misfit(reasons.Code.PAGE_CLASS, {
            'cell': cell.id,
            'size': shape_model.PageClass(page_kib).name.lower(),
            'needed': demand.memory_mib})
    if page_kib is None and not cell.pages:
        return _memory_without_pages(demand, cell)
    # A guest that requests no size gets the smallest one. Its pages may be
    # overcommitted unless it has dedicated CPUs.
    overcommit = page_kib is None and demand.policy is _SHARED
    size_kib = page_kib or min(pool.size_kib for pool in cell.pages)
    for pool in cell.pages:
        if pool.size_kib == size_kib:
            break
    else:
        return reasons.Misfit(reasons.Code.PAGE_SIZE, {
            'cell': cell.id, 'size': size_kib})
    pages, rest = divmod(demand.memory_mib * 1024, size_kib)
    if rest:
        return reasons.Misfit(reasons.Code.PAGE_MULTIPLE, {
            'cell': cell.id, 'size': size_kib, 'needed': demand.memory_mib})
    room = pool.total if overcommit else pool.free
    if pages > room:
        return reasons.Misfit(reasons.Code.FREE_PAGES, {
            'cell': cell.id, 'size': size_kib, 'free': room,
            'needed': pages})
    return None


def _memory_without_pages(demand: demands.CellDemand,
                          cell: supplies.CellSupply) -> reasons.Misfit | None:
    if demand.policy is _SHARED:
        if demand.memory_mib > cell.memory_mib:
            return reasons.Misfit(reasons.Code.MEMORY, {
                'cell': cell.id, 'total': cell.memory_mib,
                'needed': demand.memory_mib})
    elif demand.memory_mib > cell.memory_free_mib:
        return reasons.Misfit(reasons.Code.FREE_MEMORY, {
            'cell': cell.id, 'free': cell.memory_free_mib,
            'needed': demand.memory_mib})
    return None


def _cores(demand: demands.CellDemand,
           cell: supplies.CellSupply) -> reasons.Misfit | None:
    """Check dedicated vCPUs against the thread policy."""
    # Nova treats a guest cell without vCPUs as a missing one.
    if not demand.pcpus + demand.vcpus:
        return reasons.Misfit(reasons.Code.NO_VCPUS)
    if not cell.siblings:
        return reasons.Misfit(reasons.Code.NO_CORES, {'cell': cell.id})
    if demand.threads is _ISOLATE:
        return _isolated(demand, cell)
    if demand.threads is _REQUIRE:
        return _siblings_required(demand, cell)
    return _threads(demand, cell)


def _threads(demand: demands.CellDemand,
             cell: supplies.CellSupply) -> reasons.Misfit | None:
    """Check for enough free threads on any cores."""
    # Nova finds a PCPU for emulator threads only if it pins vCPUs.
    if demand.emulator_pcpus and not demand.pcpus:
        return reasons.Misfit(reasons.Code.EMULATOR_PCPU, {'cell': cell.id})
    needed = demand.pcpus + demand.emulator_pcpus
    free = 0
    for core in cell.siblings:
        free += len(core & cell.free)
        if free >= needed:
            return None
    return reasons.Misfit(reasons.Code.FREE_PCPUS, {
        'cell': cell.id, 'free': free, 'needed': needed})


def _siblings_required(demand: demands.CellDemand,
                       cell: supplies.CellSupply) -> reasons.Misfit | None:
    """Check for cores with t free threads for t vCPUs each, t > 1."""
    if cell.threads_per_core < 2:
        return reasons.Misfit(reasons.Code.NO_SIBLINGS, {'cell': cell.id})
    free = [len(core & cell.free) for core in cell.siblings]
    room = max(threads * sum(count >= threads for count in free)
               for threads in range(2, cell.threads_per_core + 1))
    if room < max(demand.pcpus, 1):
        return reasons.Misfit(reasons.Code.SIBLINGS, {
            'cell': cell.id, 'free': room, 'needed': demand.pcpus})
    return _threads(demand, cell)


def _isolated(demand: demands.CellDemand,
              cell: supplies.CellSupply) -> reasons.Misfit | None:
    """Check for a whole free core for each vCPU."""
    width = cell.threads_per_core
    if not demand.pcpus:
        return reasons.Misfit(reasons.Code.NOTHING_TO_ISOLATE)
    # Nova keeps the siblings of an isolated vCPU idle only on hosts with the
    # old vcpu_pin_set, where both CPU sets are the same.
    if width > 1 and cell.dedicated != cell.shared:
        return reasons.Misfit(reasons.Code.SIBLINGS_ON_ISOLATE, {
            'cell': cell.id})
    whole = sum(len(core & cell.free) >= width for core in cell.siblings)
    needed = demand.pcpus
    if demand.emulator_pcpus and whole >= needed:
        # The emulator threads may get a core with fewer threads.
        whole = sum(core <= cell.free for core in cell.siblings if core)
        needed += demand.emulator_pcpus
    if whole < needed:
        return reasons.Misfit(reasons.Code.FREE_CORES, {
            'cell': cell.id, 'free': whole, 'needed': needed})
    return None


def count(demand: demands.CellDemand, cell: supplies.CellSupply,
          cpu_ratio: float, ram_ratio: float) -> int:
    """Count the equal guest cells that fit on a host cell together.

    For example, a host cell with 11 free PCPUs takes two guest cells of four
    PCPUs, if it has the pages.

    :returns: :data:`AMPLE` if nothing limits their number
    """
    room = AMPLE
    if demand.policy is not _SHARED:
        room = _count_by_pcpus(demand, cell)
    if room and demand.policy is not _DEDICATED:
        room = min(room, _count_by_limits(demand, cell, cpu_ratio, ram_ratio))
    if room:
        room = min(room, count_by_memory(demand, cell))
    return room


def _count_by_pcpus(demand: demands.CellDemand,
                    cell: supplies.CellSupply) -> int:
    """Count guest cells by dedicated CPUs."""
    needed = demand.pcpus + demand.emulator_pcpus
    if len(cell.free) < needed or not cell.siblings:
        return 0
    if not demand.pcpus:
        # Nova neither pins nor counts a guest cell without dedicated vCPUs.
        return AMPLE if _cores(demand, cell) is None else 0
    if demand.threads not in BY_CORE:
        return len(cell.free) // needed
    width = cell.threads_per_core
    free = [len(core & cell.free) for core in cell.siblings]
    if demand.threads is _ISOLATE:
        if width > 1 and cell.dedicated != cell.shared:
            return 0
        return sum(threads >= width for threads in free) // needed
    return min(len(cell.free) // needed,
               _count_on_siblings(demand.pcpus, free, width))


def _count_on_siblings(pcpus: int, free: list[int], width: int) -> int:
    """Count guest cells of which each vCPU needs a sibling.

    :param free: the free threads of each core
    :param width: the most threads of a core
    """
    found = 0
    while True:
        # Nova uses as many threads of each core as possible, but at least two.
        for threads in range(width, 1, -1):
            cores = [core for core, left in enumerate(free) if left >= threads]
            if threads * len(cores) >= pcpus:
                break
        else:
            return found
        missing = pcpus
        for core in cores:
            taken = min(threads, missing)
            free[core] -= taken
            missing -= taken
            if not missing:
                break
        found += 1


def _count_by_limits(demand: demands.CellDemand, cell: supplies.CellSupply,
                     cpu_ratio: float, ram_ratio: float) -> int:
    """Count guest cells by the CPUs and memory that may be overcommitted."""
    if demand.vcpus > len(cell.shared):
        return 0
    room = AMPLE
    if demand.vcpus:
        left = len(cell.shared) * cpu_ratio - cell.cpu_usage
        room = int(min(AMPLE, left // demand.vcpus))
    if demand.memory_mib:
        left = cell.memory_mib * ram_ratio - cell.memory_used_mib
        room = min(room, int(min(AMPLE, left // demand.memory_mib)))
    return max(room, 0)


def count_by_memory(demand: demands.CellDemand,
                    cell: supplies.CellSupply) -> int:
    """Count guest cells by pages, or by memory if there are no pages.

    :returns: :data:`AMPLE` if nothing limits their number
    """
    needed = demand.memory_mib * 1024
    if not needed:
        return AMPLE
    page_kib = demand.page_kib
    overcommits = page_kib is None and demand.policy is _SHARED
    if not cell.pages and page_kib is None:
        if overcommits:
            return AMPLE if demand.memory_mib <= cell.memory_mib else 0
        return max(cell.memory_free_mib, 0) // demand.memory_mib
    if page_kib is None:
        pools = [min(cell.pages, key=lambda pool: pool.size_kib)]
    else:
        pools = _candidate_pools(page_kib, cell)
    room = 0
    for pool in pools:
        if needed % pool.size_kib:
            continue
        if overcommits:
            return AMPLE if needed <= pool.total * pool.size_kib else 0
        room += max(pool.free, 0) * pool.size_kib // needed
    return room
