# SPDX-License-Identifier: Apache-2.0

"""The names of strategies, and what they mean."""

import math
import unittest

from hpcvirt import exception
from hpcvirt.simulate import strategy


class ParseTest(unittest.TestCase):
    def parse(self, text):
        return strategy.parse(text, 2)

    def test_a_name_can_change_options_of_weighers(self):
        packing, other = self.parse('packing,packing+pci=0+instances=3')
        self.assertEqual({**packing.multipliers, 'pci': 0.0,
                          'instances': 3.0}, other.multipliers)
        near, = self.parse('hpcvirt+far=inf+moves')
        self.assertEqual(math.inf, near.multipliers['far'])
        self.assertEqual(2, near.moves)
        # The strategies of other names are as before.
        self.assertEqual(0.0, self.parse('hpcvirt')[0].multipliers['far'])

    def test_cells_are_taken_as_the_hosts_say_unless_a_name_says_more(self):
        own, fullest = self.parse('hpcvirt,hpcvirt+fullest')
        self.assertIsNone(own.fullest)
        self.assertIs(True, fullest.fullest)

    def test_wrong_names_are_refused(self):
        for text in ('pakking', 'packing+pci', 'packing+pci=', 'packing+x=1',
                     'packing+pci=much', 'packing+pci=nan', 'packing+pci=inf',
                     'hpcvirt+far=-1', 'hpcvirt+moves+moves', 'nova,nova', '',
                     'hpcvirt+'):
            with self.subTest(text=text), self.assertRaises(
                    exception.InvalidInput) as raised:
                self.parse(text)
            self.assertIn('--compare', str(raised.exception))
