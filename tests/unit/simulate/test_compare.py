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

"""Differences of losses have intervals that hold what they promise."""

import random
import statistics
import unittest

from scipy import stats

from hpcvirt.simulate import compare
from hpcvirt.simulate import tally


def shares(losses, offered=100.0):
    return [tally.Share(offered, loss) for loss in losses]


class DifferenceTest(unittest.TestCase):

    def test_equal_windows_give_students_interval_of_their_mean(self):
        """As a textbook computes it, and as SciPy does."""
        more = [3.0, 1.0, 2.5, -1.0, 4.0]
        found = compare.difference(
            'a', shares([20 + each for each in more]), 'b', shares([20] * 5))
        self.assertAlmostEqual(statistics.mean(more), found.percent)
        low, high = stats.t.interval(
            0.95, 4, statistics.mean(more), stats.sem(more))
        self.assertAlmostEqual(low, found.ends[0])
        self.assertAlmostEqual(high, found.ends[1])

    def test_the_difference_is_that_of_the_total_losses(self):
        dice = random.Random(2)
        own = [tally.Share(dice.uniform(50, 150), dice.uniform(0, 50))
               for _ in range(7)]
        other = [tally.Share(each.offered, dice.uniform(0, 50))
                 for each in own]
        found = compare.difference('a', own, 'b', other)
        offered = sum(each.offered for each in own)
        self.assertAlmostEqual(
            100 * (sum(each.lost for each in own)
                   - sum(each.lost for each in other)) / offered,
            found.percent)
        swapped = compare.difference('b', other, 'a', own)
        self.assertAlmostEqual(-found.percent, swapped.percent)
        self.assertAlmostEqual(found.reach, swapped.reach)

    def test_19_of_20_intervals_hold_the_true_difference(self):
        dice = random.Random(3)
        held = 0
        for _ in range(2000):
            own, other = [], []
            for _ in range(10):
                offered = dice.uniform(80, 120)
                both = dice.uniform(0.1, 0.3)
                own.append(tally.Share(
                    offered, offered * (both + 0.02 + dice.gauss(0, 0.01))))
                other.append(tally.Share(offered, offered * both))
            low, high = compare.difference('a', own, 'b', other).ends
            held += low <= 2 <= high
        self.assertLess(abs(held / 2000 - 0.95), 0.015)

    def test_nothing_is_made_up(self):
        for losses, others, why in (
                ([1, 2], [3, 5], 'at least 3 parts'),
                ([1, 2, 3], [1, 2, 3], 'the same in each part'),
                ([1.1, 2.1, 3.1], [1, 2, 3],
                 'the difference is the same in each part')):
            found = compare.difference('a', shares(losses), 'b',
                                       shares(others))
            self.assertIsNone(found.ends)
            self.assertIn(why, found.why_none)

    def test_each_is_compared_with_those_before_it(self):
        found = compare.differences(dict.fromkeys('abc', shares([1] * 3)))
        self.assertEqual([('b', 'a'), ('c', 'a'), ('c', 'b')],
                         [(each.strategy, each.reference) for each in found])
