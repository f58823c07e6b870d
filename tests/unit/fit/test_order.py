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

"""The order in which Nova's claim tries host cells."""

import dataclasses
import unittest

from hpcvirt.fit import devices
from hpcvirt.fit import order
from hpcvirt.model import shape
from tests.unit.fit import builders


class ClaimOrderTest(unittest.TestCase):

    def order(self, guest, supply, **arguments):
        return [cell.id for cell in
                order.claim_order(guest, supply, **arguments)]

    def supply(self, *cells, pools=()):
        return type(builders.host())(tuple(
            builders.host_cell(number, **fields)
            for number, fields in enumerate(cells)), pools)

    def test_free_pcpus_count_before_free_memory(self):
        supply = self.supply({'taken': 2}, {'memory_used_mib': 512}, {})
        self.assertEqual([2, 1, 0], self.order(builders.guest(1), supply))
        self.assertEqual([0, 1, 2], self.order(builders.guest(1), supply,
                                               packing=True))

    def test_shared_vcpus_count_for_a_shared_guest(self):
        shared = type(builders.guest())((builders.guest_cell(
            0, vcpus=1, policy=shape.CPUPolicy.SHARED),))
        supply = self.supply({'cpu_usage': 2}, {'cpu_usage': 1, 'taken': 8},
                             {'cpu_usage': 1, 'memory_used_mib': 512})
        self.assertEqual([1, 2, 0], self.order(shared, supply))
        self.assertEqual([0, 2, 1], self.order(shared, supply, packing=True))

    def test_equal_cells_keep_their_order(self):
        for packing in (False, True):
            self.assertEqual(
                [0, 1, 2], self.order(builders.guest(1),
                                      builders.host(3, 3, 3),
                                      packing=packing))

    def test_vgpus_are_no_devices_of_the_claim(self):
        guest = builders.guest(1, requests=(devices.request(
            shape.DeviceRequest(None, 1, resource_class='VGPU')),))
        cards = devices.pool(2, 4, resource_class='VGPU')
        supply = builders.host(0, 0, 0, pools=(cards,))
        self.assertEqual([0, 1, 2], self.order(guest, supply))
        supply = builders.host(0, 0, 0, pools=(*builders.gpus(1), cards))
        self.assertEqual([1, 2, 0], self.order(guest, supply))
        # Placement's record of a PCI device has a resource class as well.
        supply = builders.host(0, 0, 0, pools=(devices.Pool(
            0, 1, {'resource_class': 'CUSTOM_GPU', 'vendor_id': '10de'}),))
        self.assertEqual([1, 2, 0], self.order(guest, supply))

    def test_cells_with_devices_come_first_for_guests_with_devices(self):
        guest = builders.guest(1, requests=(builders.request(),))
        supply = builders.host(0, 1, 2, pools=builders.gpus(0, 1, 2))
        for packing in (False, True):
            self.assertEqual([2, 1, 0], self.order(guest, supply,
                                                   packing=packing))

    def test_cells_with_devices_come_last_for_other_guests(self):
        supply = builders.host(2, 1, 0, pools=builders.gpus(0, 1, 2))
        for packing in (False, True):
            self.assertEqual([0, 1, 2], self.order(builders.guest(1), supply,
                                                   packing=packing))

    def test_devices_are_ignored_for_other_guests_before_nova_34(self):
        supply = dataclasses.replace(
            builders.host(0, 1, 2, pools=builders.gpus(0, 1, 2)),
            spares_devices=False)
        self.assertEqual([0, 1, 2], self.order(builders.guest(1), supply))
        self.assertEqual([2, 1, 0], self.order(builders.guest(1), supply,
                                               packing=True))
        guest = builders.guest(1, requests=(builders.request(),))
        self.assertEqual([2, 1, 0], self.order(guest, supply))

    def test_cells_are_not_sorted_if_all_are_needed(self):
        self.assertEqual([0, 1], self.order(builders.guest(1, 1),
                                            builders.host(5, 0)))
