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

"""What is left of a host once a guest has been placed on it."""

import unittest

from hpcvirt.fit import allocation
from hpcvirt.fit import claim
from hpcvirt.model import shape
from tests.unit.fit import builders


class AllocateTest(unittest.TestCase):

    def allocate(self, guest, supply):
        return allocation.allocate(guest, supply, claim.predict(guest, supply))

    def test_cpus_memory_and_pages_are_used(self):
        left = self.allocate(builders.guest(4), builders.host(0, 4)).cells[0]
        self.assertEqual({4, 5, 6, 7}, left.free)
        self.assertEqual(1024, left.memory_used_mib)
        self.assertEqual([(0, 2 << 20), (512, 3584)],
                         [(pool.used, pool.free) for pool in left.pages])

    def test_other_cells_are_unchanged(self):
        before = builders.host(0, 4)
        self.assertEqual(before.cells[1],
                         self.allocate(builders.guest(4), before).cells[1])

    def test_a_guest_without_page_size_takes_the_smallest_pages(self):
        guest = type(builders.guest())((builders.guest_cell(page_kib=None),))
        left = self.allocate(guest, builders.host(0)).cells[0]
        self.assertEqual([1 << 18, 0], [pool.used for pool in left.pages])

    def test_shared_vcpus_are_counted(self):
        guest = type(builders.guest())((builders.guest_cell(
            0, vcpus=2, policy=shape.CPUPolicy.SHARED),))
        supply = type(builders.host())((builders.host_cell(
            shared=frozenset({60, 61})),))
        self.assertEqual(2, self.allocate(guest, supply).cells[0].cpu_usage)

    def test_devices_are_used(self):
        guest = builders.guest(4, requests=(builders.request(count=2),))
        supply = builders.host(0, 0, pools=builders.gpus(3, 1))
        left = self.allocate(guest, supply)
        self.assertEqual([(0, 1), (1, 1)],
                         [(pool.cell, pool.free) for pool in left.pools])

    def test_an_empty_pool_is_dropped_as_in_nova(self):
        guest = builders.guest(4, requests=(builders.request(count=2),))
        supply = builders.host(0, pools=builders.gpus(2))
        self.assertEqual((), self.allocate(guest, supply).pools)

    def test_a_host_fills_guest_by_guest(self):
        guest, supply = builders.guest(4), builders.host(0, 2)
        cells = []
        while True:
            where = claim.predict(guest, supply)
            if not hasattr(where, 'cells'):
                break
            cells += where.cells
            supply = allocation.allocate(guest, supply, where)
        self.assertEqual([0, 1, 0], cells)
