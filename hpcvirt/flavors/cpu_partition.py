# SPDX-License-Identifier: Apache-2.0

"""Divide the CPUs of a host between guests, emulator threads and the host.

Guests get whole cores, so that no two guests share a core. They use either
all threads of a core (``smt: use``) or one thread, and its SMT siblings stay
idle (``smt: leave``).

The cores for guests are divided into sizes of guests (:func:`sizes`), which
are counted in cores of the host for each guest cell. From small to large these
are:

part of a cell
    a number of cores that divides every cell of the host and is at least the
    number of cores that share a last-level cache;
cell
    all cores of a cell;
cells of a socket
    two or more cells, if their number divides the cells of the socket;
socket
    all cells of one socket;
steps of the host
    one, two or more of ``host_steps`` equal steps of the host, by default
    quarters, if a step is a part of a cell or a number of cells;
host
    all cells.

A guest larger than a cell has equal guest cells, as few as possible, unless
the cells of the host differ. If they differ by a few cores, equal cells of the
smallest one are listed as well. Every size tiles the host exactly, except
steps such as three of four quarters and sizes of unequal cells.
"""

import collections
import dataclasses
import itertools
import math
import types
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.flavors import host_part
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import warning
from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model

Core = frozenset[int]

#: Cells are trimmed if they have at most this many times the cores of the
#: smallest one.
MAX_TRIMMED = 1.25

#: The end of the share of a guest whose cells are trimmed.
EQUAL_CELLS = ', equal cells'


@dataclasses.dataclass(frozen=True, slots=True)
class CellShare:
    """The CPUs of one host cell that guests and emulator threads get.

    :ivar id: the host cell
    :ivar socket: the socket of the cell; if it is unknown, a negative
        number that no other cell has, so that the cell counts as a socket
    :ivar cores: the dedicated CPUs of each core
    :ivar llc: the number of these cores under each last-level cache
    :ivar shared: CPUs for emulator threads and shared guests
    """

    id: int
    socket: int
    cores: tuple[Core, ...]
    llc: tuple[int, ...]
    shared: frozenset[int] = frozenset()

    @property
    def dedicated(self) -> frozenset[int]:
        return frozenset().union(*self.cores)


@dataclasses.dataclass(frozen=True, slots=True)
class Partition:
    """The division of the CPUs of a host.

    :ivar threads: the number of dedicated CPUs of each core
    :ivar cells: the cells from which guests get cores
    :ivar part: the part of the host that was divided
    """

    host: host_model.Host
    threads: int
    cells: tuple[CellShare, ...]
    part: host_part.HostPart = host_part.WHOLE
    warnings: tuple[warning.PlanWarning, ...] = ()

    @property
    def dedicated(self) -> frozenset[int]:
        return frozenset().union(*(cell.dedicated for cell in self.cells))

    @property
    def shared(self) -> frozenset[int]:
        return frozenset().union(*(cell.shared for cell in self.cells))


def divide(host: host_model.Host, profile: profiles.Profile,
           part: host_part.HostPart = host_part.WHOLE) -> Partition:
    """Divide the CPUs of a host.

    Cells without CPUs or without memory are left out, with a warning. If
    cores have different numbers of threads (a sibling is offline, or the
    machine has several kinds of cores), guests get the kind of cores that has
    the most CPUs in total.

    :param part: the part of the host that guests may have
    """
    usable = [cell for cell in host.cells
              if part.has(cell) and cell.memory_mib]
    cores: list[Core] = []
    for cell in usable:
        cores += part.cores(cell)
    threads = (1 if profile.smt is profiles.SMT.LEAVE
               else _usual_threads(cores))
    shares = [_share(cell, part.cores(cell), threads, profile)
              for cell in usable]
    without = [share.id for share in shares if not share.cores]
    odd: set[int] = set()
    for core in cores:
        if len(core) < threads:
            odd |= core
    warnings = dict(_unusable(host))
    if without:
        warnings[warning.WarningCode.CELL_NOT_USED] = (
            f'{format_cells(without)} no core left for guests')
    if odd:
        warnings[warning.WarningCode.IRREGULAR_CORES] = (
            f'{"CPUs" if len(odd) > 1 else "CPU"} {cpuset.render(odd)} not '
            f'dedicated: the core has fewer than the {threads} threads of '
            'other cores')
    if profile.smt is profiles.SMT.LEAVE and host.threads_per_core > 1:
        warnings[warning.WarningCode.SIBLINGS_IDLE] = (
            'the SMT siblings of dedicated CPUs must stay idle; run nothing '
            'else on them')
    return Partition(
        host, threads, tuple(share for share in shares if share.cores), part,
        tuple(warning.PlanWarning(code, what, (host.name,))
              for code, what in warnings.items()))


def _unusable(host: host_model.Host,
              ) -> Iterator[tuple[warning.WarningCode, str]]:
    """Warn about cells without CPUs and cells without memory."""
    without_cpus = [cell for cell in host.cells if not cell.cpus]
    if without_cpus:
        memory_mib = sum(cell.memory_mib for cell in without_cpus)
        yield warning.WarningCode.CELL_WITHOUT_CPUS, (
            f'{format_cells(c.id for c in without_cpus)} {memory_mib} MiB '
            'and no CPUs; Nova places no pinned guest there, so the host '
            'keeps the memory')
    without_memory = [cell for cell in host.cells
                      if cell.cpus and not cell.memory_mib]
    if without_memory:
        cpus = frozenset[int]().union(*(c.cpus for c in without_memory))
        yield warning.WarningCode.CELL_WITHOUT_MEMORY, (
            f'{format_cells(c.id for c in without_memory)} no memory; CPUs '
            f'{cpuset.render(cpus)} are not dedicated, because no guest fits '
            'there')


def format_cells(ids: Iterable[int]) -> str:
    """Begin a sentence: ``cell 3 has``, ``cells 3-5,8 have``."""
    numbers = sorted(ids)
    plural = len(numbers) > 1
    return (f'cell{"s" if plural else ""} {cpuset.render(numbers)} '
            f'{"have" if plural else "has"}')


def _usual_threads(cores: Iterable[Core]) -> int:
    """Return the threads of the kind of core that has the most CPUs."""
    cpus: collections.Counter[int] = collections.Counter()
    for core in cores:
        cpus[len(core)] += len(core)
    return max(cpus, key=lambda threads: (cpus[threads], threads), default=1)


def count_kept(cores: int) -> int:
    """Choose how many cores of a cell the host keeps.

    The host keeps 4 to 10 percent of the cores, but at least one. Within these
    bounds, the number of cores left for guests has as many divisors as
    possible, and the host keeps as few as possible. Azure keeps 16 of 192
    cores (HBv4), 16 of 384 (HBv5) and 8 of 128 (HBv3), and BEAR at Birmingham
    2 of 20.
    """
    least, most = max(1, -(-cores * 4 // 100)), max(1, cores // 10)
    return max(range(least, most + 1),
               key=lambda kept: (len(list_divisors(cores - kept)), -kept))


def list_divisors(number: int) -> list[int]:
    """List the divisors of a number, smallest first."""
    return [part for part in range(1, number + 1) if number % part == 0]


def _share(cell: host_model.Cell, usable: Iterable[Core], threads: int,
           profile: profiles.Profile) -> CellShare:
    queue = _by_cache_in_turn(
        [core for core in usable if len(core) >= threads], cell.llc)
    kept = profile.housekeeping_cores_per_cell
    extra = profile.shared_cores_per_cell
    if extra is None:
        extra = max(1, count_kept(len(queue)) - kept)
    undedicated = kept + extra
    shared = frozenset().union(*queue[kept:undedicated])
    dedicated = sorted(queue[undedicated:], key=min)
    cores = tuple(frozenset(sorted(core)[:threads]) for core in dedicated)
    llc = [len(inside) for inside in _by_cache(cores, cell.llc)]
    socket = -1 - cell.id if cell.socket is None else cell.socket
    return CellShare(cell.id, socket, cores,
                     tuple(count for count in llc if count), shared)


def _by_cache_in_turn(cores: Sequence[Core],
                      caches: Sequence[frozenset[int]]) -> list[Core]:
    """Order cores so that each cache in turn gives its lowest core.

    If the host takes the first of them, the caches keep equal numbers of
    cores as far as possible.
    """
    rank = {}
    for inside in _by_cache(cores, caches):
        rank.update({core: turn for turn, core
                     in enumerate(sorted(inside, key=min))})
    return sorted(cores, key=lambda core: (rank[core], min(core)))


def _by_cache(cores: Iterable[Core],
              caches: Sequence[frozenset[int]]) -> list[list[Core]]:
    """List the cores of each cache.

    A core whose threads have different caches is listed with each of them.
    """
    cache_of: dict[int, int] = {}
    for number, cache in enumerate(caches):
        cache_of |= dict.fromkeys(cache, number)
    inside: list[list[Core]] = [[] for _ in caches]
    for core in cores:
        for number in {cache_of[cpu] for cpu in core}:
            inside[number].append(core)
    return inside


@dataclasses.dataclass(frozen=True, slots=True)
class HostShare:
    """The share of a host that a guest takes.

    :ivar words: as tables and documents show it
    :ivar is_socket: whether it is exactly one of several sockets
    """

    words: str
    is_socket: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class GuestSize:
    """The CPUs of a guest.

    :ivar cores: the cores of each guest cell, largest first
    :ivar threads: the vCPUs of each core
    :ivar sockets: the sockets that the guest sees
    :ivar one_socket: whether its cells should be in one socket
    :ivar trimmed_from: the unequal cells that its equal cells are trimmed
        from; empty for others
    """

    cores: tuple[int, ...]
    threads: int
    sockets: int = 1
    one_socket: bool = False
    share: HostShare = HostShare('part')
    trimmed_from: tuple[int, ...] = ()

    @property
    def vcpus(self) -> int:
        return sum(self.cores) * self.threads


def sizes(partition: Partition, steps: int = 4,
          smallest: int | None = None,
          with_rest: bool = True,
          parts: Mapping[int, int] = types.MappingProxyType({}),
          ) -> tuple[GuestSize, ...]:
    """List the sizes of a host, smallest first.

    :param steps: the number of steps into which the whole host is divided
    :param smallest: the cores of the smallest part of a cell; None for those
        that share a last-level cache
    :param with_rest: whether to list steps that leave a part of the host
        unused
    :param parts: further parts of a cell: cores -> the guests of this size
        that share a cell
    """
    found: dict[tuple[int, ...], GuestSize] = {}
    whole = [*_whole(partition)]
    for size in (*whole, *_trim(whole), *_in_sockets(partition),
                 *_parts(partition, smallest),
                 *_steps(partition, steps, with_rest),
                 *_further_parts(partition, smallest, parts)):
        found.setdefault(size.cores, size)
    return tuple(sorted(found.values(), key=lambda size: (
        size.vcpus, len(size.cores), size.cores)))


def parts_of_cell(partition: Partition,
                  smallest: int | None = None) -> list[int]:
    """List the parts into which every cell can be divided, in cores.

    A part is a multiple or a divisor of the cores that share a cache. If
    caches have different numbers of cores (some are offline, or the host
    keeps them), a part has at least half the cores of the smallest cache.
    """
    widths = [len(cell.cores) for cell in partition.cells]
    groups = set(itertools.chain.from_iterable(
        cell.llc for cell in partition.cells))
    if not widths:
        return []
    alike = len(groups) == 1
    least = min(groups) if alike else (min(groups) + 1) // 2
    return [part for part in list_divisors(math.gcd(*widths))
            if (smallest or least) <= part < min(widths)
            and (not alike or all(part % group == 0 or group % part == 0
                                  for group in groups))]


def _parts(partition: Partition,
           smallest: int | None) -> Iterator[GuestSize]:
    widths = {len(cell.cores) for cell in partition.cells}
    for part in parts_of_cell(partition, smallest):
        share = (f'1/{max(widths) // part} cell' if len(widths) == 1
                 else 'part')
        yield GuestSize((part,), partition.threads, share=HostShare(share))


def _further_parts(partition: Partition, smallest: int | None,
                   parts: Mapping[int, int]) -> Iterator[GuestSize]:
    for part, guests in parts.items():
        if part >= (smallest or 1):
            yield GuestSize((part,), partition.threads,
                            share=HostShare(f'1/{guests} cell'))


def _whole(partition: Partition) -> Iterator[GuestSize]:
    """Yield the host and its sockets."""
    sockets = _cores_by_socket(partition)
    widths = _falling(len(cell.cores) for cell in partition.cells)
    if widths:
        yield GuestSize(widths, partition.threads,
                        _guest_sockets(partition, widths),
                        share=HostShare('host'))
    known = all(cell.socket >= 0 for cell in partition.cells)
    for socket in sockets:
        yield GuestSize(socket, partition.threads, 1, len(socket) > 1,
                        HostShare('socket' if known else 'cell',
                                  is_socket=True))


def _trim(found: Iterable[GuestSize]) -> Iterator[GuestSize]:
    """Yield equal cells for cells that differ by a few cores."""
    for size in found:
        least, most = min(size.cores), max(size.cores)
        if least < most <= least * MAX_TRIMMED:
            yield dataclasses.replace(
                size, cores=(least,) * len(size.cores),
                trimmed_from=size.cores,
                share=HostShare(f'{size.share.words}{EQUAL_CELLS}',
                                size.share.is_socket))


def _in_sockets(partition: Partition) -> Iterator[GuestSize]:
    """Yield single cells, and several cells that divide a socket."""
    for socket in _cores_by_socket(partition):
        for width in sorted(set(socket)):
            yield GuestSize((width,), partition.threads,
                            share=HostShare('cell'))
        if len(set(socket)) == 1:
            for count in list_divisors(len(socket)):
                if 1 < count < len(socket):
                    yield GuestSize(socket[:count], partition.threads, 1,
                                    True,
                                    HostShare(f'{count} cells'))


def _steps(partition: Partition, steps: int,
           with_rest: bool) -> Iterator[GuestSize]:
    widths = [len(cell.cores) for cell in partition.cells]
    if len(set(widths)) != 1 or sum(widths) % steps:
        return
    width, step = widths[0], sum(widths) // steps
    if width % step and step % width:
        return
    for number in range(1, steps):
        if steps % number and not with_rest:
            continue
        total = number * step
        for count in range(math.ceil(total / width), len(widths) + 1):
            if total % count == 0:
                cores = (total // count,) * count
                yield GuestSize(cores, partition.threads,
                                _guest_sockets(partition, cores),
                                share=HostShare(_fraction(number, steps)))
                break


def _fraction(number: int, steps: int) -> str:
    common = math.gcd(number, steps)
    return f'{number // common}/{steps // common} host'


def _guest_sockets(partition: Partition,
                   cores: Sequence[int]) -> int:
    """Return the number of sockets of a guest that may span sockets.

    The guest has as many sockets as it spans on the host if its cells divide
    evenly among them, and one for each guest cell otherwise. Unequal cells
    share one socket, because a socket must not end within a cell.
    """
    sockets = _cores_by_socket(partition)
    if len(set(cores)) > 1:
        return 1
    if len({len(socket) for socket in sockets}) > 1:
        return len(cores)
    spanned = math.ceil(len(cores) / len(sockets[0]))
    return len(cores) if len(cores) % spanned else spanned


def _cores_by_socket(
        partition: Partition) -> list[tuple[int, ...]]:
    """List the cores of the cells of each socket, largest cell first."""
    found: dict[int, list[int]] = {}
    for cell in partition.cells:
        found.setdefault(cell.socket, []).append(len(cell.cores))
    return [_falling(widths) for widths in found.values()]


def _falling(numbers: Sequence[int] | Iterator[int]) -> tuple[int, ...]:
    return tuple(sorted(numbers, reverse=True))
