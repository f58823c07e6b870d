# SPDX-License-Identifier: Apache-2.0

"""Hosts with GPUs and network cards below switches."""

import dataclasses
import itertools

from hpcvirt.model import host as host_model
from hpcvirt.model import wiring
from tests.builders import hosts
from tests.builders import machines

ON = frozenset(('SrcValid', 'ReqRedir', 'CmpltRedir', 'UpstreamFwd'))
GEN5 = wiring.PCIeLink(32.0, 16, 32.0, 16)
GPUS = ('0000:18:00.0', '0000:19:00.0', '0000:98:00.0', '0000:99:00.0')


def host() -> host_model.Host:
    """Create the host; each switch has an HCA too, and cell 0 an NVMe."""
    bridges, attached, devices = [], [], []
    for cell, bus in ((0, 0x15), (1, 0x95)):
        root, up = f'0000:{bus:02x}:01.0', f'0000:{bus + 1:02x}:00.0'
        bridges += [
            wiring.Bridge(root, None, wiring.PortKind.ROOT, GEN5, ON),
            wiring.Bridge(up, root, wiring.PortKind.UPSTREAM, GEN5,
                          frozenset())]
        for slot, (vendor, product, driver, vfs) in enumerate((
                ('10de', '2330', 'vfio-pci', 0),
                ('10de', '2330', 'vfio-pci', 0),
                ('15b3', '1021', 'mlx5_core', 16))):
            down = f'0000:{bus + 2:02x}:{slot:02x}.0'
            address = f'0000:{bus + 3 + slot:02x}:00.0'
            bridges.append(wiring.Bridge(
                down, up, wiring.PortKind.DOWNSTREAM, GEN5,
                frozenset(('SrcValid',)) if slot == 2 else frozenset()))
            devices.append(host_model.Device(address, vendor, product, cell,
                                             vfs, driver))
            attached.append(wiring.Attachment(
                address, down, GEN5, 20 + 10 * cell + slot,
                (26.562,) * (18 if slot == 0 else 17) + (0,) * (slot == 1)
                if vendor == '10de' else ()))
    bridges.append(wiring.Bridge('0000:00:03.0', None, wiring.PortKind.ROOT,
                                 wiring.PCIeLink(8.0, 2, 16.0, 4)))
    devices.append(host_model.Device('0000:01:00.0', '144d', 'a80a', 0, 0,
                                     'nvme'))
    attached.append(wiring.Attachment(
        '0000:01:00.0', '0000:00:03.0', wiring.PCIeLink(8.0, 2, 16.0, 4), 3))
    order = sorted(range(len(devices)), key=lambda at: devices[at].address)
    return machines.of_cells(
        machines.cell(0, (0,), (1,)), machines.cell(1, (2,), (3,), socket=1),
        devices=tuple(devices[at] for at in order),
        wired=wiring.Wiring(
            tuple(sorted(bridges, key=lambda bridge: bridge.address)),
            tuple(attached[at] for at in order),
            (wiring.DeviceLink(wiring.LinkKind.NVLINK, GPUS[:2], 18),
             wiring.DeviceLink(wiring.LinkKind.NVLINK, GPUS[::2], 6),
             wiring.DeviceLink(wiring.LinkKind.NVLINK, GPUS[::3], 6),
             wiring.DeviceLink(wiring.LinkKind.NVLINK, GPUS[1:3], 6),
             wiring.DeviceLink(wiring.LinkKind.NVLINK, GPUS[1::2], 6),
             wiring.DeviceLink(wiring.LinkKind.NVLINK, GPUS[2:], 18)),
            (wiring.FabricPartition(0, GPUS, True),
             wiring.FabricPartition(1, GPUS[:2]))))


def tree(cells: int = 2, switches: int = 2, gpus: int = 2, nics: int = 1,
         vfs: int = 8, links: str = 'all', cores: int = 16,
         name: str = 'tree') -> host_model.Host:
    """Create a host with GPUs and network cards below switches.

    :param switches: the switches of each cell, on one root complex
    :param gpus: the GPUs below each switch
    :param nics: the cards below each switch
    :param links: which GPUs are linked: all, those of a cell, or none
    """
    bridges, attached, devices = [], [], []
    for cell in range(cells):
        for number in range(switches):
            bus = 0x10 + 0x30 * cell + 0x10 * number
            root = f'0000:{0x30 * cell:02x}:{number + 1:02x}.0'
            up = f'0000:{bus:02x}:00.0'
            bridges += [wiring.Bridge(root, None, wiring.PortKind.ROOT),
                        wiring.Bridge(up, root, wiring.PortKind.UPSTREAM)]
            for slot in range(gpus + nics):
                address = f'0000:{bus + 2 + slot:02x}:00.0'
                down = f'0000:{bus + 1:02x}:{slot:02x}.0'
                bridges.append(wiring.Bridge(down, up,
                                             wiring.PortKind.DOWNSTREAM))
                attached.append(wiring.Attachment(address, down))
                devices.append(host_model.Device(
                    address, '10de', '2330', cell, 0, 'vfio-pci')
                    if slot < gpus else host_model.Device(
                        address, '15b3', '1021', cell, vfs, 'mlx5_core',
                        '101e' if vfs else None))
    own = [device for device in devices if device.vendor_id == '10de']
    base = hosts.build(cells, cores, mib=65536, name=name)
    return dataclasses.replace(base, devices=tuple(devices), wiring=(
        wiring.Wiring(tuple(bridges), tuple(attached), tuple(
            wiring.DeviceLink(wiring.LinkKind.NVLINK,
                              (one.address, other.address), 18)
            for one, other in itertools.combinations(own, 2)
            if links == 'all' or (links == 'cell'
                                  and one.cell == other.cell)))))
