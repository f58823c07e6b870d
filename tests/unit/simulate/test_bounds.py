# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.simulate import bounds
from hpcvirt.simulate import outcome
from tests.unit.simulate import small

CAPACITY, _, DEVICES, PAGES, SIZE = outcome.Cause


class BoundsOneBinTest(unittest.TestCase):
    def fates(self, fleet, flavors, *arrivals):
        return bounds.replay_as_one_host(
            fleet, small.asked(flavors, *arrivals)).fates

    def test_nothing_is_fragmented(self):
        fleet = [small.host(small.cell(0))] * 3
        self.assertEqual((None, None, CAPACITY, None), self.fates(
            fleet, (small.flavor(12), small.flavor(11)), (0, 9, 0),
            (1, 9, 0), (2, 9, 1), (9, 9, 1)))

    def test_memory_devices_and_pages_count(self):
        fleet = [small.host(small.cell(0, huge=512), vfs=((0, 1),))] * 2
        for flavor, cause in (
                (small.flavor(1, memory_mib=5462), CAPACITY),
                (small.flavor(1, memory_mib=682, page_kib=small.HUGE), None),
                (small.flavor(1, memory_mib=684, page_kib=small.HUGE),
                 PAGES),
                (small.flavor(1, vfs=1), DEVICES)):
            found = self.fates(fleet, (flavor,), *[(0, 9, 0)] * 3)
            self.assertEqual((None, None, cause), found)

    def test_progress_is_told(self):
        told = []
        bounds.replay_as_one_host(
            [small.host(small.cell(0))],
            small.asked((small.flavor(2),), (0, 1, 0), (0, 1, 0)),
            lambda *numbers: told.append(numbers))
        self.assertEqual([(1, 2), (2, 2)], told)

    def test_what_no_flavor_holds_is_lost(self):
        self.assertEqual((SIZE, None), self.fates(
            [small.host(small.cell(0))], (small.flavor(8),), (0, 9, -1),
            (1, 9, 0)))
