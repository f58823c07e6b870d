# SPDX-License-Identifier: Apache-2.0

"""A fake libvirt that reports one :class:`hpcvirt.model.host.Host` exactly.

Nova's own fake builds regular machines from four numbers. Real machines have
host cells of different sizes, gaps in the CPU numbers, distant siblings, and
memory without CPUs. Therefore this fake builds the capabilities XML from the
model, host cell by host cell.
"""

import dataclasses
import itertools
from collections.abc import Iterable
from collections.abc import Iterator

from nova.tests.fixtures import libvirt as fakelibvirt
from nova.virt.libvirt import config as vconfig

from hpcvirt.model import host as host_model
from testing import settings as embedded_settings

#: The first slot of unlisted virtual functions, behind the physical ones.
FIRST_VF_SLOT = 2
SLOTS = 32
FUNCTIONS = 8


@dataclasses.dataclass(frozen=True, slots=True)
class Machine:
    """The hardware and the configuration of a compute host.

    :ivar host: the hardware; its name is the host's name in Nova
    :ivar settings: the host's part of nova.conf
    :ivar enabled_vfs: number of virtual functions of each physical function,
        up to its limit; None for those that the host lists
    :ivar vgpus: number of vGPUs of each of the ``mdev_addresses``
    """

    host: host_model.Host
    settings: embedded_settings.ComputeSettings
    enabled_vfs: int | None = None
    vgpus: int = 0

    @property
    def name(self) -> str:
        return self.host.name

    def functions(self) -> Iterator['Function']:
        """Yield all PCI functions, physical ones before their virtual ones."""
        devices = self.host.devices
        free = _free_addresses({each.address for each in devices})
        listed = _virtual_functions(devices)
        for device in devices:
            if device in itertools.chain(*listed.values()):
                continue
            virtual = list(listed.get(device, ()))
            count = min(device.total_vfs, self.enabled_vfs or 0)
            product = virtual[0].product_id if virtual else (
                f'{int(device.product_id, 16) + 1 & 0xffff:04x}')
            virtual.extend(dataclasses.replace(
                device, address=next(free[_bus(device)]), total_vfs=0,
                product_id=product) for _ in range(count - len(virtual)))
            yield Function(device, virtual=tuple(
                each.address for each in virtual))
            for each in virtual:
                yield Function(each, physical=device.address)


@dataclasses.dataclass(frozen=True, slots=True)
class Function:
    """A PCI function as libvirt lists it.

    :ivar device: the device in the model
    :ivar physical: address of its physical function, None if it is one
    :ivar virtual: addresses of its virtual functions
    """

    device: host_model.Device
    physical: str | None = None
    virtual: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        return self.device.address

    def xml(self, more: str = '') -> str:
        """Return the XML that ``virsh nodedev-dumpxml`` prints.

        :param more: further capabilities
        """
        domain, bus, slot, function = _numbers(self.address)
        device = self.device
        cell = '' if device.cell is None else f"<numa node='{device.cell}'/>"
        links = ''
        if device.total_vfs:
            # libvirt writes the capability even without virtual functions.
            links = _links('virt_functions', *self.virtual)
        elif self.physical:
            links = _links('phys_function', self.physical)
        return (
            f'<device><name>{_name(self.address)}</name>'
            f'<parent>computer</parent>'
            f'<driver><name>{device.driver or "vfio-pci"}</name></driver>'
            f"<capability type='pci'><domain>{domain}</domain>"
            f'<bus>{bus}</bus><slot>{slot}</slot>'
            f'<function>{function}</function>'
            f"<product id='0x{device.product_id}'/>"
            f"<vendor id='0x{device.vendor_id}'/>{links}{more}{cell}"
            f'</capability></device>')


class PCIDevices(fakelibvirt.HostPCIDevicesInfo):
    """The PCI functions of a machine."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(num_pfs=0, num_vfs=0)
        given = machine.settings.mdev_addresses
        self.devices = {
            _name(each.address): PCIDevice(
                each, machine.vgpus if each.address in given else 0,
                machine.settings.mdev_type)
            for each in machine.functions()}


class PCIDevice:
    """One PCI function, with the attributes that Nova's fake needs."""

    mac_address = None

    def __init__(self, function: Function, vgpus: int = 0,
                 mdev_type: str | None = None) -> None:
        """Create a device.

        :param vgpus: number of mediated devices that it can still have
        """
        self.function = function
        self.vgpus = vgpus
        self.mdev_type = mdev_type
        self.address = function.address
        self.is_capable_of_mdevs = bool(vgpus)
        self.pci_device = self.XMLDesc(0)

    def XMLDesc(self, flags: int) -> str:  # noqa: ARG002, N802
        return self.function.xml(
            "<capability type='mdev_types'>"
            f"<type id='{self.mdev_type}'><deviceAPI>vfio-pci</deviceAPI>"
            f'<availableInstances>{self.vgpus}</availableInstances></type>'
            '</capability>' if self.is_capable_of_mdevs else '')


class MediatedDevice(fakelibvirt.FakeMdevDevice):
    """A vGPU that nova-compute created."""

    def __init__(self, xml: str) -> None:
        config = vconfig.LibvirtConfigNodeDevice()
        config.parse_str(xml)
        self.parent = config.parent
        self.mdev_name = 'mdev_' + config.mdev_information.uuid.replace(
            '-', '_')
        super().__init__(self.mdev_name, config.mdev_information.type,
                         config.parent)

    def name(self) -> str:
        return self.mdev_name

    def setAutostart(self, autostart: bool) -> None:  # noqa: N802
        pass


class Connection(fakelibvirt.Connection):
    """The connection of a machine's nova-compute to its libvirt."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.settings = machine.settings
        self.physical_functions = frozenset(
            each.address for each in machine.functions()
            if each.device.total_vfs)
        self._domain_xml: dict[str, str] = {}
        super().__init__(
            'qemu:///system', version=fakelibvirt.FAKE_LIBVIRT_VERSION,
            hv_version=fakelibvirt.FAKE_QEMU_VERSION,
            host_info=_host_info(machine.host),
            pci_info=PCIDevices(machine), hostname=machine.name)

    def getInfo(self) -> list[object]:  # noqa: N802
        """Return memory in MiB like libvirt; Nova's fake returns KiB."""
        info: list[object] = super().getInfo()
        info[1] = sum(c.memory_mib for c in self.machine.host.cells)
        return info

    def getCPUMap(self) -> tuple[int, list[bool], int]:  # noqa: N802
        """Return the CPUs by number; the numbers in a gap are offline."""
        online = self.machine.host.cpus
        last = max(online) + 1
        return last, [cpu in online for cpu in range(last)], len(online)

    def nodeDeviceCreateXML(  # noqa: N802
            self, xml: str, flags: int) -> MediatedDevice:  # noqa: ARG002
        created = MediatedDevice(xml)
        self.mdev_info.devices[created.name()] = created
        self.pci_info.devices[created.parent].vgpus -= 1
        return created

    def nodeDeviceDefineXML(  # noqa: N802
            self, xml: str, flags: int) -> MediatedDevice:  # noqa: ARG002
        return MediatedDevice(xml)

    def defineXML(self, xml: str) -> fakelibvirt.Domain:  # noqa: N802
        domain = super().defineXML(xml)
        self._domain_xml[domain.name()] = xml
        return domain

    def createXML(  # noqa: N802
            self, xml: str, flags: int) -> fakelibvirt.Domain:
        domain = super().createXML(xml, flags)
        self._domain_xml[domain.name()] = xml
        return domain

    def domain(self, name: str) -> str:
        """Return the XML of a domain, as Nova passed it."""
        return self._domain_xml[name]

    def domains(self) -> tuple[str, ...]:
        """Return the XML of all domains."""
        return tuple(map(self.domain, list(self._vms)))


def _host_info(host: host_model.Host) -> fakelibvirt.HostInfo:
    sockets = len(host.sockets) or 1
    cores = sum(len(cell.siblings) for cell in host.cells)
    info = fakelibvirt.HostInfo(
        cpu_nodes=1, cpu_sockets=sockets, cpu_cores=cores // sockets,
        cpu_threads=host.threads_per_core,
        kB_mem=sum(c.memory_mib for c in host.cells) * 1024)
    info.cpus = len(host.cpus)
    info.numa_topology = vconfig.LibvirtConfigCapsNUMATopology()
    info.numa_topology.cells = [_cell(cell) for cell in host.cells]
    return info


def _cell(cell: host_model.Cell) -> vconfig.LibvirtConfigCapsNUMACell:
    element = vconfig.LibvirtConfigCapsNUMACell()
    element.id = cell.id
    element.memory = cell.memory_mib * 1024
    element.mempages = fakelibvirt.create_mempages(
        [(pool.size_kib, pool.total) for pool in cell.pages])
    for core, siblings in enumerate(cell.siblings):
        for number in sorted(siblings):
            cpu = vconfig.LibvirtConfigCapsNUMACPU()
            cpu.id = number
            cpu.socket_id = cell.socket
            cpu.core_id = core
            cpu.siblings = set(siblings)
            element.cpus.append(cpu)
    element.cpus.sort(key=lambda cpu: cpu.id)
    return element


def _bus(device: host_model.Device) -> str:
    return device.address[:7]


def _virtual_functions(devices: Iterable[host_model.Device],
                       ) -> dict[host_model.Device, list[host_model.Device]]:
    """Return physical function to the virtual functions that a host lists.

    The model does not relate them. A function is taken for a virtual one if it
    has no virtual functions itself, and is another product of the same vendor
    on the same bus as a physical function.
    """
    found: dict[host_model.Device, list[host_model.Device]] = {}
    physical = [device for device in devices if device.total_vfs]
    for device in devices:
        for owner in physical:
            mine = found.setdefault(owner, [])
            if (not device.total_vfs and _bus(owner) == _bus(device)
                    and owner.vendor_id == device.vendor_id
                    and owner.product_id != device.product_id
                    and len(mine) < owner.total_vfs):
                mine.append(device)
                break
    return found


def _free_addresses(taken: set[str]) -> dict[str, Iterator[str]]:
    """Return bus (``0000:41``) to free addresses for virtual functions."""
    def on(bus: str) -> Iterator[str]:
        for slot, function in itertools.product(
                range(FIRST_VF_SLOT, SLOTS), range(FUNCTIONS)):
            address = f'{bus}:{slot:02x}.{function}'
            if address not in taken:
                yield address
    return {bus: on(bus) for bus in {address[:7] for address in taken}}


def _numbers(address: str) -> tuple[int, int, int, int]:
    domain, bus, rest = address.split(':')
    slot, function = rest.split('.')
    return int(domain, 16), int(bus, 16), int(slot, 16), int(function, 16)


def _name(address: str) -> str:
    return 'pci_' + address.replace(':', '_').replace('.', '_')


def _links(kind: str, *addresses: str) -> str:
    targets = ''.join(
        f"<address domain='0x{domain:04x}' bus='0x{bus:02x}'"
        f" slot='0x{slot:02x}' function='0x{function:x}'/>"
        for domain, bus, slot, function in map(_numbers, addresses))
    return f"<capability type='{kind}'>{targets}</capability>"
