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

"""The search for host cells with devices."""

import time
import unittest
from unittest import mock

from hpcvirt.fit import cell_search
from hpcvirt.fit import claim
from hpcvirt.fit import engine
from hpcvirt.fit import reasons
from tests.unit.fit import builders


class SearchTest(unittest.TestCase):

    def spread(self, cells=16):
        """One device on each cell, and other devices in descending number."""
        return builders.gpus(*[1] * cells) + builders.gpus(
            *range(40, 40 - cells, -1), alias='disk')

    def test_devices_of_several_cells_add_up(self):
        guest = builders.guest(1, 1, 1, requests=(
            builders.request(count=3),))
        placed = engine.place(guest, builders.host(
            0, 0, 8, 0, pools=self.spread(4)))
        self.assertEqual((0, 1, 3), placed.cells)

    def test_counting_refuses_more_devices_than_any_cells_have(self):
        guest = builders.guest(*[1] * 8, requests=(
            builders.request(count=9),))
        before = time.process_time()
        misfit = engine.place(guest, builders.host(
            *[0] * 16, pools=self.spread()))
        self.assertEqual(reasons.Code.DEVICE_AFFINITY, misfit.code)
        # All sets of cells would take a second.
        self.assertLess(time.process_time() - before, 0.1)

    def test_counting_adds_up_requests(self):
        guest = builders.guest(1, 1, requests=(builders.request(),) * 3)
        misfit = engine.place(guest, builders.host(
            *[0] * 16, pools=self.spread()))
        self.assertEqual(reasons.Code.DEVICE_AFFINITY, misfit.code)

    def test_unequal_guest_cells_find_the_cell_with_the_device(self):
        # Only the small guest cell fits on the cell with the device.
        guest = builders.guest(2, 8, requests=(builders.request(),))
        supply = builders.host(4, 0, 0, pools=builders.gpus(1) +
                               builders.gpus(0, 2, alias='disk'))
        self.assertEqual((0, 1), engine.place(guest, supply).cells)

    def test_the_search_gives_up_after_the_limit(self):
        requests = tuple(builders.request(alias) for alias in 'abcd')
        pools = sum((builders.gpus(*[1] * 12, alias=alias)
                     for alias in 'abc'), ())
        # Three kinds everywhere, the fourth only where there is no room.
        pools += builders.gpus(*[0] * 12, 1, alias='d')
        guest = builders.guest(1, 1, 1, requests=requests)
        supply = builders.host(*[0] * 12, 8, pools=pools)
        self.assertEqual(reasons.Code.DEVICE_AFFINITY,
                         engine.place(guest, supply).code)
        preferred = builders.guest(1, 1, 1, requests=(
            *requests[:3], builders.request('d', affinity='socket')))
        with mock.patch.object(cell_search, 'MOST_SETS', 10):
            misfit = claim.check(preferred, supply)
        self.assertEqual(reasons.Code.UNDECIDED, misfit.code)
        self.assertIn('first 10 sets of cells', misfit.message)
