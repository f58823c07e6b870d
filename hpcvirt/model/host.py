# SPDX-License-Identifier: Apache-2.0

"""The hardware of a compute host, without its usage.

CPUs and cells have the numbers of the operating system, which may have gaps.
Memory is in MiB, page sizes in KiB.
"""

import dataclasses
import enum
import functools
import typing
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Mapping

if typing.TYPE_CHECKING:
    # nova-scheduler needs none of it.
    from hpcvirt.model import wiring as wiring_model

SMALL_PAGE_KIB = 4


class Unknown(enum.StrEnum):
    """The facts that a source does not report about a machine.

    A Host has an assumed value for each of them. Distances are unknown if a
    Host has none.
    """

    SOCKETS = 'sockets'
    """``socket`` is None although the cell has CPUs."""

    CACHES = 'caches'
    """``llc`` has one set with all CPUs of the cell."""

    PAGES = 'pages'
    """All memory is in small pages of 4 KiB."""

    VFS = 'vfs'
    """``total_vfs`` of each device is 0."""

    DEVICES = 'devices'
    """There may be more devices than ``devices`` has."""


@dataclasses.dataclass(frozen=True, slots=True)
class PagePool:
    """The memory pages of one size on one cell.

    :ivar size_kib: page size in KiB: 4, 2048, 1048576 or another size of the
        machine (64 KiB small pages and 16 GiB huge pages exist)
    :ivar total: number of pages; for the smallest size, the memory of the
        cell without its huge pages, as libvirt counts
    """

    size_kib: int
    total: int

    @property
    def memory_mib(self) -> int:
        return self.size_kib * self.total // 1024


@dataclasses.dataclass(frozen=True, slots=True)
class Cell:
    """A host NUMA cell.

    :ivar id: the operating system's node number
    :ivar socket: physical socket of the cell's CPUs, the lowest if they span
        several; None for a cell without CPUs, or if it is unknown
    :ivar cpus: online CPUs; empty for a memory-only cell (CXL, HBM)
    :ivar siblings: the SMT siblings of each core, one set per core, online
        CPUs only; every CPU of the cell is in exactly one
    :ivar llc: the CPUs that share a last-level cache, one set per cache,
        limited to this cell; every CPU is in exactly one; one set with all
        CPUs if the caches are unknown
    :ivar memory_mib: total memory, huge pages included, rounded down
    :ivar pages: one pool per page size, smallest first
    :ivar other_sockets: the sockets besides ``socket`` that its CPUs span
    """

    id: int
    socket: int | None
    cpus: frozenset[int]
    siblings: tuple[frozenset[int], ...]
    llc: tuple[frozenset[int], ...]
    memory_mib: int
    pages: tuple[PagePool, ...]
    other_sockets: frozenset[int] = frozenset()

    @property
    def threads_per_core(self) -> int:
        return max((len(core) for core in self.siblings), default=1)

    def pool(self, size_kib: int) -> PagePool | None:
        for pool in self.pages:
            if pool.size_kib == size_kib:
                return pool
        return None


@dataclasses.dataclass(frozen=True, slots=True)
class Device:
    """A PCI function that can be assigned to a guest, or whose VFs can.

    :ivar address: ``0000:41:00.0``
    :ivar vendor_id: four hexadecimal digits, lower case, no ``0x``
    :ivar product_id: four hexadecimal digits, lower case, no ``0x``
    :ivar cell: NUMA cell; None if it is unknown
    :ivar total_vfs: VFs that the function can create (``sriov_totalvfs``);
        0 if it has no SR-IOV capability
    :ivar driver: bound kernel driver, None if unbound or unknown
    :ivar vf_product_id: the product id of its VFs; None if it is unknown or if
        the function has no SR-IOV capability
    """

    address: str
    vendor_id: str
    product_id: str
    cell: int | None
    total_vfs: int = 0
    driver: str | None = None
    vf_product_id: str | None = None


@dataclasses.dataclass(frozen=True)
class Host:
    """One machine.

    :ivar name: host name, or the name of the file it was read from
    :ivar cells: ascending by id
    :ivar distances: row by row in the order of ``cells`` (10 is local, as
        ACPI SLIT); empty if unknown
    :ivar devices: PCI network, accelerator and storage functions that are
        SR-IOV capable or assignable, ascending by address
    :ivar unknown: the facts that the source of this host does not report
    :ivar processor: the name of its processors, None if it is unknown
    :ivar wiring: how ``devices`` are wired; None without them, or if unknown
    :ivar address_bits: the width of physical addresses; None if it is unknown
    """

    name: str
    cells: tuple[Cell, ...]
    distances: tuple[tuple[int, ...], ...] = ()
    devices: tuple[Device, ...] = ()
    unknown: frozenset[Unknown] = frozenset()
    processor: str | None = None
    wiring: 'wiring_model.Wiring | None' = None
    address_bits: int | None = None

    @functools.cached_property
    def by_id(self) -> Mapping[int, Cell]:
        return {cell.id: cell for cell in self.cells}

    @property
    def cpus(self) -> frozenset[int]:
        return frozenset().union(*(cell.cpus for cell in self.cells))

    @property
    def threads_per_core(self) -> int:
        return max((cell.threads_per_core for cell in self.cells), default=1)

    @property
    def sockets(self) -> tuple[int, ...]:
        return tuple(sorted(
            {cell.socket for cell in self.cells if cell.socket is not None}
            .union(*(cell.other_sockets for cell in self.cells))))


def group_twins(hosts: Iterable[Host],
                key: Callable[[Host], Hashable] | None = None,
                ) -> list[list[Host]]:
    """Group the hosts that differ only in their names and their wiring.

    The wiring has the present speed of links, and what tools said.

    :param key: what of their wiring must be equal; None for nothing
    """
    twins: dict[Hashable, list[Host]] = {}
    for host in hosts:
        bare = dataclasses.replace(host, name='', wiring=None)
        twins.setdefault((bare, key and key(host)), []).append(host)
    return list(twins.values())
