# SPDX-License-Identifier: Apache-2.0

import hypothesis
import testtools
from hypothesis import strategies

from hpcvirt.bench.catalogue import sizing
from tests.builders import refusals

Count = sizing.ProcessCount
MACHINE = sizing.Machine(cpus=12, memory_mib=24576, cells=2, llc_kib=32768)


class TestCount(testtools.TestCase):
    def test_every_rule(self):
        for rule, number in ((Count.ONE, 1), (Count.TWO, 2),
                             (Count.PER_CPU, 12), (Count.PER_CELL, 2),
                             (Count.POWER_OF_TWO, 8), (Count.SQUARE, 9)):
            self.assertEqual(number, sizing.count(rule, MACHINE))
        self.assertEqual(6, sizing.count(Count.REST, MACHINE, ranks=2))

    @hypothesis.given(strategies.integers(1, 4096))
    def test_no_rule_takes_more_cpus_than_there_are(self, cpus):
        machine = sizing.Machine(cpus, 1024)
        for rule in set(Count) - {Count.TWO}:
            self.assertTrue(1 <= sizing.count(rule, machine) <= cpus)


class TestGrid(testtools.TestCase):
    @hypothesis.given(strategies.integers(1, 5000))
    def test_a_grid_uses_all_ranks_and_is_not_upright(self, ranks):
        rows, columns = sizing.grid(ranks)
        self.assertEqual(ranks, rows * columns)
        self.assertLessEqual(rows, columns)

    def test_a_grid_is_as_square_as_can_be(self):
        self.assertEqual([(1, 1), (2, 2), (3, 4), (1, 7), (8, 8)],
                         [sizing.grid(n) for n in (1, 4, 12, 7, 64)])


class TestSize(testtools.TestCase):
    def size(self, rule, machine=MACHINE, ranks=12, **more):
        return sizing.size(sizing.SizeParameter(rule, 'help', **more), machine,
                           ranks, 'x')

    def test_an_hpl_matrix_fills_its_part_of_the_memory(self):
        order = int(self.size(sizing.SizeRule.HPL_ORDER, multiple_of=80))
        used = order ** 2 * 8
        self.assertEqual(0, order % 80)
        self.assertTrue(0.99 < used / (12288 * 2 ** 20) <= 1)

    def test_stream_arrays_fill_memory_and_dwarf_the_cache(self):
        elements = int(self.size(sizing.SizeRule.STREAM_ELEMENTS,
                                 memory_fraction=0.3))
        self.assertLessEqual(elements * 24, 0.3 * 24576 * 2 ** 20)
        self.assertGreater(elements * 8, 4 * 32 * 2 ** 20)

    def refused(self, what, *args, **more):
        self.assertIn(what,
                      refusals.message(self, self.size, *args, **more))

    def test_a_machine_too_small_is_refused(self):
        tiny = sizing.Machine(1, 1)
        self.refused('not enough', sizing.SizeRule.HPL_ORDER, tiny,
                     multiple_of=8000)
        self.refused('4 times a cache', sizing.SizeRule.STREAM_ELEMENTS,
                     sizing.Machine(4, 256, llc_kib=65536))
        self.refused('not enough', sizing.SizeRule.LARGEST, tiny,
                     choices=(sizing.ProblemSize('S', 5),))

    def test_the_largest_choice_that_fits_is_taken(self):
        choices = (sizing.ProblemSize('A', 100),
                   sizing.ProblemSize('B', 12288),
                   sizing.ProblemSize('C', 12289))
        self.assertEqual('B', self.size(sizing.SizeRule.LARGEST,
                                        choices=choices))

    def test_fixed_and_grid(self):
        self.assertEqual('80', self.size(sizing.SizeRule.FIXED, value='80'))
        self.assertEqual(('3', '4'), (self.size(sizing.SizeRule.GRID_ROWS),
                                      self.size(sizing.SizeRule.GRID_COLUMNS)))
