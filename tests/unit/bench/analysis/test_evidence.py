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

import math
import random

import testtools

from hpcvirt.bench.analysis import evidence


def noisy(seed, count=10, deviation=0.01, base=0.2, digits=None):
    dice = random.Random(seed)
    values = [base * math.exp(dice.gauss(0, deviation)) for _ in range(count)]
    return values if digits is None else [round(value, digits)
                                          for value in values]


class TestCopies(testtools.TestCase):
    def test_measurements_are_no_copies(self):
        for seed in range(300):
            for count, digits in ((5, None), (10, 4), (40, 3), (40, 2)):
                for deviation in (0.01, 0.1):
                    arms = [noisy(2 * seed + arm, count, deviation,
                                  digits=digits) for arm in (0, 1)]
                    self.assertIsNone(evidence.copies(*arms))

    def test_the_same_figures_in_both_arms_are(self):
        for digits in (None, 4):
            values = noisy(1, digits=digits)
            self.assertIn('both arms', evidence.copies(values, values))

    def test_a_few_outputs_that_stand_for_many_are(self):
        for different, count in ((1, 5), (1, 40), (2, 10), (4, 40), (5, 20)):
            values = noisy(3, different)
            copied = (values * count)[:count]
            for arms in ((copied, noisy(4, count)), (noisy(4, count),
                                                     copied)):
                self.assertIn(f'{count} ', evidence.copies(*arms))

    def test_equal_figures_of_few_digits_are_not(self):
        self.assertIsNone(evidence.copies([0.23] * 10, [0.24] * 10))


class TestStep(testtools.TestCase):
    def test_figures_of_a_fine_clock_have_none(self):
        for deviation in (0.001, 0.1):
            self.assertEqual(0, evidence.step(
                noisy(1, deviation=deviation), noisy(2, deviation=deviation)))

    def test_figures_that_vary_less_than_their_last_digit_have_one(self):
        arms = [noisy(seed, deviation=0.001, base=0.21, digits=2)
                for seed in (1, 2)]
        self.assertAlmostEqual(0.0465, evidence.step(*arms), places=3)

    def test_rounding_averages_out_where_figures_vary_by_more(self):
        arms = [noisy(seed, 40, deviation=0.2, digits=2) for seed in (1, 2)]
        self.assertLess(len(set(arms[0])), 30)
        self.assertEqual(0, evidence.step(*arms))

    def test_rates_of_a_coarse_clock_have_the_step_of_the_clock(self):
        arms = [[1e9 / 3 / value for value in noisy(
            seed, deviation=0.02, digits=2)] for seed in (1, 2)]
        self.assertTrue(all(len(set(arm)) < 6 for arm in arms))
        self.assertAlmostEqual(0.05, evidence.step(*arms), delta=0.005)
