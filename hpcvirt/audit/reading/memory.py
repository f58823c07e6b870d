# SPDX-License-Identifier: Apache-2.0

"""Read the facts of the memory: meminfo, KSM, huge pages, swap."""

import re
from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt.audit import facts
from hpcvirt.audit.fact import fact
from hpcvirt.audit.reading import files as files_module

Files = files_module.Files

_NODE = 'sys/devices/system/node'
_MM = 'sys/kernel/mm'
_KSM = f'{_MM}/ksm'
_THP = f'{_MM}/transparent_hugepage'


def read(files: Files) -> facts.MemoryFacts:
    """Read the memory."""
    return facts.MemoryFacts(
        total_mib=fact(lambda: _amount_mib(files, 'MemTotal')),
        swap_total_mib=fact(lambda: _amount_mib(files, 'SwapTotal')),
        swap_used_mib=fact(lambda: _amount_mib(files, 'SwapTotal')
                           - _amount_mib(files, 'SwapFree')),
        slab_unreclaimable_mib=fact(
            lambda: _amount_mib(files, 'SUnreclaim')),
        available_mib=fact(lambda: _available_mib(files)),
        huge_pages=fact(lambda: tuple(_huge_pages(files))),
        ksm=fact(lambda: _ksm(files)),
        thp=fact(lambda: _choice(files, f'{_THP}/enabled')),
        thp_defrag=fact(lambda: _choice(files, f'{_THP}/defrag')),
        swappiness=fact(lambda: files.need_number('proc/sys/vm/swappiness')),
        numa_balancing=fact(lambda: files.number(
            'proc/sys/kernel/numa_balancing', 'proc/sys/kernel')))


def _amount_mib(files: Files, name: str) -> int:
    return _field_kib(files, 'proc/meminfo', name) // 1024


def _field_kib(files: Files, file: str, name: str) -> int:
    amounts = files_module.amounts_kib(files.need(file))
    if name not in amounts:
        raise files_module.make_unknown(file, f'has no valid {name}')
    return amounts[name]


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


def _huge_pages(files: Files) -> Iterator[facts.HugePagePool]:
    nodes = _nodes(files)
    for node in nodes or [0]:
        here = (f'{_NODE}/node{node}/hugepages' if nodes
                else f'{_MM}/hugepages')
        for name in files.names(here, _MM):
            match = re.fullmatch('hugepages-([0-9]{1,12})kB', name)
            if match:
                pool = f'{here}/{name}'
                yield facts.HugePagePool(
                    node, int(match[1]),
                    files.need_number(f'{pool}/nr_hugepages'),
                    files.need_number(f'{pool}/free_hugepages'),
                    files.number(f'{pool}/surplus_hugepages', pool) or 0)


def _ksm(files: Files) -> facts.Ksm | None:
    run = files.number(f'{_KSM}/run', _MM)
    if run is None:
        return None
    return facts.Ksm(
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
