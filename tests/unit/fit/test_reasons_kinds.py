# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.fit import reasons


class TallyTest(unittest.TestCase):
    def test_the_tally_has_the_most_frequent_kind_first(self):
        self.assertEqual(
            'too few free PCPUs in a cell (7), too few PCI devices (2)',
            reasons.tally({reasons.Code.DEVICES: 2,
                           reasons.Code.FREE_PCPUS: 7}))

    def test_kinds_with_the_same_name_are_counted_together(self):
        self.assertEqual(
            'no cell with room (3)',
            reasons.tally({reasons.Code.NO_CELL: 2,
                           reasons.Code.NO_CELL_FOR: 1}))
