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

"""How much memory the cells of a host can give to guests, and in what pages.

From the memory of a cell go, first, what the host needs for itself and what
the emulators of the guests need beside the guests' own memory; whole pages
of what is left are the guests'. What the host keeps in truth, after all
rounding and with the host full of its smallest guests, is never less than
the reserve.
"""

import dataclasses
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import notice
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import host as host_model
from hpcvirt.model import shape

DEFAULT_RESERVE_MIB = 2048
DEFAULT_RESERVE_SHARE = 8
DEFAULT_PAGE_KIB = 2048
GIB_PAGE_KIB = 1024 * 1024

#: Below this a cell is left to the host. Nothing that is called HPC runs in
#: less, and one poor cell would make every guest that spans cells poor.
LEAST_MIB_PER_CPU = 128


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Piece:
    """The part of a guest that lies on one host cell.

    :ivar cpus: dedicated CPUs
    :ivar guest_cells: cells of the guest, which share its fixed overhead
    :ivar memory_mib: memory, once it is known
    :ivar page_kib: size of its pages
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
    """What guests can have of a cell.

    :ivar id: the host cell
    :ivar cores: dedicated cores
    :ivar pages: pages for guests, at most
    :ivar page_kib: their size
    """

    id: int
    cores: int
    pages: int
    page_kib: int

    def share_mib(self, cores: int) -> int:
        """The memory that goes with some of the cores, in whole MiB."""
        pages = self.pages * cores // self.cores
        return pages * self.page_kib // 1024


def pieces(guest: shape.Shape) -> Iterator[Piece]:
    """The parts of a guest, each on a host cell of its own.

    The CPU of isolated emulator threads is counted where it must be: beside
    the only guest cell. Of several cells just one has it.
    """
    alone = len(guest.cells) == 1
    for cell in set(guest.cells):
        yield Piece(guest.pcpus if alone else cell.pcpus, len(guest.cells),
                    cell.memory_mib, cell.page_kib or 0)


def overhead_mib(profile: profiles.Profile, piece: Piece) -> float:
    """What the emulator of a guest needs on one of the guest's cells."""
    return (profile.guest_overhead_mib / piece.guest_cells
            + profile.guest_overhead_mib_per_vcpu * piece.cpus
            + profile.guest_overhead_permille * piece.memory_mib / 1000)


def reserve_mib(profile: profiles.Profile, cell: host_model.Cell) -> int:
    """What the host is promised of a cell."""
    if profile.host_reserve_mib_per_cell is not None:
        return profile.host_reserve_mib_per_cell
    return min(DEFAULT_RESERVE_MIB, cell.memory_mib // DEFAULT_RESERVE_SHARE)


def host_pages_mib(profile: profiles.Profile) -> int:
    """The huge pages of the host's own programs on one cell."""
    return sum(-(-size_kib * count // 1024)
               for size_kib, count in profile.host_pages_per_cell)


def poor_cells(divided: cpu_partition.Division,
               profile: profiles.Profile) -> dict[int, int]:
    """The cells with too little memory for guests, and what they could give.

    :returns: cell id -> MiB, zero if it could give none
    """
    poor = {}
    for share in divided.cells:
        cpus = len(share.dedicated)
        room = _room_mib(divided.host.by_id[share.id], share,
                         [Piece(cpus, 1)], profile)
        if room < LEAST_MIB_PER_CPU * cpus:
            poor[share.id] = max(0, int(room))
    return poor


def pools(divided: cpu_partition.Division, profile: profiles.Profile,
          pieces: Collection[Piece], page_kib: int) -> tuple[CellPool, ...]:
    """Size the pool of each cell from which guests get cores.

    :param pieces: every piece of a guest that may come to this host
    """
    found = []
    for share in divided.cells:
        room = _room_mib(divided.host.by_id[share.id], share, pieces,
                         profile)
        found.append(CellPool(share.id, len(share.cores),
                              max(0, int(room)) * 1024 // page_kib,
                              page_kib))
    return tuple(found)


def _room_mib(cell: host_model.Cell, share: cpu_partition.CellShare,
              pieces: Collection[Piece],
              profile: profiles.Profile) -> float:
    cpus = len(share.dedicated)
    emulators = max((
        cpus // piece.cpus * overhead_mib(
            profile, dataclasses.replace(piece, memory_mib=0))
        for piece in pieces), default=0.0)
    left = (cell.memory_mib - reserve_mib(profile, cell)
            - host_pages_mib(profile) - emulators)
    return left / (1 + profile.guest_overhead_permille / 1000)


def choose_page(divided: cpu_partition.Division, profile: profiles.Profile,
                ) -> tuple[int, tuple[notice.Notice, ...]]:
    """Choose the size of the guests' pages, in KiB.

    :raises InvalidInput: naming the cells, if the profile asks for a size
        that some of them do not have
    """
    host = divided.host
    cells = [host.by_id[share.id] for share in divided.cells]
    small = small_page_kib(host)
    known = [{pool.size_kib for pool in cell.pages} | {small}
             for cell in cells]
    common = set.intersection(*known) if known else set()
    wanted = profile.page_size or DEFAULT_PAGE_KIB
    _check_host_pages(host, common - {small} or {
        DEFAULT_PAGE_KIB, GIB_PAGE_KIB}, profile)
    if wanted in common:
        return wanted, ()
    if not any(sizes - {small} for sizes in known) and _is_usual(small,
                                                                 wanted):
        return wanted, (notice.Notice(
            notice.Code.HUGE_PAGES_UNKNOWN,
            f'the topology names no huge pages; {page_name(wanted)} pages '
            'are taken for granted, as on every machine with 4 KiB pages',
            (host.name,)),)
    if profile.page_size is not None:
        without = [cell.id for cell, sizes in zip(cells, known, strict=True)
                   if wanted not in sizes]
        raise exception.InvalidInput(
            host.name, f'{cpu_partition.cells_in_words(without)} no pages of '
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


def _is_usual(small_kib: int, wanted_kib: int) -> bool:
    """Whether machines with such small pages have such huge ones."""
    return small_kib == host_model.SMALL_PAGE_KIB and wanted_kib in (
        DEFAULT_PAGE_KIB, GIB_PAGE_KIB)


def small_page_kib(host: host_model.Host) -> int:
    """The size of the host's normal pages."""
    return min((pool.size_kib for cell in host.cells for pool in cell.pages),
               default=host_model.SMALL_PAGE_KIB)


def uneven(host: host_model.Host,
           found: Sequence[CellPool]) -> Iterator[notice.Notice]:
    """Say where gigabyte pages do not come out even between like cells."""
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
        richer = [f'{cpu_partition.cells_in_words(cells)} room for {pages}'
                  for pages, cells in rooms.items()]
        yield notice.Notice(
            notice.Code.HUGE_PAGES_UNEVEN,
            f'pages of {page_name(found[0].page_kib)} do not come out even; '
            f'every cell can give {least}, ' + ', '.join(richer),
            (host.name,))


def page_name(size_kib: int) -> str:
    """``2m`` for 2048, ``1g`` for 1048576, ``64k`` for 64."""
    for unit, kib in (('g', GIB_PAGE_KIB), ('m', 1024)):
        if size_kib % kib == 0:
            return f'{size_kib // kib}{unit}'
    return f'{size_kib}k'


def round_down(memory_mib: int, step_mib: int, page_kib: int) -> int:
    """Round a guest cell's memory to a figure that people can remember.

    The step is halved as long as rounding would cost more than a sixteenth,
    but stays whole pages and whole MiB.
    """
    page_mib = max(1, page_kib // 1024)
    while step_mib > page_mib and memory_mib % step_mib * 16 > memory_mib:
        step_mib //= 2
    step_mib = max(page_mib, step_mib - step_mib % page_mib)
    return memory_mib - memory_mib % step_mib
