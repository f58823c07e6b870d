# SPDX-License-Identifier: Apache-2.0

"""Find the sizes of guests into which a host divides.

Sizes are counted in cores of the host for each guest cell. From small to
large these are:

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
the cells of the host differ. Every size tiles the host exactly, except steps
such as three of four quarters and sizes of unequal cells.
"""

import dataclasses
import math
import types
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.flavors import cpu_partition


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
    """

    cores: tuple[int, ...]
    threads: int
    sockets: int = 1
    one_socket: bool = False
    share: HostShare = HostShare('part')

    @property
    def vcpus(self) -> int:
        return sum(self.cores) * self.threads


def sizes(partition: cpu_partition.Partition, steps: int = 4,
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
    for size in (*_whole(partition), *_in_sockets(partition),
                 *_parts(partition, smallest),
                 *_steps(partition, steps, with_rest),
                 *_further_parts(partition, smallest, parts)):
        found.setdefault(size.cores, size)
    return tuple(sorted(found.values(), key=lambda size: (
        size.vcpus, len(size.cores), size.cores)))


def parts_of_cell(partition: cpu_partition.Partition,
                  smallest: int | None = None) -> list[int]:
    """List the parts into which every cell can be divided, in cores.

    A part is a multiple or a divisor of the cores that share a cache. If
    caches have different numbers of cores (some are offline, or the host
    keeps them), a part has at least half the cores of the smallest cache.
    """
    widths = [len(cell.cores) for cell in partition.cells]
    groups = {count for cell in partition.cells for count in cell.llc}
    if not widths:
        return []
    alike = len(groups) == 1
    least = min(groups) if alike else (min(groups) + 1) // 2
    return [part for part in cpu_partition.list_divisors(math.gcd(*widths))
            if (smallest or least) <= part < min(widths)
            and (not alike or all(part % group == 0 or group % part == 0
                                  for group in groups))]


def _parts(partition: cpu_partition.Partition,
           smallest: int | None) -> Iterator[GuestSize]:
    widths = {len(cell.cores) for cell in partition.cells}
    for part in parts_of_cell(partition, smallest):
        share = (f'1/{max(widths) // part} cell' if len(widths) == 1
                 else 'part')
        yield GuestSize((part,), partition.threads, share=HostShare(share))


def _further_parts(partition: cpu_partition.Partition, smallest: int | None,
                   parts: Mapping[int, int]) -> Iterator[GuestSize]:
    for part, guests in parts.items():
        if part >= (smallest or 1):
            yield GuestSize((part,), partition.threads,
                            share=HostShare(f'1/{guests} cell'))


def _whole(partition: cpu_partition.Partition) -> Iterator[GuestSize]:
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


def _in_sockets(partition: cpu_partition.Partition) -> Iterator[GuestSize]:
    """Yield single cells, and several cells that divide a socket."""
    for socket in _cores_by_socket(partition):
        for width in sorted(set(socket)):
            yield GuestSize((width,), partition.threads,
                            share=HostShare('cell'))
        if len(set(socket)) == 1:
            for count in cpu_partition.list_divisors(len(socket)):
                if 1 < count < len(socket):
                    yield GuestSize(socket[:count], partition.threads, 1,
                                    True,
                                    HostShare(f'{count} cells'))


def _steps(partition: cpu_partition.Partition, steps: int,
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


def _guest_sockets(partition: cpu_partition.Partition,
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
        partition: cpu_partition.Partition) -> list[tuple[int, ...]]:
    """List the cores of the cells of each socket, largest cell first."""
    found: dict[int, list[int]] = {}
    for cell in partition.cells:
        found.setdefault(cell.socket, []).append(len(cell.cores))
    return [_falling(widths) for widths in found.values()]


def _falling(numbers: Sequence[int] | Iterator[int]) -> tuple[int, ...]:
    return tuple(sorted(numbers, reverse=True))
