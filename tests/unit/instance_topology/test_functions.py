# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.instance_topology import functions
from hpcvirt.instance_topology import places
from hpcvirt.topology import domain
from tests.builders import folders
from tests.builders import guest_files
from tests.builders import sysfs_files

DOMAIN = sysfs_files.MACHINES.with_name('guests') / 'expander-domain.xml'


class ReadTest(unittest.TestCase):
    def test_what_the_guest_sees_is_read(self):
        written = [
            places.Function('0000:05:00.0', '10de', '2330', '0x030200', 1, (),
                            '/dev/nvidia3'),
            places.Function('0000:06:00.0', '15b3', '101e', '0x020700', None,
                            ('mlx5_0:1', 'mlx5_0:2')),
            places.Function('0000:07:00.0', '1af4', '1041', '0x020000', 0,
                            ('eth0',)),
            places.Function('0001:00:00.0', '1002', '74a1', '0x120000', 0, (),
                            '/dev/dri/renderD129')]
        root = folders.make(self)
        guest_files.write(root, written)
        # The driver of NVIDIA has a render node as well.
        (root / 'sys/bus/pci/devices/0000:05:00.0/drm/renderD128').mkdir(
            parents=True)
        self.assertEqual(written, functions.read(str(root)))

    def test_a_kernel_sees_what_the_domain_says(self):
        """Expander buses are on guest cells, other devices are on none."""
        root = folders.make(self)
        sysfs_files.lay_out(sysfs_files.guest('expander-sysfs'), root)
        seen = {each.address: each for each in functions.read(str(root))}
        found = domain.read(DOMAIN.read_text()).guest_addresses
        self.assertEqual({'0000:98:00.0': 0, '0000:19:00.0': 0,
                          '0000:18:00.0': 1, '0000:41:00.2': 1,
                          '0000:99:00.0': None},
                         {host: seen[guest].cell
                          for host, guest in found.items()})
        self.assertEqual({('1b36', '0005')}, {
            (seen[guest].vendor, seen[guest].product)
            for guest in found.values()})

    def test_what_no_kernel_writes_is_not_read(self):
        """A copy of a guest is made by its user."""
        root = folders.make(self)
        guest_files.write(root, [places.Function(
            '0000:05:00.0', '10de" x="', '2330\x1b[2J', '0x030200"/><', 0,
            ('mlx5\n0:1', 'eth 0'), '/dev/nvidia0')])
        self.assertEqual([places.Function(
            '0000:05:00.0', '', '', '', 0, (), '/dev/nvidia0')],
            functions.read(str(root)))

    def test_a_guest_without_a_sysfs_is_an_error(self):
        self.assertRaises(OSError, functions.read, str(folders.make(self)))
