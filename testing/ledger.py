# SPDX-License-Identifier: Apache-2.0

"""Count the resources that instances use, and check that they are consistent.

The ledger is independent of hpcvirt's engine and of Nova's claims: it sums the
resources of the libvirt domains and compares them with the machine.
"""

import collections
import dataclasses
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping

from hpcvirt.model import cpuset
from hpcvirt.specs import codec
from hpcvirt.topology import domain
from testing import libvirt


@dataclasses.dataclass(frozen=True)
class Ledger:
    """A machine and the guests on it.

    :ivar machine: the machine
    :ivar guests: the domains that libvirt runs there
    """

    machine: libvirt.Machine
    guests: tuple[domain.Domain, ...]

    @property
    def dedicated(self) -> frozenset[int]:
        """The CPUs that instances may be pinned to."""
        return cpuset.parse(self.machine.settings.cpu_dedicated_set or '')

    def owners(self) -> Mapping[int, tuple[str, ...]]:
        """Return dedicated CPU to the names of its guests.

        The CPUs of isolated emulator threads are included.
        """
        owners: dict[int, tuple[str, ...]] = {}
        for guest in self.guests:
            for cpu in guest.pinned | (guest.emulator & self.dedicated):
                owners[cpu] = (*owners.get(cpu, ()), guest.name)
        return owners

    def free_pcpus(self, cell: int) -> frozenset[int]:
        cpus = self.machine.host.by_id[cell].cpus
        return (self.dedicated & cpus) - self.owners().keys()

    def pages_used(self) -> Mapping[tuple[int, int], int]:
        """Return (host cell, page size in KiB) to the pages in use."""
        used: dict[tuple[int, int], int] = collections.Counter()
        for guest in self.guests:
            for cell in guest.cells:
                if cell.host_cell is not None:
                    used[cell.host_cell, cell.page_kib] += (
                        cell.memory_mib * 1024 // cell.page_kib)
        return used

    def pages_given(self) -> Mapping[tuple[int, int], int]:
        """Return (host cell, page size in KiB) to the unreserved pages."""
        given = {}
        for cell in self.machine.host.cells:
            for pool in cell.pages:
                given[cell.id, pool.size_kib] = pool.total
        for text in self.machine.settings.reserved_huge_pages:
            row = dict(pair.split(':', 1) for pair in text.split(','))
            given[int(row['node']), int(row['size'])] -= int(row['count'])
        return given

    def device_owners(self) -> Mapping[str, tuple[str, ...]]:
        """Return address of a PCI function to the names of its guests."""
        owners: dict[str, tuple[str, ...]] = {}
        for guest in self.guests:
            for address in guest.devices:
                owners[address] = (*owners.get(address, ()), guest.name)
        return owners

    def device_cell(self, address: str) -> int | None:
        """Return the host cell of a PCI function."""
        return next(each.device.cell for each in self.machine.functions()
                    if each.address == address)

    def faults(self) -> tuple[str, ...]:
        """Describe each inconsistency in one sentence."""
        return tuple(self._faults())

    def _faults(self) -> Iterator[str]:
        name = self.machine.name
        for cpu, owners in sorted(self.owners().items()):
            if len(owners) > 1:
                yield f'{name}: CPU {cpu} is pinned by {_join(owners)}'
            if cpu not in self.dedicated:
                yield (f'{name}: CPU {cpu} of {_join(owners)} is not in'
                       ' cpu_dedicated_set')
        given = self.pages_given()
        for (cell, size_kib), count in sorted(self.pages_used().items()):
            if count > given.get((cell, size_kib), 0):
                yield (f'{name}: cell {cell} has'
                       f' {given.get((cell, size_kib), 0)} pages of'
                       f' {size_kib} KiB, its guests take {count}')
        for address, owners in sorted(self.device_owners().items()):
            if len(owners) > 1:
                yield f'{name}: device {address} is with {_join(owners)}'
        for guest in self.guests:
            yield from self._strays(guest)
            yield from self._unpinned(guest)

    def _strays(self, guest: domain.Domain) -> Iterator[str]:
        for number, cell in enumerate(guest.cells):
            if cell.host_cell is None:
                continue
            home = self.machine.host.by_id[cell.host_cell].cpus
            stray = guest.pinned_of(cell) - home
            if stray:
                yield (f'{self.machine.name}: cell {number} of {guest.name}'
                       f' has memory on cell {cell.host_cell} and CPUs'
                       f' {cpuset.render(stray)} elsewhere')

    def _unpinned(self, guest: domain.Domain) -> Iterator[str]:
        shape = codec.decode(guest.vcpus, guest.memory_mib, guest.extra_specs)
        for number, (asked, cell) in enumerate(
                zip(shape.cells, guest.cells, strict=True)):
            pinned = len(guest.pinned_of(cell) & self.dedicated)
            if pinned < asked.pcpus:
                yield (f'{self.machine.name}: cell {number} of {guest.name}'
                       f' has {pinned} of its {asked.pcpus} dedicated vCPUs'
                       ' pinned')


def _join(names: Iterable[str]) -> str:
    return ' and '.join(names)
