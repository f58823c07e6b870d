# SPDX-License-Identifier: Apache-2.0

import random
import re
import unittest

from hpcvirt.fleet import drawing
from tests.builders import fleets


def widths(text):
    return {kind: float(width) for kind, width in re.findall(
        r'<rect class="(\w+)"[^>]*? width="([\d.]+)"', text)}


class DrawingTest(unittest.TestCase):
    def test_parts_of_a_bar_are_as_long_as_their_shares(self):
        found = widths(drawing.shares(100, 40, 10, 'PCPUs'))
        self.assertEqual((132, 66, 22), (
            found['taken'], found['free'], found['stranded']))
        found = widths(drawing.promise(1, 4, 'x'))
        self.assertEqual((55, 165), (found['free'], found['stranded']))
        for nothing in (drawing.shares(0, 0, 0, 'x'),
                        drawing.promise(0, 0, 'x'), drawing.part(0, 0, 'x')):
            self.assertEqual({'outline'}, {*widths(nothing)})

    def test_pages_that_do_not_matter_are_left_out(self):
        fleet, _ = fleets.a_fleet(random.Random(4), 1)
        self.assertIn('2m', drawing.host(fleet.hosts[0], {2048}))
        self.assertNotIn('2m', drawing.host(fleet.hosts[0], {4}))
