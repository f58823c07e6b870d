# SPDX-License-Identifier: Apache-2.0

"""Build a Host from the facts of a source, and refuse contradictions.

All readers use this module, so that every source describes a machine by the
same Host, and the same contradictions are found in every source.
"""

import dataclasses
import itertools
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model
from hpcvirt.model import wiring as wiring_model
from hpcvirt.topology import pci

#: Linux has at most 2 ** 10 nodes (CONFIG_NODES_SHIFT).
MAX_CELL = 1023

#: 52 physical address bits: 4 PiB.
MAX_MEMORY_KIB = 2 ** 42

#: The largest distance of an ACPI SLIT, which counts in bytes.
MAX_DISTANCE = 255

#: ARM and POWER have small pages of 64 KiB; the smallest huge page larger
#: than that is 1 MiB (s390x).
_MAX_SMALL_KIB = 64


@dataclasses.dataclass(frozen=True, slots=True)
class CellFacts:
    """The facts of a source about one cell, unchecked.

    :ivar sockets: the sockets of its CPUs
    :ivar memory_kib: total memory, huge pages included
    """

    id: int
    sockets: frozenset[int]
    cpus: frozenset[int]
    memory_kib: int
    pages: tuple[host_model.PagePool, ...]


def host(where: str, name: str, cells: Sequence[CellFacts],
         siblings: Mapping[int, frozenset[int]],
         caches: Mapping[int, frozenset[int]],
         distances: Mapping[tuple[int, int], int],
         devices: Iterable[host_model.Device],
         unknown: frozenset[host_model.Unknown] = frozenset(),
         processor: str | None = None,
         wiring: wiring_model.Wiring | None = None,
         address_bits: int | None = None) -> host_model.Host:
    """Check the facts of a machine and build the Host.

    :param where: the file or directory, for errors
    :param siblings: CPU -> the CPUs of its core, itself included
    :param caches: CPU -> the CPUs that share its last-level cache, which
        may span several cells; the missing CPUs of a cell are assumed to
        share one cache
    :param distances: (from cell, to cell) -> distance; empty if unknown
    :param unknown: the facts that the source does not report
    :param processor: the name of the processors; runs of blanks become one
    :param wiring: how the devices are wired; None if it is unknown
    :param address_bits: the width of physical addresses; None if it is unknown
    :raises InvalidInput: for a contradiction or an impossible value
    """
    _check_name(where, name)
    ordered = sorted(cells, key=lambda cell: cell.id)
    for cell in ordered:
        for fault in _find_faults(cell, host_model.Unknown.SOCKETS in unknown):
            raise exception.InvalidInput(_of_cell(where, cell.id), fault)
    for before, after in itertools.pairwise(ordered):
        if before.id == after.id:
            raise exception.InvalidInput(
                where, f'has two cells with the number {after.id}')
    cell_of = _cell_of(where, ordered)
    if not cell_of:
        raise exception.InvalidInput(where, 'no cell has a CPU')
    if not any(cell.memory_kib for cell in ordered):
        raise exception.InvalidInput(where, 'no cell has memory')
    cores = _partition(where, 'siblings', siblings, cell_of)
    shared = _partition(where, 'last-level cache', caches, cell_of)
    checked = pci.check_devices(where, {cell.id for cell in ordered}, devices)
    return host_model.Host(
        name=name,
        cells=tuple(_cell(where, cell, cores, shared) for cell in ordered),
        distances=_matrix(where, [cell.id for cell in ordered], distances),
        devices=checked,
        unknown=unknown, processor=_processor(where, processor),
        wiring=None if wiring is None or not checked
        else pci.check_wiring(where, wiring, checked),
        address_bits=_address_bits(where, address_bits))


def small_page_kib(sizes: Iterable[int]) -> int:
    """Find the size of a small page among the page sizes of a machine.

    :param sizes: the sizes in KiB; no small page is larger than 64 KiB
    :returns: the smallest size in KiB; 4 if no size can be a small page
    """
    return min((size for size in sizes if 1 <= size <= _MAX_SMALL_KIB),
               default=host_model.SMALL_PAGE_KIB)


def add_small_pages(memory_kib: int, pools: Sequence[host_model.PagePool],
                    small_kib: int) -> tuple[host_model.PagePool, ...]:
    """Add the pool of small pages if the source has only huge pages.

    :param pools: the pools of the source; may be empty
    """
    if any(pool.size_kib <= _MAX_SMALL_KIB for pool in pools):
        return tuple(pools)
    huge_kib = sum(pool.size_kib * pool.total for pool in pools)
    rest = max(memory_kib - huge_kib, 0) // small_kib
    return (host_model.PagePool(small_kib, rest), *pools)


def _of_cell(where: str, cell: int) -> str:
    return f'{where}: cell {cell}'


def _check_name(where: str, name: str) -> None:
    if not name.strip() or len(name) > 255 or not name.isprintable():
        raise exception.InvalidInput(
            where, f'{name[:40]!r} cannot be the name of a host')


def _address_bits(where: str, bits: int | None) -> int | None:
    if bits is not None and not 32 <= bits <= 64:
        raise exception.InvalidInput(
            where, f'{bits} bits cannot be the width of addresses')
    return bits


def _processor(where: str, processor: str | None) -> str | None:
    words = ' '.join((processor or '').split())
    if len(words) > 255 or not words.isprintable():
        raise exception.InvalidInput(
            where, f'{words[:40]!r} cannot be the name of a processor')
    return words or None


def _find_faults(cell: CellFacts, may_lack_socket: bool) -> Iterator[str]:
    if not 0 <= cell.id <= MAX_CELL:
        yield f'a cell has a number from 0 to {MAX_CELL}'
    for cpu in cell.cpus:
        if not 0 <= cpu <= cpuset.MAX_CPU:
            yield f'CPU {cpu} is not within 0 to {cpuset.MAX_CPU}'
    if not cell.sockets and cell.cpus and not may_lack_socket:
        yield 'has CPUs but no socket'
    if len(cell.sockets) > max(1, len(cell.cpus)):
        yield f'has {len(cell.sockets)} sockets, more than CPUs'
    for socket in cell.sockets:
        if not 0 <= socket < 2 ** 31:
            yield f'{socket} cannot be the number of a socket'
    if not 0 <= cell.memory_kib <= MAX_MEMORY_KIB:
        yield (f'{cell.memory_kib} KiB of memory is not within 0 to '
               f'{MAX_MEMORY_KIB}')
    yield from _find_faults_of_pages(cell)


def _find_faults_of_pages(cell: CellFacts) -> Iterator[str]:
    sizes = set()
    for pool in cell.pages:
        if pool.size_kib < 1 or pool.size_kib & (pool.size_kib - 1):
            yield f'{pool.size_kib} KiB is not a page size'
        if pool.size_kib in sizes:
            yield f'has two pools of {pool.size_kib} KiB pages'
        if pool.total < 0:
            yield f'has {pool.total} pages of {pool.size_kib} KiB'
        sizes.add(pool.size_kib)
    paged_kib = sum(pool.size_kib * pool.total for pool in cell.pages)
    # In MiB: a snapshot rounds the memory down, but not the pages.
    if paged_kib // 1024 > cell.memory_kib // 1024:
        yield (f'has pages of {paged_kib} KiB in {cell.memory_kib} KiB of '
               'memory')


def _cell_of(where: str, cells: Iterable[CellFacts]) -> dict[int, int]:
    found: dict[int, int] = {}
    for cell in cells:
        for cpu in sorted(cell.cpus):
            if cpu in found:
                raise exception.InvalidInput(
                    _of_cell(where, cell.id),
                    f'CPU {cpu} is also in cell {found[cpu]}')
            found[cpu] = cell.id
    return found


def _partition(where: str, what: str,
               groups: Mapping[int, frozenset[int]],
               cell_of: Mapping[int, int]) -> dict[int, frozenset[int]]:
    """Check that the groups are a partition of CPUs that exist.

    :returns: the same mapping, with one object for all CPUs of a group
    """
    canonical: dict[frozenset[int], frozenset[int]] = {}
    first_cpu: dict[frozenset[int], int] = {}
    unique = {}
    for cpu, group in sorted(groups.items()):
        unique[cpu] = canonical.setdefault(group, group)
        first_cpu.setdefault(group, cpu)
        here = f'{where}: {what} of CPU {cpu}'
        if cpu not in cell_of:
            raise exception.InvalidInput(here, 'that CPU is in no cell')
        if cpu not in group:
            raise exception.InvalidInput(
                here, f'{cpuset.render(group) or "an empty set"} does not '
                'include the CPU itself')
    for group, cpu in first_cpu.items():
        here = f'{where}: {what} of CPU {cpu}'
        for other in sorted(group):
            if other not in cell_of:
                raise exception.InvalidInput(
                    here, f'CPU {other} does not exist')
            if unique.get(other) is not canonical[group]:
                theirs = cpuset.render(unique.get(other, ()))
                raise exception.InvalidInput(
                    here, f'{cpuset.render(group)[:40]}, but CPU {other} '
                    f'has {theirs[:40] or "none"}')
    return unique


def _cell(where: str, facts: CellFacts,
          siblings: Mapping[int, frozenset[int]],
          caches: Mapping[int, frozenset[int]]) -> host_model.Cell:
    here = _of_cell(where, facts.id)
    missing = facts.cpus - siblings.keys()
    if missing:
        raise exception.InvalidInput(
            here, f'the siblings of CPU {min(missing)} are missing')
    cores = {siblings[cpu] for cpu in facts.cpus}
    for core in cores:
        if not core <= facts.cpus:
            raise exception.InvalidInput(
                here, f'CPU {min(core & facts.cpus)} has the sibling '
                f'{min(core - facts.cpus)}, which is in another cell')
    llc = {cache & facts.cpus for cache in
           {caches[cpu] for cpu in facts.cpus if cpu in caches}}
    rest = facts.cpus.difference(*llc)
    return host_model.Cell(
        id=facts.id,
        socket=min(facts.sockets, default=None),
        cpus=facts.cpus,
        siblings=_ordered(cores),
        llc=_ordered(llc | {rest} if rest else llc),
        memory_mib=facts.memory_kib // 1024,
        pages=tuple(sorted(facts.pages, key=lambda pool: pool.size_kib)),
        other_sockets=frozenset(sorted(facts.sockets)[1:]))


def _ordered(groups: Iterable[frozenset[int]]) -> tuple[frozenset[int], ...]:
    return tuple(sorted(groups, key=min))


def _matrix(where: str, cells: Sequence[int],
            distances: Mapping[tuple[int, int], int],
            ) -> tuple[tuple[int, ...], ...]:
    if not distances:
        return ()
    for (row, column), distance in sorted(distances.items()):
        here = f'{where}: distance from cell {row} to cell {column}'
        for cell in (row, column):
            if cell not in cells:
                raise exception.InvalidInput(
                    here, f'cell {cell} does not exist')
        if not 1 <= distance <= MAX_DISTANCE:
            raise exception.InvalidInput(
                here, f'{distance} is not within 1 to {MAX_DISTANCE}')
    for row, column in itertools.product(cells, cells):
        if (row, column) not in distances:
            raise exception.InvalidInput(
                where, f'the distance from cell {row} to cell {column} '
                'is missing')
    return tuple(tuple(distances[row, column] for column in cells)
                 for row in cells)
