# SPDX-License-Identifier: Apache-2.0

"""Count the guest cells of one kind that a host cell takes.

The count needs no search: it is the lesser of the counts by CPUs and by
memory, and depends on numbers only. A fleet has many cells, so the numbers
are kept in plain tuples, which Python's garbage collector soon ignores.
"""

import operator
import sys
import typing
from collections.abc import Sequence

from hpcvirt.fit import demand as demands
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model

#: Size in KiB, total and free pages.
_Pages = tuple[int, int, int]
#: The fields of a CellState that change with its guests.
Changing = tuple[int, tuple[int, ...], int, int, tuple[int, ...]]
#: Whether guests need PCPUs, and whether they need shared CPUs.
NeedsCPUs = tuple[bool, bool]
_NONE: tuple[tuple[int, ...], ...] = ((), (), (), ())

#: The count of a resource that does not limit a guest cell.
AMPLE = sys.maxsize

#: The thread policies for which the free threads of each core matter.
BY_CORE = (shape_model.ThreadPolicy.REQUIRE, shape_model.ThreadPolicy.ISOLATE)
_SHARED = shape_model.CPUPolicy.SHARED


class CellState(typing.NamedTuple):
    """The facts on which the number of guest cells of a host cell depends.

    The fields up to ``ram_ratio`` do not change with the guests on the cell.
    CPUs and pages are numbers, for each core and for each size of pages.

    :ivar siblings: whether the cell has cores; they are described only if a
        kind of guests has a thread policy
    :ivar usable: pages of each size that are not reserved
    """

    id: int
    socket: int | None
    dedicated: int
    shared: int
    siblings: bool
    width: int
    all_shared: bool
    core_cpus: tuple[int, ...]
    core_pcpus: tuple[int, ...]
    memory_mib: int
    sizes_kib: tuple[int, ...]
    totals: tuple[int, ...]
    usable: tuple[int, ...]
    physnets: tuple[str, ...]
    tunneled: bool
    cpu_ratio: float
    ram_ratio: float
    free: int
    core_free: tuple[int, ...]
    cpu_usage: int
    memory_used_mib: int
    pages_free: tuple[int, ...]

    @property
    def shared_left(self) -> float:
        """The number of shared vCPUs that the cell still takes."""
        return self.shared * self.cpu_ratio - self.cpu_usage

    @property
    def memory_free_mib(self) -> int:
        return self.memory_mib - self.memory_used_mib

    @property
    def empty(self) -> bool:
        """Whether no instance uses CPUs, memory or pages of this cell."""
        return self.changing == self.emptied()

    @property
    def changing(self) -> Changing:
        """The last fields, which change with the guests."""
        return typing.cast(Changing, self[_FIXED:])

    def emptied(self) -> Changing:
        """Return the last fields of the cell without guests."""
        return self.dedicated, self.core_pcpus, 0, 0, self.usable


#: How many fields of a CellState do not change.
_FIXED = CellState._fields.index('free')


def describe(cell: supplies.CellSupply, supply: supplies.Supply,
             by_core: bool) -> tuple[tuple[typing.Any, ...], Changing]:
    """Describe a cell of a host by the fields of a CellState.

    :param by_core: whether a kind of guests has a thread policy
    :returns: the fields that do not change with its guests, and the others
    """
    (number, socket, dedicated, free, shared, siblings, cpu_usage, memory_mib,
     memory_used_mib, pages, physnets, tunneled) = cell
    sizes, totals, used, unused = (zip(*pages, strict=True)
                                   if pages else _NONE)
    width, all_shared, cores = 0, False, _NONE
    if by_core and siblings:
        width, all_shared = cell.threads_per_core, dedicated == shared
        cores = tuple(zip(*sorted([
            (len(core), len(core & dedicated), len(core & free))
            for core in siblings]), strict=True))
    return (number, socket, len(dedicated), len(shared), bool(siblings), width,
            all_shared, cores[0], cores[1], memory_mib, sizes, totals,
            tuple(map(operator.add, used, unused)), tuple(physnets), tunneled,
            supply.cpu_ratio, supply.ram_ratio), (
                len(free), cores[2], cpu_usage, memory_used_mib, unused)


def count(demand: demands.CellDemand, cell: CellState) -> int:
    """Count the equal guest cells that fit on a host cell together."""
    room = AMPLE
    if demand.policy is not _SHARED:
        room = count_by_pcpus(demand, cell)
    if room and demand.policy is not shape_model.CPUPolicy.DEDICATED:
        room = min(room, _shared(demand, cell))
    return min(room, count_by_memory(demand, cell)) if room > 0 else 0


def count_by_pcpus(demand: demands.CellDemand, cell: CellState) -> int:
    """Count by dedicated CPUs only.

    The count depends on ``free``, on ``core_free`` and on the fields that do
    not change.
    """
    needed = demand.pcpus + demand.emulator_pcpus
    if cell.free < needed or not cell.siblings:
        return 0
    if not demand.pcpus:
        # Nova neither pins nor counts a guest cell without dedicated vCPUs,
        # and has no CPU for its emulator threads.
        return 0 if demand.emulator_pcpus or not demand.vcpus else AMPLE
    if demand.threads not in BY_CORE:
        return cell.free // needed
    if demand.threads is shape_model.ThreadPolicy.ISOLATE:
        if cell.width > 1 and not cell.all_shared:
            return 0
        return sum(free >= cell.width for free in cell.core_free) // needed
    if cell.width < 2:
        return 0
    # Shared CPUs count as siblings.
    counts = (cell.core_free if cell.free < cell.dedicated or cell.shared
              else cell.core_cpus)
    return min(cell.free // needed, max(
        sum(free >= threads for free in counts) // -(-demand.pcpus // threads)
        for threads in range(2, cell.width + 1)))


def _shared(demand: demands.CellDemand, cell: CellState) -> int:
    """Count by the CPUs and memory that may be overcommitted."""
    if demand.vcpus > cell.shared:
        return 0
    room = AMPLE
    if demand.vcpus:
        room = int(min(AMPLE, cell.shared_left // demand.vcpus))
    if demand.memory_mib:
        room = min(room, int(min(AMPLE, (
            cell.memory_mib * cell.ram_ratio - cell.memory_used_mib)
            // demand.memory_mib)))
    return room


def count_by_memory(demand: demands.CellDemand, cell: CellState) -> int:
    """Count by pages, or by memory if the host does not report pages."""
    needed = demand.memory_mib * 1024
    if not needed:
        return AMPLE
    page_kib = demand.page_kib
    overcommits = page_kib is None and demand.policy is _SHARED
    if not cell.sizes_kib:
        if page_kib is not None:
            return 0
        if overcommits:
            return AMPLE if demand.memory_mib <= cell.memory_mib else 0
        return max(cell.memory_free_mib // demand.memory_mib, 0)
    if page_kib is not None and page_kib > 0:
        if page_kib not in cell.sizes_kib or needed % page_kib:
            return 0
        free = cell.pages_free[cell.sizes_kib.index(page_kib)]
        return max(free, 0) * page_kib // needed
    room = 0
    for size_kib, total, free in _pools(page_kib, list(zip(
            cell.sizes_kib, cell.totals, cell.pages_free, strict=True))):
        if needed % size_kib:
            continue
        if overcommits:
            return AMPLE if needed <= total * size_kib else 0
        room += max(free, 0) * size_kib // needed
    return room


def _pools(page_kib: int | None,
           pages: Sequence[_Pages]) -> Sequence[_Pages]:
    if page_kib is None:
        return (min(pages),)
    ascending = sorted(pages)
    if page_kib == shape_model.PageClass.SMALL:
        return ascending[:1]
    if page_kib == shape_model.PageClass.LARGE:
        return ascending[1:]
    return ascending


def spread_in_sockets(needs: Sequence[tuple[Sequence[int], int]],
                      cells: Sequence[CellState]) -> int:
    """Count guests, each with all of its cells in one socket.

    :param needs: for each kind of guest cell, the number that each host cell
        takes, and the number that a guest has
    """
    sockets = [cell.socket for cell in cells]
    return sum(
        min(spread([room for room, other in zip(
            column, sockets, strict=True) if other == socket], number)
            for column, number in needs)
        for socket in set(sockets) if socket is not None)


def spread(room: Sequence[int], cells: int) -> int:
    """Count guests of several equal cells, each on another host cell.

    :param room: the number of guest cells that each host cell takes
    :param cells: the number of cells of a guest
    :returns: the largest n for which ``sum(min(each, n) for each in room)``
        is at least ``n * cells``
    """
    total = sum(room)
    if cells == 1:
        return total
    guests = total // cells
    while guests:
        if max(room) <= guests:
            return guests
        taken = sum([min(each, guests) for each in room])
        if taken >= guests * cells:
            return guests
        guests = taken // cells
    return 0


def count_left(demand: demands.Demand,
               cells: Sequence[CellState]) -> tuple[float, int]:
    """Count the free resources that decide between hosts with equal losses.

    :returns: the free CPUs of the kinds that a guest needs, and the free
        memory in MiB
    """
    return count_cpus(needs_cpus(demand), cells), sum([
        cell.memory_free_mib for cell in cells])


def needs_cpus(demand: demands.Demand) -> NeedsCPUs:
    """Tell whether a guest needs PCPUs, and whether it needs shared CPUs."""
    return (any(cell.pcpus for cell in demand.cells),
            any(cell.vcpus for cell in demand.cells))


def count_cpus(needs: NeedsCPUs, cells: Sequence[CellState]) -> float:
    """Count the free CPUs of the kinds that a guest needs."""
    left = 0.0
    if needs[0]:
        left += sum([cell.free for cell in cells])
    if needs[1]:
        left += sum([cell.shared_left for cell in cells])
    return left


def share(free: float, most: float) -> float:
    """Return the share of free CPUs, from 0.0 to 1.0.

    :param most: the free CPUs of the empty host
    """
    return min(max(free, 0.0) / most, 1.0) if most else 0.0
