# SPDX-License-Identifier: Apache-2.0

"""Check how devices are wired where it is known, because QEMU was told.

* hpcvirt reads the wiring of an emulated host from its sysfs and from the XML
  of lstopo. Both must say what QEMU was told: the bridges above each device,
  and its cell. The host has switches, one below another, and SR-IOV disks; the
  virtual functions of network adapters (igb) need QEMU 8.
* A guest is emulated from the XML that Nova makes with patch 0009 of
  contrib/nova, with disks in place of the passed-through devices. Its kernel
  and lstopo must find each on the cell that the XML says.
"""

import dataclasses
import functools
import itertools
import pathlib
from collections.abc import Iterable
from collections.abc import Iterator
from xml.etree import ElementTree

from hpcvirt import topology
from hpcvirt.model import host as host_model
from hpcvirt.model import wiring
from hpcvirt.topology import document
from tests.system.emulated_host import boot
from tests.system.emulated_host import kernel as kernels
from tests.system.emulated_host import machines

#: tests/functional/test_nova_patches.py checks that Nova makes it.
GUEST = boot.CLONE / 'tests/data/guests/expander-buses.xml'

#: A machine takes 25 s, or 60 s beside others.
LIMIT_S = 300

#: The virtual functions of each SR-IOV disk.
VFS = 2

_KINDS = {'pcie-root-port': wiring.PortKind.ROOT,
          'x3130-upstream': wiring.PortKind.UPSTREAM,
          'xio3130-downstream': wiring.PortKind.DOWNSTREAM}

_LSTOPO = 'lstopo --of xml --whole-io > /job/hwloc.xml\n'

_DISKS = """\
for disk in /sys/class/nvme/*; do
    device=$(readlink -f "$disk/device")
    echo "$(cat "$disk/serial") ${device##*/} $(cat "$device/numa_node")"
done > /job/disks
"""


class WiringDiffers(Exception):
    """Something is not where QEMU was told to put it."""


@dataclasses.dataclass(frozen=True)
class Part:
    """A device, or a bridge with a part in each slot below it.

    :ivar driver: QEMU's driver and its options
    """

    driver: str
    below: tuple['Part', ...] = ()

    @property
    def kind(self) -> wiring.PortKind | None:
        return _KINDS.get(self.driver.partition(',')[0])


@dataclasses.dataclass(frozen=True)
class Placed:
    """A part where the kernel finds it.

    :ivar above: the bridge above it; None if it is on a root bus
    """

    name: str
    part: Part
    address: str
    above: 'Placed | None'

    @property
    def path(self) -> tuple[str, ...]:
        """List the addresses of the bridges above it, the root port first."""
        return (*self.above.path, self.above.address) if self.above else ()


@dataclasses.dataclass(frozen=True)
class WiredHost(machines.Machine):
    """A host with parts on the root bus of each cell."""

    parts: tuple[tuple[Part, ...], ...] = ()

    def _devices(self, cell: int) -> Iterator[str]:
        yield from ('-device', (
            f'pxb-pcie,id=cell{cell},bus=pcie.0,bus_nr={_first_bus(cell)},'
            f'numa_node={cell}'))
        for number, each in enumerate(self.placed(cell)):
            bus = each.above.name if each.above else f'cell{cell}'
            slot = int(each.address[8:10], 16)
            more = f'id={each.name},bus={bus},addr={slot}'
            if each.part.kind not in {None, wiring.PortKind.UPSTREAM}:
                more += f',chassis={100 * cell + number + 1},slot={slot}'
            if each.part.driver.startswith('nvme'):
                more += f',serial={each.name},subsys=of-{each.name}'
                yield from ('-device', f'nvme-subsys,id=of-{each.name}')
            yield from ('-device', f'{each.part.driver},{more}')

    def placed(self, cell: int) -> list[Placed]:
        """List the parts of a cell.

        The firmware numbers the buses: that of a bridge, all that are below
        it, then that of the next bridge.
        """
        found: list[Placed] = []
        buses = itertools.count(_first_bus(cell))

        def place(parts: Iterable[Part], above: Placed | None) -> None:
            bus = next(buses)
            for slot, part in enumerate(parts):
                each = Placed(f'part{cell}.{len(found)}', part,
                              f'0000:{bus:02x}:{slot:02x}.0', above)
                found.append(each)
                if part.below:
                    place(part.below, each)

        place(self.parts[cell], None)
        return found


def _first_bus(cell: int) -> int:
    return 64 * (cell + 1)


_ADAPTER = Part('pcie-root-port', (Part('e1000e'),))
_DISK = Part('nvme')
_SRIOV_DISK = Part('nvme,sriov_max_vfs=4,sriov_vq_flexible=8,'
                   'sriov_vi_flexible=4,max_ioqpairs=12,msix_qsize=8')


def _switch(*below: Part) -> Part:
    return Part('x3130-upstream', tuple(
        Part('xio3130-downstream', (each,)) for each in below))


#: Two disks at a switch, and a switch below a switch.
HOST = WiredHost(
    'wired', machines.TWO_SOCKETS.cpu, 2, 2, 1, (('0-1', 768), ('2-3', 768)),
    tuning='for disk in /sys/bus/pci/drivers/nvme/*/sriov_numvfs; do '
    f'echo {VFS} > "$disk"; done', parts=(
        (Part('pcie-root-port,x-speed=8,x-width=16', (
            _switch(_SRIOV_DISK, _DISK),)), _ADAPTER),
        (_ADAPTER, Part('pcie-root-port,x-speed=16,x-width=8', (
            _switch(_DISK, _switch(_SRIOV_DISK, _DISK)),)))))


@dataclasses.dataclass(frozen=True)
class NovaGuest(machines.Machine):
    """A guest as libvirt would start it, with disks as devices.

    libvirt gives the lowest free index to controllers without one, and their
    ports to devices without an address.
    """

    @functools.cached_property
    def root(self) -> ElementTree.Element:
        return document.xml_root(GUEST.read_bytes(), GUEST.name)

    def _devices(self, cell: int) -> Iterator[str]:
        if cell:
            return  # All were named with the first.
        controllers = self.root.findall('.//controller[@type="pci"]')
        free = iter(sorted({*range(1, len(controllers))} - {
            int(each.get('index', '0')) for each in controllers}))
        ports, rest = [], []
        for each in controllers:
            if each.get('model') == 'pcie-expander-bus':
                number = next(each.iterfind('target')).attrib['busNr']
                yield from ('-device', (
                    f'pxb-pcie,id=pci.{each.get("index")},bus=pcie.0,'
                    f'bus_nr={number},'
                    f'numa_node={each.findtext("target/node")}'))
            elif each.get('index'):
                place = f'pci.{_read(each, "bus")},addr={_read(each, "slot")}'
                ports.append((each.get('index'), place))
            elif each.get('model') == 'pcie-root-port':
                rest.append(next(free))
        ports += [(index, 'pcie.0') for index in rest]
        for index, place in ports:
            port = f'pcie-root-port,id=pci.{index},chassis={index}'
            yield from ('-device', f'{port},bus={place}')
        for serial, each in self.devices().items():
            bus = rest.pop(0) if each.find('address') is None else _read(
                each, 'bus')
            yield from ('-device', f'nvme,serial={serial},bus=pci.{bus}')

    def devices(self) -> dict[str, ElementTree.Element]:
        """Return the devices by their bus on the host."""
        return {f'{_read(each, "bus", "source/address"):02x}': each
                for each in (*self.root.iterfind('.//interface'),
                             *self.root.iterfind('.//hostdev'))}

    def expected(self) -> dict[str, int]:
        """Return the cell of each device by its bus on the host, or -1."""
        controllers = {int(each.get('index', '0')): each
                       for each in self.root.iterfind('.//controller')}
        cells = {}
        for serial, each in self.devices().items():
            cells[serial] = -1
            if each.find('address') is not None:
                port = controllers[_read(each, 'bus')]
                expander = controllers[_read(port, 'bus')]
                cells[serial] = int(expander.findtext('target/node', ''))
        return cells


def _read(element: ElementTree.Element, field: str,
          at: str = 'address') -> int:
    return int(next(element.iterfind(at)).attrib[field], 16)


def paths(host: host_model.Host) -> dict[str, list[str]]:
    """List the addresses of the bridges above each device."""
    wired = host.wiring or wiring.Wiring()
    return {each.address: [bridge.address for bridge in wired.path(each)]
            for each in wired.attachments}


def speeds(host: host_model.Host) -> dict[str, float]:
    """List the GB/s of each link; from 8 GT/s on, 128 of 130 bits are data."""
    wired = host.wiring or wiring.Wiring()
    found = {}
    for each in (*wired.bridges, *wired.attachments):
        link = each.link
        if link and link.gb_per_s is not None:
            found[each.address] = link.gb_per_s
        elif link and link.speed_gts and link.lanes:
            found[each.address] = link.speed_gts * link.lanes / 8 * (
                0.8 if link.speed_gts < 8 else 128 / 130)
    return found


def check_host(kernel: kernels.Kernel, job: pathlib.Path, show: str) -> None:
    """Compare the two readings of a host with what QEMU was told.

    :param show: the shell command that writes the host to /job/sysfs.json
    """
    _run(HOST, kernel, job, show + _LSTOPO)
    by_sysfs = topology.read(str(job / 'sysfs.json'))
    by_hwloc = topology.read(str(job / 'hwloc.xml'))
    told: dict[str, list[str]] = {}
    kinds, cells = {}, {}
    for cell in range(len(HOST.cells)):
        for each in HOST.placed(cell):
            addresses = [each.address]
            if each.part.kind:
                kinds[each.address] = each.part.kind
                continue
            if each.part is _SRIOV_DISK:
                addresses += [f'{each.address[:-1]}{number + 1}'
                              for number in range(VFS)]
            told |= {address: list(each.path) for address in addresses}
            cells |= dict.fromkeys(addresses, cell)
    for source, host in (('sysfs', by_sysfs), ('lstopo', by_hwloc)):
        _expect(f'bridges of {source}', told, paths(host))
        _expect(f'cells of {source}', cells, {
            device.address: device.cell for device in host.devices})
    bridges = by_sysfs.wiring.bridges if by_sysfs.wiring else ()
    _expect('kinds of bridges', kinds, {
        bridge.address: bridge.kind for bridge in bridges})
    _expect('fastest links of root ports', {(16, 8), (8, 16), (16, 32)}, {
        (each.link.most_speed_gts, each.link.most_lanes)
        for each in bridges if each.kind == wiring.PortKind.ROOT
        and each.link})
    _expect('speeds', _rounded(speeds(by_sysfs)), _rounded({
        address: speed for address, speed in speeds(by_hwloc).items()
        if address in speeds(by_sysfs)}))


def _run(machine: machines.Machine, kernel: kernels.Kernel,
         job: pathlib.Path, commands: str) -> None:
    """Run commands on a machine, and start it once more if it hangs.

    Under emulation on a busy computer, its kernel once stopped before it
    wrote anything.
    """
    try:
        boot.run(machine, kernel, job, commands, LIMIT_S)
    except boot.BootFailed:
        if (job / 'log').exists():
            raise
        boot.run(machine, kernel, job, commands, LIMIT_S)


def _rounded(figures: dict[str, float]) -> dict[str, float]:
    return {address: round(figure, 2) for address, figure in figures.items()}


def check_guest(kernel: kernels.Kernel, job: pathlib.Path) -> None:
    """Compare the cells that a guest sees with those of Nova's XML."""
    guest = NovaGuest('guest', 'qemu64', 2, 2, 1,
                      (('0-1', 512), ('2-3', 512)))
    _expect('cells of the XML', [
        cell.attrib['cpus'] for cell in guest.root.iterfind('.//cell')],
        [cpus for cpus, _ in guest.cells])
    _run(guest, kernel, job, _DISKS + _LSTOPO)
    disks = [line.split() for line in
             (job / 'disks').read_text().splitlines()]
    _expect('cells that the kernel sees', guest.expected(), {
        serial: int(cell) for serial, _, cell in disks})
    by_lstopo = {device.address: -1 if device.cell is None else device.cell
                 for device in topology.read(str(job / 'hwloc.xml')).devices}
    _expect('cells that lstopo sees', guest.expected(), {
        serial: by_lstopo[address] for serial, address, _ in disks})


def _expect(what: str, told: object, found: object) -> None:
    if told != found:
        raise WiringDiffers(f'{what}: {found}, not {told}')
