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

"""Where an instance sits, read from the domain XML that libvirt gets."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from lxml import etree

from hpcvirt.model import cpuset

#: What the host pages of a guest without a page size are called here.
SMALL = 4


@dataclasses.dataclass(frozen=True, slots=True)
class GuestCell:
    """A guest NUMA cell and the host cell that backs it.

    :ivar host_cell: None if the memory may come from several
    :ivar vcpus: the guest's CPU numbers
    :ivar memory_mib: its memory
    :ivar page_kib: size of the host pages behind it
    """

    host_cell: int | None
    vcpus: frozenset[int]
    memory_mib: int
    page_kib: int


@dataclasses.dataclass(frozen=True)
class Guest:
    """A domain.

    :ivar uuid: the server's id
    :ivar name: the server's name
    :ivar cells: guest cells in guest order; empty without NUMA topology
    :ivar pins: host CPUs that each guest CPU may run on
    :ivar emulator: host CPUs of the emulator's threads, empty if anywhere
    :ivar devices: addresses of the PCI functions given to the guest
    :ivar topology: sockets, cores, threads that the guest sees
    :ivar memory_mib: all of its memory
    """

    uuid: str
    name: str
    cells: tuple[GuestCell, ...]
    pins: Mapping[int, frozenset[int]]
    emulator: frozenset[int]
    devices: tuple[str, ...]
    topology: tuple[int, int, int]
    memory_mib: int

    @property
    def host_cells(self) -> tuple[int | None, ...]:
        """The host cell of each guest cell."""
        return tuple(cell.host_cell for cell in self.cells)

    @property
    def pinned(self) -> frozenset[int]:
        """Host CPUs that belong to one guest CPU alone."""
        return frozenset().union(
            *(cpus for cpus in self.pins.values() if len(cpus) == 1))

    def pinned_of(self, cell: GuestCell) -> frozenset[int]:
        """Host CPUs that belong to one guest CPU of a guest cell."""
        return frozenset().union(
            *(self.pins.get(vcpu, frozenset()) for vcpu in cell.vcpus
              if len(self.pins.get(vcpu, ())) == 1))


def read(xml: str) -> Guest:
    """Read a domain.

    :param xml: what Nova hands to ``virDomainDefineXML``
    """
    domain = etree.fromstring(xml)
    cpu = domain.find('cpu/topology')
    emulator = domain.find('cputune/emulatorpin')
    return Guest(
        uuid=domain.findtext('uuid'),
        name=domain.findtext('.//{*}instance/{*}name'),
        cells=_cells(domain),
        pins={int(pin.get('vcpu')): cpuset.parse(pin.get('cpuset'))
              for pin in domain.iterfind('cputune/vcpupin')},
        emulator=(frozenset() if emulator is None
                  else cpuset.parse(emulator.get('cpuset'))),
        devices=tuple(
            _address(source) for source in domain.xpath(
                "devices/interface[@type='hostdev']/source/address"
                "|devices/hostdev[@type='pci']/source/address")),
        topology=(0, 0, 0) if cpu is None else (
            int(cpu.get('sockets')), int(cpu.get('cores')),
            int(cpu.get('threads'))),
        memory_mib=int(domain.findtext('memory')) // 1024)


def _cells(domain: Any) -> tuple[GuestCell, ...]:
    backing = {}
    for node in domain.iterfind('numatune/memnode'):
        cells = cpuset.parse(node.get('nodeset'))
        backing[int(node.get('cellid'))] = (
            next(iter(cells)) if len(cells) == 1 else None)
    pages = {}
    for page in domain.iterfind('memoryBacking/hugepages/page'):
        for cell in cpuset.parse(page.get('nodeset') or ''):
            pages[cell] = int(page.get('size'))
    return tuple(
        GuestCell(backing.get(int(cell.get('id'))),
                  cpuset.parse(cell.get('cpus')),
                  int(cell.get('memory')) // 1024,
                  pages.get(int(cell.get('id')), SMALL))
        for cell in domain.iterfind('cpu/numa/cell'))


def _address(source: Any) -> str:
    domain, bus, slot, function = (
        int(source.get(part), 16)
        for part in ('domain', 'bus', 'slot', 'function'))
    return f'{domain:04x}:{bus:02x}:{slot:02x}.{function:x}'
