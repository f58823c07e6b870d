# SPDX-License-Identifier: Apache-2.0

"""Read a libvirt domain: the output of ``virsh dumpxml``.

The document names the host CPUs, cells, pages and PCI functions of a guest.
Nova writes the same document when it defines the guest.
"""

import dataclasses
import itertools
from collections.abc import Mapping
from xml.etree import ElementTree

from hpcvirt import exception
from hpcvirt.model import cpuset
from hpcvirt.topology import assemble
from hpcvirt.topology import document
from hpcvirt.topology import libvirt

_HOSTDEVS = ("devices/interface[@type='hostdev']",
             "devices/hostdev[@type='pci']")
_MAX_BUS = 255

#: Page size in KiB of guest memory that is not in huge pages.
SMALL_PAGE_KIB = 4


@dataclasses.dataclass(frozen=True, slots=True)
class DomainCell:
    """A guest NUMA cell and the host memory behind it.

    :ivar host_cells: host cells of which the memory is; empty for any
    :ivar strict: whether memory of other host cells is forbidden
    :ivar vcpus: the guest's CPU numbers
    :ivar page_kib: size of the host pages
    """

    host_cells: frozenset[int]
    strict: bool
    vcpus: frozenset[int]
    memory_mib: int
    page_kib: int

    @property
    def host_cell(self) -> int | None:
        """The host cell of the memory; None if there is not exactly one."""
        return next(iter(self.host_cells)) if len(
            self.host_cells) == 1 else None


@dataclasses.dataclass(frozen=True, slots=True)
class Domain:
    """A guest as libvirt defines it.

    :ivar uuid: the server's id; empty if the document has none
    :ivar name: the server's name in Nova; empty if the document has none
    :ivar vcpus: number of guest CPUs
    :ivar cells: in guest order; empty without a NUMA topology
    :ivar pins: guest CPU -> host CPUs on which it may run
    :ivar emulator: host CPUs of the emulator threads; empty for any
    :ivar devices: addresses of the PCI functions passed through
    :ivar topology: sockets, cores and threads that the guest sees
    :ivar extra_specs: the extra specs of the server's flavor; empty if the
        document has none
    :ivar guest_addresses: address of a device -> its address in the guest;
        without those to which libvirt has not given any
    """

    uuid: str
    name: str
    vcpus: int
    memory_mib: int
    cells: tuple[DomainCell, ...]
    pins: Mapping[int, frozenset[int]]
    emulator: frozenset[int]
    devices: tuple[str, ...]
    topology: tuple[int, int, int] | None
    extra_specs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    guest_addresses: Mapping[str, str] = dataclasses.field(
        default_factory=dict)

    @property
    def host_cells(self) -> tuple[int | None, ...]:
        """The host cell of each guest cell."""
        return tuple(cell.host_cell for cell in self.cells)

    @property
    def pinned(self) -> frozenset[int]:
        """Host CPUs to which a guest CPU is pinned."""
        return frozenset().union(
            *(cpus for cpus in self.pins.values() if len(cpus) == 1))

    def pinned_of(self, cell: DomainCell) -> frozenset[int]:
        """Host CPUs to which a guest CPU of one cell is pinned."""
        return frozenset().union(
            *(cpus for vcpu, cpus in self.pins.items()
              if vcpu in cell.vcpus and len(cpus) == 1))


def read(text: str, where: str = 'domain') -> Domain:
    """Read a domain.

    :param where: the document's name, for errors
    :raises InvalidInput: if it is not a complete definition of a domain
    """
    root = document.xml_root(text.encode(), where)
    vcpu = root.find('vcpu')
    memory = root.find('memory')
    if root.tag != 'domain' or vcpu is None or memory is None:
        raise exception.InvalidInput(where, 'is not a definition of a domain')
    emulator = root.find('cputune/emulatorpin')
    topology = root.find('cpu/topology')
    sources = itertools.chain.from_iterable(
        root.iterfind(f'{kind}/source/address') for kind in _HOSTDEVS)
    return Domain(
        uuid=root.findtext('uuid') or '',
        name=root.findtext('.//{*}instance/{*}name') or '',
        vcpus=document.whole(vcpu.text, where, 'the content of <vcpu>',
                             cpuset.MAX_CPU),
        memory_mib=libvirt.kib(memory, None, where) // 1024,
        cells=_cells(root, where),
        pins={libvirt.number(pin, 'vcpu', where, cpuset.MAX_CPU):
              _cpus(pin, 'cpuset', where)
              for pin in root.iterfind('cputune/vcpupin')},
        emulator=(frozenset() if emulator is None
                  else _cpus(emulator, 'cpuset', where)),
        devices=tuple(_address(source, where) for source in sources),
        topology=None if topology is None else (
            libvirt.number(topology, 'sockets', where, cpuset.MAX_CPU),
            libvirt.number(topology, 'cores', where, cpuset.MAX_CPU),
            libvirt.number(topology, 'threads', where, cpuset.MAX_CPU)),
        extra_specs={
            element.get('name', ''): element.text or '' for element in
            root.iterfind('.//{*}flavor/{*}extraSpecs/{*}extraSpec')},
        guest_addresses=_guest_addresses(root, where))


def _cells(root: ElementTree.Element, where: str) -> tuple[DomainCell, ...]:
    bound = {libvirt.number(node, 'cellid', where, assemble.MAX_CELL): node
             for node in root.iterfind('numatune/memnode')}
    pages: dict[int, int] = {}
    for page in root.iterfind('memoryBacking/hugepages/page'):
        for cell in _cpus(page, 'nodeset', where):
            pages[cell] = libvirt.kib(page, 'size', where)
    cells = []
    for element in root.iterfind('cpu/numa/cell'):
        number = libvirt.number(element, 'id', where, assemble.MAX_CELL)
        node = bound.get(number)
        cells.append(DomainCell(
            host_cells=(frozenset() if node is None
                        else _cpus(node, 'nodeset', where)),
            strict=node is not None and node.get('mode') == 'strict',
            vcpus=_cpus(element, 'cpus', where),
            memory_mib=libvirt.kib(element, 'memory', where) // 1024,
            page_kib=pages.get(number, SMALL_PAGE_KIB)))
    return tuple(cells)


def _cpus(element: ElementTree.Element, attribute: str, where: str,
          ) -> frozenset[int]:
    """Read a list of numbers; libvirt writes cells as it writes CPUs."""
    return cpuset.parse(element.get(attribute, ''), where)


def _guest_addresses(root: ElementTree.Element,
                     where: str) -> dict[str, str]:
    """Find where the guest sees its devices.

    libvirt counts buses by controllers. Firmware gives each bridge the next
    number, by slot and function, and what is below it before the next bridge;
    an expander bus has its own [seen with SeaBIOS 1.16].
    """
    below: dict[int, list[tuple[int, int, int]]] = {}
    starts = {0: 0}
    for element in root.iterfind("devices/controller[@type='pci']"):
        index = libvirt.number(element, 'index', where, _MAX_BUS)
        if (target := element.find('target[@busNr]')) is not None:
            starts[libvirt.number(target, 'busNr', where, _MAX_BUS)] = index
        elif (place := element.find('address')) is not None:
            _, bus, slot, function = _parts(place, where)
            below.setdefault(bus, []).append((slot, function, index))
    buses: dict[int, int] = {}
    for number, first in starts.items():
        rest = [first]
        while rest:
            index = rest.pop()
            buses[index] = number
            number += 1  # noqa: PLW2901
            rest += [each for _, _, each in sorted(below.pop(
                index, ()), reverse=True)]
    elements = itertools.chain.from_iterable(map(root.iterfind, _HOSTDEVS))
    addresses: dict[str, str] = {}
    for element in elements:
        source = element.find('source/address')
        place = element.find('address')
        if source is None or place is None:
            continue
        domain, bus, slot, function = _parts(place, where)
        if bus in buses:
            addresses[_address(source, where)] = (
                f'{domain:04x}:{buses[bus]:02x}:{slot:02x}.{function:x}')
    return addresses


def _address(element: ElementTree.Element, where: str) -> str:
    domain, bus, slot, function = _parts(element, where)
    return f'{domain:04x}:{bus:02x}:{slot:02x}.{function:x}'


def _parts(element: ElementTree.Element,
           where: str) -> tuple[int, int, int, int]:
    try:
        domain, bus, slot, function = (
            int(element.get(part, '0' if part == 'function' else ''), 16)
            for part in ('domain', 'bus', 'slot', 'function'))
    except ValueError as exc:
        raise exception.InvalidInput(
            where, 'has a device without a PCI address') from exc
    return domain, bus, slot, function
