# SPDX-License-Identifier: Apache-2.0

"""The emulated hosts are read as QEMU was told to emulate them."""

import pathlib
import unittest

from hpcvirt import topology
from hpcvirt.model import host as host_model
from hpcvirt.topology.alike import hardware_features
from tests.builders import sysfs_files


class EmulatedHostsTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.root = pathlib.Path(sysfs_files.scratch(self))

    def read(self, name: str) -> host_model.Host:
        sysfs_files.lay_out(sysfs_files.emulated(name), self.root / name)
        return topology.read(str(self.root / name))

    def test_each_host_has_its_sockets_cells_and_threads(self) -> None:
        found = {}
        for path in sysfs_files.HOSTS.glob('*.txt'):
            host = self.read(path.stem)
            found[host.name] = (
                len(host.sockets), [cell.cpus for cell in host.cells],
                host.threads_per_core)
        two_of_four = [set(range(4)), set(range(4, 8))]
        self.assertEqual({
            'intel-2s-smt': (2, two_of_four, 2),
            'intel-2s-snc2': (2, [{0, 1}, {2, 3}, {4, 5}, {6, 7}], 1),
            'intel-2s-tuned': (2, two_of_four, 1),
            'amd-2s': (2, [{0, 1}, {2, 3}], 1),
            'intel-2s-untuned': (2, two_of_four, 2)}, found)

    def test_inspection_by_ironic_agrees_with_sysfs(self) -> None:
        inspected = topology.read(
            str(sysfs_files.HOSTS / 'intel-2s-smt.ironic.json'))
        host = self.read('intel-2s-smt')
        self.assertEqual(host.processor, inspected.processor)
        self.assertEqual(
            [(cell.id, cell.cpus, cell.siblings, cell.llc)
             for cell in host.cells],
            [(cell.id, cell.cpus, cell.siblings, cell.llc)
             for cell in inspected.cells])
        # The inspection lists no drivers but those of network adapters.
        self.assertEqual(
            [(device.address, device.vendor_id, device.product_id,
              device.cell) for device in host.devices],
            [(device.address, device.vendor_id, device.product_id,
              device.cell) for device in inspected.devices])
        for cell, other in zip(host.cells, inspected.cells, strict=True):
            self.assertTrue(hardware_features.is_close(cell.memory_mib,
                                                       other.memory_mib))

    def test_pages_reserved_at_boot_are_in_their_cells(self) -> None:
        host = self.read('intel-2s-tuned')
        self.assertEqual([host_model.PagePool(2048, 384)] * 2,
                         [cell.pool(2048) for cell in host.cells])

    def test_cards_are_at_their_cells_with_their_functions(self) -> None:
        host = self.read('intel-2s-tuned')
        found = {device.address: (device.product_id, device.cell,
                                  device.total_vfs, device.driver)
                 for device in host.devices}
        self.assertEqual({
            '0000:21:00.0': ('10d3', 0, 0, 'e1000e'),
            '0000:22:00.0': ('0010', 0, 4, 'nvme'),
            '0000:22:00.1': ('0010', 0, 0, None),
            '0000:22:00.2': ('0010', 0, 0, None),
            '0000:41:00.0': ('10d3', 1, 0, 'e1000e'),
            '0000:42:00.0': ('0010', 1, 4, 'nvme'),
            '0000:42:00.1': ('0010', 1, 0, None),
            '0000:42:00.2': ('0010', 1, 0, None)}, found)
