# SPDX-License-Identifier: Apache-2.0

import random
import re
import unittest

from hpcvirt.fleet import drawing
from tests.builders import fleets
from tests.builders import set_hosts


def widths(text):
    return {kind: float(width) for kind, width in re.findall(
        r'<rect class="(\w+)"[^>]*? width="([\d.]+)"', text)}


class DrawingTest(unittest.TestCase):
    def test_parts_of_a_bar_are_as_long_as_their_shares(self):
        found = widths(drawing.shares(100, 40, 10, 'PCPUs'))
        self.assertEqual((132, 66, 22), (
            found['taken'], found['free'], found['stranded']))
        found = widths(drawing.promise(1, 4, 4, 'x'))
        self.assertEqual((55, 165), (found['free'], found['stranded']))
        # All flavors have one scale.
        found = widths(drawing.promise(1, 4, 8, 'x'))
        self.assertEqual((27.5, 82.5), (found['free'], found['stranded']))
        for nothing in (drawing.shares(0, 0, 0, 'x'),
                        drawing.promise(0, 0, 0, 'x'),
                        drawing.part(0, 0, 'x')):
            self.assertEqual({'outline'}, {*widths(nothing)})

    def test_devices_and_sets_of_a_host_are_drawn(self):
        dice = random.Random(3)
        for _ in range(6):
            host = set_hosts.a_host(dice)
            pools = host.state.supply.pools
            free = sum(pool.free for pool in pools
                       if pool.provider.startswith('gpu'))
            whole = sum(
                all(pool.free for pool in pools if pool.provider in own)
                for own in set_hosts.SETS['gpu4'])
            found = drawing.host(host, {2048})
            self.assertIn(f'devices gpu: {free} of 8 free', found)
            self.assertIn(f'sets gpu4: {whole} of 2 whole', found)

    def test_pages_that_do_not_matter_are_left_out(self):
        fleet, _ = fleets.a_fleet(random.Random(4), 1)
        self.assertIn('2m', drawing.host(fleet.hosts[0], {2048}))
        self.assertNotIn('2m', drawing.host(fleet.hosts[0], {4}))
