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

import random
import re
import unittest

from hpcvirt.fleet import drawing
from tests import fleets


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
