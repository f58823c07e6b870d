# SPDX-License-Identifier: Apache-2.0

"""Read the facts of the memory: meminfo, KSM, huge pages, swap."""

import dataclasses
import re
from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt.audit.reading import files as files_module
from hpcvirt.audit.reading.files import Fact
from hpcvirt.audit.reading.files import FactGroup
from hpcvirt.audit.reading.files import Files

_NODE = 'sys/devices/system/node'
_MM = 'sys/kernel/mm'
_KSM = f'{_MM}/ksm'
_THP = f'{_MM}/transparent_hugepage'


@dataclasses.dataclass(frozen=True, slots=True)
class Ksm:
    """Kernel samepage merging.

    :ivar run: 0 stopped, 1 running, 2 stopped and everything unmerged
    :ivar merge_across_nodes: None on a kernel without NUMA
    :ivar pages_shared: pages that are merged now
    :ivar pages_sharing: pages that the merging saves now
    :ivar full_scans: how often it has scanned all memory since the boot
    """

    run: int
    merge_across_nodes: bool | None
    pages_shared: int
    pages_sharing: int
    full_scans: int


@dataclasses.dataclass(frozen=True, slots=True)
class HugePagePool:
    """A pool of huge pages of a cell.

    :ivar surplus: pages above the reservation, which the kernel gives back
    """

    cell: int
    size_kib: int
    total: int
    free: int
    surplus: int


def _amount_mib(files: Files, name: str) -> int:
    return _field_kib(files, 'proc/meminfo', name) // 1024


def _field_kib(files: Files, file: str, name: str) -> int:
    match = re.search(
        rf'^(?:Node +[0-9]+ )?{re.escape(name)}: +([0-9]{{1,18}})(?: kB)?$',
        files.need(file), re.MULTILINE)
    if match is None:
        raise files_module.make_unknown(file, f'has no valid {name}')
    return int(match[1])


def _nodes(files: Files) -> list[int]:
    """List the cells; none on a kernel without NUMA."""
    found = [re.fullmatch('node([0-9]{1,9})', name) for name in
             files.names(_NODE, 'sys/devices/system/cpu')]
    return sorted(int(match[1]) for match in found if match)


def _available_mib(files: Files) -> Mapping[int, int]:
    nodes = _nodes(files)
    if not nodes:
        return {0: _amount_mib(files, 'MemAvailable')}
    found = {}
    for node in nodes:
        name = f'{_NODE}/node{node}/meminfo'
        found[node] = sum(_field_kib(files, name, field) for field in (
            'MemFree', 'Active(file)', 'Inactive(file)',
            'SReclaimable')) // 1024
    return found


def _huge_pages(files: Files) -> Iterator[HugePagePool]:
    nodes = _nodes(files)
    for node in nodes or [0]:
        here = (f'{_NODE}/node{node}/hugepages' if nodes
                else f'{_MM}/hugepages')
        for name in files.names(here, _MM):
            match = re.fullmatch('hugepages-([0-9]{1,12})kB', name)
            if match:
                pool = f'{here}/{name}'
                yield HugePagePool(
                    node, int(match[1]),
                    files.need_number(f'{pool}/nr_hugepages'),
                    files.need_number(f'{pool}/free_hugepages'),
                    files.number(f'{pool}/surplus_hugepages', pool) or 0)


def _ksm(files: Files) -> Ksm | None:
    run = files.number(f'{_KSM}/run', _MM)
    if run is None:
        return None
    return Ksm(
        run, files.flag(f'{_KSM}/merge_across_nodes', _KSM),
        files.need_number(f'{_KSM}/pages_shared'),
        files.need_number(f'{_KSM}/pages_sharing'),
        files.number(f'{_KSM}/full_scans', _KSM) or 0)


def _choice(files: Files, name: str) -> str | None:
    """Read the choice in brackets: ``always [madvise] never``."""
    text = files.text(name, _MM)
    if text is None:
        return None
    match = re.search(r'\[([\w+]{1,32})\]', text)
    if match is None:
        raise files_module.make_unknown(name, 'names no choice')
    return match[1]


class MemoryFacts(FactGroup):
    """The memory."""

    total_mib = Fact(_amount_mib, 'MemTotal')
    swap_total_mib = Fact(_amount_mib, 'SwapTotal')
    swap_used_mib = Fact(lambda files: _amount_mib(files, 'SwapTotal')
                         - _amount_mib(files, 'SwapFree'))
    slab_unreclaimable_mib = Fact(_amount_mib, 'SUnreclaim')
    #: Cell -> memory that programs can still get there: free, in the page
    #: cache, or in slabs that can be reclaimed.
    available_mib = Fact(_available_mib)
    huge_pages = Fact(lambda files: tuple(_huge_pages(files)))
    #: None for a kernel without it.
    ksm = Fact(_ksm)
    #: ``always``, ``madvise`` or ``never``; None without them.
    thp = Fact(_choice, f'{_THP}/enabled')
    thp_defrag = Fact(_choice, f'{_THP}/defrag')
    swappiness = Fact(Files.need_number, 'proc/sys/vm/swappiness')
    #: None on a kernel without it.
    numa_balancing = Fact(Files.number, 'proc/sys/kernel/numa_balancing',
                          'proc/sys/kernel')
