# SPDX-License-Identifier: Apache-2.0

import testtools

from hpcvirt.bench.analysis import losses
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import unit_losses
from tests.builders import runs


class TestUnitLosses(testtools.TestCase):
    def values(self, launches=()):
        return sample_pairs.MetricValues(
            (100.0, 101, 99, 100, 102), (98.0, 97, 99, 96, 10),
            (0, 1, 2, 3, 4), tuple(launches))

    def test_several_launches_are_what_repeats(self):
        for launches, units in (('aabbc', 'aabbc'), ('aaaaa', ''), ('', '')):
            found = unit_losses.find_units(self.values(launches),
                                           of_launch=False)
            self.assertEqual(tuple(units), tuple(found))
        self.assertEqual((), unit_losses.find_units(self.values('aabbc'),
                                                    of_launch=True))

    def test_each_launch_counts_by_its_mean(self):
        for units, count in (('', 5), ('aabbc', 3)):
            found = unit_losses.estimate(self.values(), runs.UP, units,
                                         losses.JudgingContext())
            self.assertEqual(count * (count + 1) // 2,
                             len(found.typical.averages))

    def test_exchanged_sides_have_negative_losses(self):
        self.assertEqual(
            unit_losses.find_losses(self.values(), runs.UP),
            [-loss for loss in unit_losses.find_losses(
                self.values(), runs.DOWN)])

    def test_a_straggler_is_no_sign_of_a_slow_change(self):
        self.assertIsNone(unit_losses.estimate(
            self.values(), runs.UP, (), losses.JudgingContext()
            ).correlation_obstacle)
