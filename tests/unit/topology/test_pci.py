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

import dataclasses
import unittest

from hpcvirt import exception
from hpcvirt.model import host as host_model
from hpcvirt.topology import pci


class IsListedTest(unittest.TestCase):
    def test_network_accelerators_and_nvme_are_listed(self) -> None:
        for class_code in (0x0200, 0x0207, 0x0280, 0x0c06, 0x1200, 0x0302,
                           0x0380, 0x0b40, 0x0108):
            self.assertTrue(pci.is_listed(class_code, '8086'),
                            hex(class_code))

    def test_consoles_disks_and_bridges_are_not(self) -> None:
        for class_code in (0x0000, 0x0002, 0x0100, 0x0104, 0x0106, 0x0107,
                           0x0300, 0x0600, 0x0604, 0x0880, 0x0c03, 0x1080,
                           0x2000, 0xff00):
            self.assertFalse(pci.is_listed(class_code, '8086'),
                             hex(class_code))

    def test_display_controllers_of_gpu_vendors_are_no_consoles(self) -> None:
        for vendor_id, listed in (('10de', True), ('1002', True),
                                  ('1a03', False), ('102b', False)):
            self.assertIs(listed, pci.is_listed(0x0300, vendor_id))
            self.assertFalse(pci.is_listed(0x0604, vendor_id))


class CheckedTest(unittest.TestCase):
    DEVICE = host_model.Device('0000:41:00.0', '8086', '1572', 0, 64, 'i40e')

    def test_devices_are_sorted_by_the_numbers_of_their_addresses(
            self) -> None:
        addresses = ['10000:01:00.0', 'ffff:01:00.0', '0000:41:02.0',
                     '0000:41:00.1', '0000:41:00.0']
        devices = pci.checked('box', {0}, [
            dataclasses.replace(self.DEVICE, address=address)
            for address in addresses])
        self.assertEqual(addresses[::-1],
                         [device.address for device in devices])

    def test_impossible_devices_are_refused_by_name(self) -> None:
        for pattern, fields in {
            "^box: '41:00.0' is not a PCI address": {'address': '41:00.0'},
            "'0x8086' is not a PCI id": {'vendor_id': '0x8086'},
            "'157' is not a PCI id": {'product_id': '157'},
            'device 0000:41:00.0: is on cell 1, which does not exist': {
                'cell': 1},
            '65536 VFs are not within 0 to 65535': {'total_vfs': 65536},
            '-1 VFs are not': {'total_vfs': -1},
            "'a b' is not the name of a driver": {'driver': 'a b'},
        }.items():
            with self.subTest(pattern), self.assertRaisesRegex(
                    exception.InvalidInput, pattern):
                pci.checked('box', {0}, [
                    dataclasses.replace(self.DEVICE, **fields)])

    def test_a_device_must_not_occur_twice(self) -> None:
        with self.assertRaisesRegex(exception.InvalidInput, 'occurs twice'):
            pci.checked('box', {0}, [self.DEVICE, self.DEVICE])
