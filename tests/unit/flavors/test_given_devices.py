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

from hpcvirt.flavors import given_devices
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import host as host_model
from tests import hosts

GPU = profiles.Devices(profiles.Kind.WHOLE, alias='gpu', vendor_id='10de',
                       product_id='20b0')
VGPU = profiles.Devices(profiles.Kind.VGPU, 2, vendor_id='10de',
                        product_id='20b0', mdev_type='nvidia-474',
                        vgpus_per_device=5)


def device(address, total_vfs=0, product='20b0', vf_product=None):
    return host_model.Device(address, '10de', product, 0, total_vfs, 'nvidia',
                             vf_product)


def with_devices(*devices):
    return dataclasses.replace(hosts.build(), devices=devices)


def addresses(host, wanted, *others):
    type_ = given_devices.device_type(wanted, (host, *others))
    return type_, [item.device.address for item
                   in given_devices.given(host, wanted, type_)]


class GivenDevicesTest(unittest.TestCase):

    def test_the_type_is_that_which_nova_gives(self):
        for total_vfs, type_ in ((0, 'type-PCI'), (16, 'type-PF')):
            host = hosts.build(gpus={0: 1, 1: 2}, gpu_vfs=total_vfs)
            self.assertEqual(
                (type_, [f'0001:0{number}:00.0' for number in range(3)]),
                addresses(host, GPU))

    def test_an_alias_has_one_type_for_all_hosts(self):
        plain, sriov = (hosts.build(gpus={0: 1}, gpu_vfs=number)
                        for number in (0, 16))
        self.assertEqual(('type-PF', []), addresses(plain, GPU, sriov))
        self.assertEqual(('type-PF', ['0001:00:00.0']),
                         addresses(sriov, GPU, plain))

    def test_other_products_are_not_given(self):
        host = with_devices(device('0000:07:00.0', product='20b2'),
                            device('0000:0f:00.0'))
        self.assertEqual(('type-PCI', ['0000:0f:00.0']), addresses(host, GPU))

    def test_virtual_functions_are_no_whole_devices(self):
        # Those of an A100 have the product of the card itself.
        same = with_devices(device('0000:07:00.0', 16),
                            device('0000:07:00.4'), device('0000:07:02.3'))
        self.assertEqual(('type-PF', ['0000:07:00.0']), addresses(same, GPU))
        for vf_product in (None, '20b0'):
            other = with_devices(
                device('0000:07:00.0', 16, '1eb8', vf_product),
                device('0000:07:00.4'))
            self.assertEqual([], addresses(other, GPU)[1])

    def test_a_function_beside_a_card_of_other_virtual_functions_is_whole(
            self):
        host = with_devices(device('0000:07:00.0', 16, '1eb8', '1eb9'),
                            device('0000:07:00.1'))
        self.assertEqual(('type-PCI', ['0000:07:00.1']), addresses(host, GPU))

    def test_vgpus_belong_to_the_virtual_functions_that_exist(self):
        card = device('0000:07:00.0', 16)
        self.assertEqual(['0000:07:00.0'],
                         addresses(with_devices(card), VGPU)[1])
        self.assertEqual(['0000:07:00.4'], addresses(with_devices(
            card, device('0000:07:00.4')), VGPU)[1])

    def test_the_vgpus_of_a_guest_come_from_one_card(self):
        host = hosts.build(gpus={0: 1, 1: 1})
        found = given_devices.given(host, VGPU, '')
        self.assertEqual([5, 5], [item.count for item in found])
        for number, expected in ((1, [5, 5]), (2, [4, 4]), (6, [0, 0])):
            self.assertEqual(expected, [
                pool.free for pool in given_devices.pools(found, VGPU,
                                                          number)])

    def test_virtual_functions_are_counted_as_before(self):
        host = hosts.build(vfs={0: 4, 1: 8}, gpus={0: 1})
        wanted = profiles.Devices(vendor_id='15b3', product_id='101e',
                                  vfs_per_device=6)
        self.assertEqual({0: 4, 1: 6}, given_devices.per_cell(
            given_devices.given(host, wanted, 'type-VF')))
