# SPDX-License-Identifier: Apache-2.0

import unittest

from tests.builders import tiny


class CellTest(unittest.TestCase):
    def test_a_cell_is_empty_if_no_instance_uses_it(self):
        cell = tiny.host_cell()
        self.assertTrue(cell.empty)
        pool, *others = cell.pages
        for taken in ({'free': frozenset()}, {'cpu_usage': 1},
                      {'memory_used_mib': 1},
                      {'pages': (pool._replace(used=1), *others)}):
            self.assertFalse(cell._replace(**taken).empty, taken)

    def test_a_cell_without_cores_has_no_threads(self):
        self.assertEqual(0, tiny.host_cell(siblings=()).threads_per_core)
        self.assertEqual(2, tiny.host_cell(threads=2).threads_per_core)
