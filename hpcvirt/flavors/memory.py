# SPDX-License-Identifier: Apache-2.0

"""Compute the memory of each cell that guests get, and the size of its pages.

The memory of a cell is reduced by the reserve of the host and by the memory
that emulators need in addition to their guests; guests get whole pages of the
rest. The host therefore keeps at least its reserve, even when it is full of
its smallest guests. If the operator names the pages of guests
(:mod:`hpcvirt.flavors.host_part`), guests get no others.
"""

import dataclasses
import itertools
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import warning
from hpcvirt.model import host as host_model
from hpcvirt.model import shape

DEFAULT_RESERVE_MIB = 2048
DEFAULT_RESERVE_SHARE = 8
DEFAULT_PAGE_KIB = 2048
GIB_PAGE_KIB = 1024 * 1024

#: The host keeps a cell that has less. No HPC workload runs in less, and one
#: such cell would limit the memory of every guest that spans cells.
MIN_MIB_PER_CPU = 128


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class MemoryPart:
    """The part of a guest that lies on one host cell.

    :ivar cpus: its dedicated CPUs
    :ivar guest_cells: the number of cells of the guest, which share the fixed
        overhead of its emulator
    :ivar memory_mib: its memory; 0 before it is known
    :ivar page_kib: the size of its pages; 0 before it is known
    """

    cpus: int
    guest_cells: int
    memory_mib: int = 0
    page_kib: int = 0

    @property
    def pages(self) -> int:
        return self.memory_mib * 1024 // self.page_kib


@dataclasses.dataclass(frozen=True, slots=True)
class CellPool:
    """The cores and pages of a host cell that guests can have.

    :ivar id: the host cell
    :ivar cores: the number of dedicated cores
    :ivar pages: the largest number of pages for guests
    :ivar page_kib: the size of these pages
    """

    id: int
    cores: int
    pages: int
    page_kib: int

    def share_mib(self, cores: int) -> int:
        """Return the memory that goes with a number of cores, in MiB."""
        pages = self.pages * cores // self.cores
        return pages * self.page_kib // 1024


def memory_parts(guest: shape.Shape) -> Iterator[MemoryPart]:
    """List the parts of a guest, each on a host cell of its own.

    The CPU of isolated emulator threads is counted only for a guest of one
    cell; of several cells just one has it.
    """
    alone = len(guest.cells) == 1
    for cell in set(guest.cells):
        yield MemoryPart(guest.pcpus if alone else cell.pcpus,
                         len(guest.cells),
                         cell.memory_mib, cell.page_kib or 0)


def overhead_mib(profile: profiles.Profile, piece: MemoryPart) -> float:
    """Return the MiB that an emulator needs for one part of its guest."""
    return (profile.guest_overhead_mib / piece.guest_cells
            + profile.guest_overhead_mib_per_vcpu * piece.cpus
            + profile.guest_overhead_permille * piece.memory_mib / 1000)


def reserve_mib(profile: profiles.Profile, cell: host_model.Cell) -> int:
    """Return the least memory of a cell that the host keeps, in MiB."""
    if profile.host_reserve_mib_per_cell is not None:
        return profile.host_reserve_mib_per_cell
    return min(DEFAULT_RESERVE_MIB, cell.memory_mib // DEFAULT_RESERVE_SHARE)


def host_pages_mib(profile: profiles.Profile) -> int:
    """Return the MiB of the host's own huge pages on one cell."""
    return sum(-(-size_kib * count // 1024)
               for size_kib, count in profile.host_pages_per_cell)


def poor_cells(partition: cpu_partition.Partition,
               profile: profiles.Profile) -> dict[int, int]:
    """Find the cells with too little memory for guests.

    :returns: cell id -> MiB that the cell could give to guests
    """
    poor = {}
    for share in partition.cells:
        cpus = len(share.dedicated)
        room = _room_mib(partition, share, [MemoryPart(cpus, 1)], profile)
        if room < MIN_MIB_PER_CPU * cpus:
            poor[share.id] = max(0, int(room))
    return poor


def pools(partition: cpu_partition.Partition, profile: profiles.Profile,
          pieces: Collection[MemoryPart], page_kib: int) -> tuple[CellPool,
                                                                  ...]:
    """Size the pool of each cell from which guests get cores.

    :param pieces: the parts of all guests that may run on this host
    """
    return tuple(
        CellPool(share.id, len(share.cores),
                 max(0, int(_room_mib(partition, share, pieces, profile)))
                 * 1024 // page_kib, page_kib)
        for share in partition.cells)


def _room_mib(partition: cpu_partition.Partition,
              share: cpu_partition.CellShare, pieces: Collection[MemoryPart],
              profile: profiles.Profile) -> float:
    cell = partition.host.by_id[share.id]
    given_kib = partition.part.memory_kib(cell)
    if given_kib is not None:
        return given_kib / 1024
    cpus = len(share.dedicated)
    emulators = max((
        cpus // piece.cpus * overhead_mib(
            profile, dataclasses.replace(piece, memory_mib=0))
        for piece in pieces), default=0.0)
    left = (cell.memory_mib - reserve_mib(profile, cell)
            - host_pages_mib(profile) - emulators)
    return left / (1 + profile.guest_overhead_permille / 1000)


def choose_page(partition: cpu_partition.Partition, profile: profiles.Profile,
                ) -> tuple[int, tuple[warning.PlanWarning, ...]]:
    """Choose the size of the guests' pages, in KiB.

    :returns: the size and, if it is an assumption, a warning
    :raises InvalidInput: naming the cells that do not have the size for which
        the operator asks
    """
    host = partition.host
    cells = [host.by_id[share.id] for share in partition.cells]
    small = small_page_kib(host)
    known = [{pool.size_kib for pool in cell.pages} | {small}
             for cell in cells]
    common = set.intersection(*known) if known else set()
    chosen = partition.part.page_kib or profile.page_size
    wanted = chosen or DEFAULT_PAGE_KIB
    _check_host_pages(host, common - {small} or {
        DEFAULT_PAGE_KIB, GIB_PAGE_KIB}, profile)
    if wanted in common:
        return wanted, ()
    is_usual = small == host_model.SMALL_PAGE_KIB and wanted in (
        DEFAULT_PAGE_KIB, GIB_PAGE_KIB)
    if is_usual and not any(sizes - {small} for sizes in known):
        return wanted, (warning.PlanWarning(
            warning.WarningCode.HUGE_PAGES_UNKNOWN,
            f'the topology names no huge pages; pages of {page_name(wanted)} '
            'are assumed, which machines with 4 KiB pages have',
            (host.name,)),)
    if chosen is not None:
        without = [cell.id for cell, sizes in zip(cells, known, strict=True)
                   if wanted not in sizes]
        raise exception.InvalidInput(
            host.name, f'{cpu_partition.format_cells(without)} no pages of '
            f'{page_name(wanted)}, but '
            + ', '.join(page_name(size) for size in sorted(common)))
    huge = sorted(common - {small})
    return (huge[0] if huge else small), ()


def _check_host_pages(host: host_model.Host, huge: set[int],
                      profile: profiles.Profile) -> None:
    for size, _ in profile.host_pages_per_cell:
        if size not in huge:
            raise exception.InvalidInput(
                host.name, 'host_pages_per_cell asks for pages of '
                f'{page_name(size)}; its cells have '
                + ', '.join(page_name(known) for known in sorted(huge)))


def small_page_kib(host: host_model.Host) -> int:
    """Return the size of the host's normal pages."""
    found = itertools.chain.from_iterable(cell.pages for cell in host.cells)
    return min((pool.size_kib for pool in found),
               default=host_model.SMALL_PAGE_KIB)


def warn_uneven(host: host_model.Host,
                found: Sequence[CellPool]) -> Iterator[warning.PlanWarning]:
    """Warn where equal cells have room for different numbers of GiB pages."""
    if not found or found[0].page_kib < GIB_PAGE_KIB // 2:
        return
    if len({pool.cores for pool in found}) > 1:
        return
    least = min(pool.pages for pool in found)
    rooms: dict[int, list[int]] = {}
    for pool in found:
        if pool.pages > least:
            rooms.setdefault(pool.pages, []).append(pool.id)
    if rooms:
        richer = [f'{cpu_partition.format_cells(cells)} room for {pages}'
                  for pages, cells in rooms.items()]
        yield warning.PlanWarning(
            warning.WarningCode.HUGE_PAGES_UNEVEN,
            f'guests get {least} pages of {page_name(found[0].page_kib)} of '
            'each cell, although ' + ' and '.join(richer),
            (host.name,))


def page_name(size_kib: int) -> str:
    """Write a page size: ``2m`` for 2048, ``1g`` for 1048576, ``64k``."""
    for unit, kib in (('g', GIB_PAGE_KIB), ('m', 1024)):
        if size_kib % kib == 0:
            return f'{size_kib // kib}{unit}'
    return f'{size_kib}k'


def round_down(memory_mib: int, step_mib: int, page_kib: int) -> int:
    """Round the memory of a guest cell down to a multiple of a step.

    The step is halved until rounding costs at most a sixteenth of the memory,
    but remains a multiple of the page size and of 1 MiB.
    """
    page_mib = max(1, page_kib // 1024)
    while step_mib > page_mib and memory_mib % step_mib * 16 > memory_mib:
        step_mib //= 2
    step_mib = max(page_mib, step_mib - step_mib % page_mib)
    return memory_mib - memory_mib % step_mib
