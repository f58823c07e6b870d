# SPDX-License-Identifier: Apache-2.0

"""PCIe links that have lost width or speed."""

import unittest

from hpcvirt.health import pci_links
from tests.builders import folders

FILES = ('current_link_width', 'max_link_width', 'current_link_speed',
         'max_link_speed')
PORT = ('16', '16', '16.0 GT/s PCIe', '16.0 GT/s PCIe')


class PciLinksTest(unittest.TestCase):
    def losses(self, device, port=PORT, kind='0x020000', virtual=False):
        root = folders.make(self)
        place = root / 'devices/pci0000:00/0000:00:01.0/0000:01:00.0'
        place.mkdir(parents=True)
        for folder, values in ((place, device), (place.parent, port)):
            for name, value in zip(FILES, values, strict=True):
                (folder / name).write_text(f'{value}\n')
        (place / 'class').write_text(f'{kind}\n')
        if virtual:
            (place / 'physfn').symlink_to(place)
        (root / 'bus/pci/devices').mkdir(parents=True)
        (root / 'bus/pci/devices/0000:01:00.0').symlink_to(place)
        return dict(pci_links.read_losses(root))

    def test_a_link_is_compared_with_what_both_ends_can(self):
        for device, port, loss in (
                (('16', '16', '16.0 GT/s', '16.0 GT/s PCIe'), PORT, 0.0),
                (('8', '16', '16.0 GT/s', '16.0 GT/s'), PORT, 0.5),
                (('16', '16', '8.0 GT/s', '16.0 GT/s'), PORT, 0.5),
                (('8', '16', '8.0 GT/s', '16.0 GT/s'), PORT, 0.75),
                # The slot has 8 lanes of the third generation.
                (('8', '16', '8.0 GT/s', '16.0 GT/s'),
                 ('8', '8', '8.0 GT/s', '8.0 GT/s PCIe'), 0.0)):
            self.assertEqual({'0000:01:00.0': loss},
                             self.losses(device, port))

    def test_a_gpu_may_lower_its_speed(self):
        self.assertEqual({'0000:01:00.0': 0.0}, self.losses(
            ('16', '16', '2.5 GT/s', '16.0 GT/s'), kind='0x030200'))
        self.assertEqual({'0000:01:00.0': 0.5}, self.losses(
            ('8', '16', '2.5 GT/s', '16.0 GT/s'), kind='0x030200'))

    def test_what_is_not_known_is_left_out(self):
        narrow = ('8', '16', '16.0 GT/s', '16.0 GT/s')
        self.assertEqual({}, self.losses(narrow, virtual=True))
        self.assertEqual({}, self.losses(narrow, kind='0x060400'))
        self.assertEqual({}, self.losses(('0', '16', 'Unknown', '8.0 GT/s')))
        self.assertEqual({}, self.losses(narrow, ('', '', 'Unknown', '')))
