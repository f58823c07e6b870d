# SPDX-License-Identifier: Apache-2.0

"""Count the guest cells of one kind that a host cell still takes.

The count needs no search: it is the least of what CPUs and memory take.
"""

import sys
from collections.abc import Sequence

from hpcvirt.fit import demand as demands
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model

Pages = Sequence[supplies.PageSupply]

#: The count of a resource that does not limit a guest cell.
AMPLE = sys.maxsize


def count(demand: demands.CellDemand, cell: supplies.CellSupply,
          cpu_ratio: float = 1.0, ram_ratio: float = 1.0) -> int:
    """Count the equal guest cells that fit on a host cell side by side."""
    shared = demand.policy is shape_model.CPUPolicy.SHARED
    room = AMPLE
    if not shared:
        room = _dedicated(demand, cell)
    if room and demand.policy is not shape_model.CPUPolicy.DEDICATED:
        room = min(room, _shared(demand, cell, cpu_ratio, ram_ratio))
    return max(0, min(room, _memory(demand, cell))) if room else 0


def _dedicated(demand: demands.CellDemand, cell: supplies.CellSupply) -> int:
    needed = demand.pcpus + demand.emulator_pcpus
    if len(cell.free) < needed or not cell.siblings:
        return 0
    if not demand.pcpus:
        # Nova neither pins nor counts a guest cell without dedicated vCPUs,
        # and has no CPU for its emulator threads.
        return 0 if demand.emulator_pcpus or not demand.vcpus else AMPLE
    if demand.threads is shape_model.ThreadPolicy.ISOLATE:
        width = cell.threads_per_core
        if width > 1 and cell.dedicated != cell.shared:
            return 0
        whole = sum(len(core & cell.free) >= width for core in cell.siblings)
        return whole // needed
    if demand.threads is shape_model.ThreadPolicy.REQUIRE:
        if cell.threads_per_core < 2:
            return 0
        # Threads of shared CPUs are siblings, too.
        if len(cell.free) < len(cell.dedicated) or cell.shared:
            counts = [len(core & cell.free) for core in cell.siblings]
        else:
            counts = list(map(len, cell.siblings))
        return min(len(cell.free) // needed, max(
            sum(free >= threads for free in counts)
            // -(-demand.pcpus // threads)
            for threads in range(2, cell.threads_per_core + 1)))
    return len(cell.free) // needed


def _shared(demand: demands.CellDemand, cell: supplies.CellSupply,
            cpu_ratio: float, ram_ratio: float) -> int:
    """Count by the CPUs and memory that may be overcommitted."""
    if demand.vcpus > len(cell.shared):
        return 0
    room = AMPLE
    if demand.vcpus:
        room = int(min(AMPLE, (len(cell.shared) * cpu_ratio - cell.cpu_usage)
                       // demand.vcpus))
    if demand.memory_mib:
        room = min(room, int(min(AMPLE, (
            cell.memory_mib * ram_ratio - cell.memory_used_mib)
            // demand.memory_mib)))
    return room


def _memory(demand: demands.CellDemand, cell: supplies.CellSupply) -> int:
    """Count by pages, or by memory where the host does not report pages."""
    needed = demand.memory_mib * 1024
    if not needed:
        return AMPLE
    page_kib = demand.page_kib
    overcommits = (page_kib is None
                   and demand.policy is shape_model.CPUPolicy.SHARED)
    if not cell.pages:
        if page_kib is not None:
            return 0
        if overcommits:
            return AMPLE if demand.memory_mib <= cell.memory_mib else 0
        return cell.memory_free_mib // demand.memory_mib
    room = 0
    for pool in _pools(page_kib, cell.pages):
        if needed % pool.size_kib:
            continue
        if overcommits:
            return AMPLE if needed <= pool.total * pool.size_kib else 0
        room += max(pool.free, 0) * pool.size_kib // needed
    return room


def _pools(page_kib: int | None, pages: Pages) -> Pages:
    """Select the pages that a guest cell may use."""
    if page_kib is None:
        return (min(pages),)
    if page_kib > 0:
        return [pool for pool in pages if pool.size_kib == page_kib]
    ascending = sorted(pages)
    if page_kib == shape_model.PageClass.SMALL:
        return ascending[:1]
    if page_kib == shape_model.PageClass.LARGE:
        return ascending[1:]
    return ascending
