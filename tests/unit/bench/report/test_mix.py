# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import record
from hpcvirt.bench.report import mix
from hpcvirt.bench.report import summary
from tests.builders import runs


def show(*measured):
    """Show a result with runs whose guests are so fast or slow."""
    result = record.Result(tuple(
        runs.run([100.0] * 10, [100.0 * ratio] * 10, **fields)
        for ratio, fields in measured))
    return summary.Shown('r', verdict.judge_result(result), '', True)


class MixTest(unittest.TestCase):
    def describe(self, *parts):
        return [*mix.describe(parts)]

    def test_losses_are_weighted_by_the_cores(self):
        small, large = show((0.98, {})), show((0.90, {}))
        (line,) = self.describe((small, 3), (large, 1))
        self.assertIn('this mix loses 4.0 % (its results 2.0, 10.0 %).', line)
        (line,) = self.describe((small, 1), (large, 1))
        self.assertIn('loses 6.0 %', line)

    def test_a_time_is_a_loss_of_work(self):
        slow = show((1.25, {'direction': runs.DOWN, 'ratio': 1.1}))
        (line,) = self.describe((slow, 1), (show((1.0, {
            'direction': runs.DOWN, 'ratio': 1.1})), 1))
        self.assertIn('loses 10.0 % (its results 20.0, 0.0 %)', line)

    def test_only_a_figure_of_every_result_counts(self):
        one = show((0.98, {}))
        other = show((0.9, {'metric': 'other'}))
        two = show((0.98, {'shape': '4x8'}), (0.9, {'shape': '1x32'}))
        for last in (other, two):
            self.assertEqual(
                ['The results of this mix have no figure in common.'],
                self.describe((one, 1), (last, 1)))
