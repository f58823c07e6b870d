# SPDX-License-Identifier: Apache-2.0

"""All sources describe a machine by the same Host."""

import dataclasses
import unittest

from hpcvirt import topology
from hpcvirt.model import host as host_model
from hpcvirt.model import wiring
from hpcvirt.topology import capture
from tests.builders import machines
from tests.builders import sysfs_files
from tests.builders import writers

MACHINE = sysfs_files.MACHINES / 'emulated-intel-2x2x2'
INVENTED = range(20)


def without_vfs(host: host_model.Host) -> tuple[host_model.Device, ...]:
    """List the devices as hwloc does, without VFs and drivers."""
    return tuple(dataclasses.replace(device, total_vfs=0, driver=None,
                                     vf_product_id=None)
                 for device in host.devices)


def as_hwloc(wired: wiring.Wiring | None) -> wiring.Wiring | None:
    """Keep only the bridges above devices, as hwloc reports them."""
    return wired and wiring.Wiring(
        tuple(wiring.Bridge(each.address, each.above)
              for each in wired.bridges),
        tuple(wiring.Attachment(each.address, each.above)
              for each in wired.attachments),
        unknown=frozenset((wiring.UnknownWiring.IOMMU_GROUPS,)))


class Written(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.scratch = sysfs_files.scratch(self)

    def from_sysfs(self, files: dict[str, str],
                   seed: int = 0) -> host_model.Host:
        root = f'{self.scratch}/box-{seed}/box'
        sysfs_files.lay_out(files, root)
        return topology.read(root)

    def from_xml(self, data: bytes) -> host_model.Host:
        path = f'{self.scratch}/box.xml'
        with open(path, 'wb') as stream:
            stream.write(data)
        return topology.read(path)


class CapturedMachineTest(Written):
    def setUp(self) -> None:
        super().setUp()
        self.by_sysfs = self.from_sysfs(
            sysfs_files.captured('emulated-intel-2x2x2'))
        self.by_libvirt = topology.read(str(MACHINE / 'capabilities.xml'))
        self.by_hwloc = topology.read(str(MACHINE / 'lstopo.xml'))

    def test_sources_agree_on_cells_and_distances(self) -> None:
        self.assertEqual(self.by_sysfs.cells, self.by_libvirt.cells)
        self.assertEqual(self.by_sysfs.cells, self.by_hwloc.cells)
        self.assertEqual(((10, 21), (21, 10)), self.by_sysfs.distances)
        self.assertEqual(self.by_sysfs.distances, self.by_libvirt.distances)
        self.assertEqual(self.by_sysfs.distances, self.by_hwloc.distances)

    def test_hwloc_has_all_of_a_device_but_vfs_and_driver(self) -> None:
        self.assertEqual(without_vfs(self.by_sysfs), self.by_hwloc.devices)

    def test_the_same_bridges_are_above_the_devices(self) -> None:
        assert self.by_sysfs.wiring and self.by_hwloc.wiring
        self.assertEqual(as_hwloc(self.by_sysfs.wiring),
                         as_hwloc(self.by_hwloc.wiring))
        self.assertEqual(
            [['0000:40:00.0']] * 3 + [['0000:80:00.0']] * 3,
            [[bridge.address for bridge in self.by_sysfs.wiring.path(each)]
             for each in self.by_sysfs.wiring.attachments])

    def test_sysfs_agrees_with_numactl(self) -> None:
        first, second = self.by_sysfs.cells
        self.assertEqual({0, 1, 2, 3}, first.cpus)
        self.assertEqual(({4, 5}, {6, 7}), second.siblings)
        self.assertEqual((3921, 4030), (first.memory_mib, second.memory_mib))
        self.assertEqual(
            (host_model.PagePool(4, 741763), host_model.PagePool(2048, 512),
             host_model.PagePool(1048576, 0)), first.pages)

    def test_sysfs_has_adapters_with_their_vfs(self) -> None:
        found = {device.address: (device.product_id, device.cell,
                                  device.total_vfs, device.driver)
                 for device in self.by_sysfs.devices}
        self.assertEqual({
            '0000:41:00.0': ('10c9', 0, 7, 'igb'),
            '0000:41:10.0': ('10ca', 0, 0, 'igbvf'),
            '0000:41:10.2': ('10ca', 0, 0, 'igbvf'),
            '0000:81:00.0': ('10c9', 1, 7, 'igb'),
            '0000:81:10.0': ('10ca', 1, 0, 'vfio-pci'),
            '0000:81:10.2': ('10ca', 1, 0, 'igbvf')}, found)

    def test_hwloc_has_a_name_and_other_files_give_theirs(self) -> None:
        self.assertEqual('emuhost', self.by_hwloc.name)
        self.assertEqual('capabilities', self.by_libvirt.name)
        self.assertEqual('box', self.by_sysfs.name)


class InventedMachinesTest(Written):
    """Random machines, written by writers and read back."""

    def expect(self, seed: int, host: host_model.Host, read: host_model.Host,
               **unknown: object) -> None:
        self.assertEqual(dataclasses.replace(host, **unknown), read,
                         f'seed {seed}')

    def test_sysfs(self) -> None:
        for seed in INVENTED:
            host, offline = machines.invent(seed)
            read = self.from_sysfs(
                {capture.LIST: 'sys/**', **writers.sysfs(
                    host, offline, seed % 2 == 0)}, seed)
            if not host.distances:
                host = dataclasses.replace(host, distances=read.distances)
            self.expect(seed, host, read)

    def test_libvirt(self) -> None:
        for seed in INVENTED:
            host, offline = machines.invent(seed)
            self.expect(seed, host,
                        self.from_xml(writers.libvirt(host, offline)),
                        devices=(), wiring=None)

    def test_hwloc(self) -> None:
        for seed in INVENTED:
            host, offline = machines.invent(seed)
            self.expect(
                seed, host, self.from_xml(writers.hwloc(host, offline)),
                devices=without_vfs(host), wiring=as_hwloc(host.wiring))
            # Version 1, of a whole system.
            self.expect(
                seed, host, self.from_xml(writers.hwloc(
                    host, offline, version=1, show_offline=True)),
                distances=(), devices=without_vfs(host),
                wiring=as_hwloc(host.wiring))
