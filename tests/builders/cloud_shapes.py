# SPDX-License-Identifier: Apache-2.0

"""Models of the hosts and instances whose topology files clouds publish.

See ``tests/data/nccl``. A host has twice the CPUs of the instance, its cells
are in the opposite order, and its addresses are its own.
"""

import dataclasses

from hpcvirt.instance_topology import description
from hpcvirt.instance_topology import places
from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model
from hpcvirt.model import wiring
from tests.builders import machines

GPU, NIC = '0x030200', '0x020700'


@dataclasses.dataclass(frozen=True)
class Shape:
    """An instance of a cloud.

    :ivar cpus: the guest CPUs of each cell
    :ivar groups: (cell, whether they are below a switch, guest address and
        class of each device)
    :ivar ids: class to vendor and product
    """

    cpus: tuple[str, ...]
    groups: tuple[tuple[int, bool, tuple[tuple[str, str], ...]], ...]
    speed_gts: float | None
    lanes: int | None
    ids: dict[str, tuple[str, str]]

    def host(self):
        """Create the host."""
        link = None if self.lanes is None else wiring.PCIeLink(
            2.5, self.lanes, self.speed_gts, self.lanes)
        bridges, attached, devices = [], [], []
        for number, (cell, is_below, inside) in enumerate(self.groups):
            first = 0x18 * number
            up = f'0000:{first + 1:02x}:00.0'
            if is_below:
                bridges += [
                    wiring.Bridge(f'0000:{first:02x}:01.0', None,
                                  wiring.PortKind.ROOT, link),
                    wiring.Bridge(up, f'0000:{first:02x}:01.0',
                                  wiring.PortKind.UPSTREAM, link)]
            for slot, (_, code) in enumerate(inside):
                port = (f'0000:{first + 2:02x}:{slot:02x}.0' if is_below
                        else f'0000:{first:02x}:{slot:02x}.0')
                bridges.append(wiring.Bridge(
                    port, up if is_below else None,
                    wiring.PortKind.DOWNSTREAM if is_below
                    else wiring.PortKind.ROOT, link))
                address = self.host_address(number, slot)
                devices.append(host_model.Device(
                    address, *self.ids[code], len(self.cpus) - 1 - cell))
                attached.append(wiring.Attachment(address, port, link))
        return machines.of_cells(
            *(machines.cell(number, (number,), socket=number)
              for number in range(len(self.cpus))),
            devices=tuple(devices),
            wired=wiring.Wiring(tuple(bridges), tuple(attached)))

    @staticmethod
    def host_address(group, slot):
        return f'0000:{0x18 * group + 3 + slot:02x}:00.0'

    def cells(self):
        """Return the cells of the instance."""
        return [description.InstanceCell(
            len(self.cpus) - 1 - number,
            tuple(frozenset((cpu,)) for cpu in sorted(cpuset.parse(cpus, ''))))
            for number, cpus in enumerate(self.cpus)]

    def held(self):
        """Return the devices of the instance, with their guest addresses."""
        return [description.HeldDevice(self.host_address(number, slot), guest)
                for number, (_, _, inside) in enumerate(self.groups)
                for slot, (guest, _) in enumerate(inside)]

    def seen(self):
        """Return what the guest sees, which knows no cells."""
        return [places.Function(guest, *self.ids[code], code)
                for _, _, inside in self.groups for guest, code in inside]


def _azure(gpus, nics):
    return tuple((f'{number:04x}:00:00.0', GPU) for number in gpus) + tuple(
        (f'{number:04x}:00:00.0', NIC) for number in nics)


def _p4d(gpu):
    return Shape(
        ('0-23,48-71', '24-47,72-95'),
        tuple((number // 2, True, (
            (f'0000:{bus}:1c.0', GPU), (f'0000:{bus}:1d.0', GPU),
            (f'0000:{bus}:1b.0', '0x020000')))
            for number, bus in enumerate(('10', '20', '90', 'a0'))), 8.0, 16,
        {GPU: ('10de', gpu), '0x020000': ('1d0f', 'efa0')})


SHAPES = {
    'aws/p4d-24xl-topo.xml': _p4d('20b0'),
    'aws/p4de-24xl-topo.xml': _p4d('20b2'),
    # 192 CPUs; the file does not say which.
    'aws/g5.48xl-topo.xml': Shape(
        ('0-47,96-143', '48-95,144-191'),
        tuple((cell, False, ((f'0000:00:{slot:02x}.0', code),))
              for cell, slot, code in (
                  *((0, slot, GPU) for slot in range(0x16, 0x1a)),
                  *((1, slot, GPU) for slot in range(0x1a, 0x1e)),
                  (1, 0x15, '0x020000'))), 16.0, 16,
        {GPU: ('10de', '2237'), '0x020000': ('1d0f', 'efa1')}),
    'azure/ndv2-topo.xml': Shape(
        ('0-19', '20-39'),
        ((0, False, _azure(range(1, 5), (0x101,))),
         (1, False, _azure(range(5, 9), ()))), 16.0, 16,
        {GPU: ('10de', '1db5'), NIC: ('15b3', '101a')}),
    'azure/ndv4-topo.xml': Shape(
        ('0-23', '24-47', '48-71', '72-95'),
        ((0, True, _azure((3, 4), (0x103, 0x104))),
         (1, True, _azure((1, 2), (0x101, 0x102))),
         (2, True, _azure((0xd, 0xe), (0x107, 0x108))),
         (3, True, _azure((0xb, 0xc), (0x105, 0x106)))), 16.0, 16,
        {GPU: ('10de', '20b0'), NIC: ('15b3', '101c')}),
    'azure/ndv5-topo.xml': Shape(
        ('0-47', '48-95'),
        tuple((number // 4, True, _azure((gpu,), (0x101 + number,)))
              for number, gpu in enumerate((1, 2, 3, 8, 9, 0xa, 0xb, 0xc))),
        32.0, 16, {GPU: ('10de', '2330'), NIC: ('15b3', '101e')}),
    'azure/ncv4-topo.xml': Shape(
        ('0-23', '24-47', '48-71', '72-95'),
        tuple((number, False, _azure((number + 1,), ()))
              for number in range(4)), None, None,
        {GPU: ('10de', '20b5')}),
}
