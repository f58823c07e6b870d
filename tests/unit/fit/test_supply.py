# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.fit import supply as fit_supply
from hpcvirt.model import host as model_host
from hpcvirt.model import usage
from tests.builders import tiny


class OfHostTest(unittest.TestCase):
    """A Supply computed from a Host and its Usage."""

    HOST = model_host.Host('machine', cells=tuple(
        model_host.Cell(
            id=number, socket=number,
            cpus=frozenset(range(number, number + 4)),
            siblings=(frozenset({number, number + 1}),
                      frozenset({number + 2, number + 3})),
            llc=(), memory_mib=1024,
            pages=(model_host.PagePool(4, 1 << 18),
                   model_host.PagePool(2048, 256)))
        for number in (0, 8)))

    def only(self, **fields):
        used = usage.Usage((usage.CellUsage(**{
            'cell': 8, 'dedicated_cpus': frozenset({9, 10, 11}),
            **fields}),), cpu_ratio=4.0, ram_ratio=1.5)
        cell, = fit_supply.make_supply(self.HOST, used).cells
        return cell

    def test_cells_that_the_usage_leaves_out_are_not_available(self):
        self.assertEqual(8, self.only().id)

    def test_cores_are_limited_to_the_cpus_for_guests(self):
        self.assertEqual(({9}, {10, 11}), self.only().siblings)
        self.assertEqual(({8, 9}, {10, 11}),
                         self.only(shared_cpus=frozenset({8})).siblings)
        self.assertEqual(
            ({10},), self.only(dedicated_cpus=frozenset({10})).siblings)

    def test_pinned_cpus_are_not_free(self):
        cell = self.only(pinned_cpus=frozenset({9}))
        self.assertEqual(({9, 10, 11}, {10, 11}), (cell.dedicated, cell.free))

    def test_pages_that_the_usage_leaves_out_are_free(self):
        cell = self.only(pages=(usage.PageUsage(2048, used=6, reserved=50),))
        self.assertEqual([(4, 1 << 18, 0, 1 << 18), (2048, 256, 6, 200)],
                         list(map(tuple, cell.pages)))

    def test_ratios_are_those_of_the_usage(self):
        whole = fit_supply.make_supply(self.HOST, usage.Usage((), 4.0, 1.5))
        self.assertEqual((4.0, 1.5), (whole.cpu_ratio, whole.ram_ratio))

    def test_a_cell_is_empty_if_no_instance_uses_it(self):
        self.assertTrue(self.only().empty)
        for taken in ({'pinned_cpus': frozenset({9})}, {'cpu_usage': 1},
                      {'memory_used_mib': 1},
                      {'pages': (usage.PageUsage(4, used=1),)}):
            self.assertFalse(self.only(**taken).empty, taken)

    def test_a_cell_without_cores_has_no_threads(self):
        self.assertEqual(0, tiny.host_cell(siblings=()).threads_per_core)
        self.assertEqual(2, tiny.host_cell(threads=2).threads_per_core)
