# SPDX-License-Identifier: Apache-2.0

"""What a run can decide, against what simulated runs decide."""

import math
import random

import testtools

from hpcvirt.bench.analysis import power
from hpcvirt.bench.analysis import signed_rank
from hpcvirt.bench.analysis import stats


class TestReach(testtools.TestCase):
    TRIALS = 300

    def test_a_loss_at_this_distance_is_decided_4_times_of_5(self):
        dice = random.Random(1)
        for count, figures in ((5, 1), (7, 5), (8, 1), (10, 1), (10, 3),
                               (10, 23), (13, 10), (20, 1), (40, 5)):
            reach = power.find_reach(count, figures)
            decided = sum(
                signed_rank.estimate(dice.gauss(0, 1) - reach for _ in range(
                    count)).p_beyond(0) <= stats.ALPHA / figures
                for _ in range(self.TRIALS)) / self.TRIALS
            self.assertTrue(0.71 <= decided <= 0.88,
                            (count, figures, decided))

    def test_too_few_losses_decide_at_no_distance(self):
        for count, figures in ((4, 1), (6, 5), (9, 23)):
            self.assertEqual(math.inf, power.find_reach(count, figures))

    def test_pairs_of_one_boot_are_averaged(self):
        self.assertAlmostEqual(
            math.sqrt(0.5) * power.find_margin(0.01, 10, 1, 10),
            power.find_margin(0.01, 10, 1, 20))

    def test_the_number_of_pairs_is_the_least_that_decides(self):
        for variation, figures in ((0.01, 1), (0.03, 1), (0.03, 23)):
            pairs = power.find_pairs(variation, 0.03, figures)
            for count, decides in ((pairs, True), (pairs - 1, False)):
                self.assertEqual(decides, power.find_margin(
                    variation, count, figures, count) <= 0.03)
        for distance in (0.0, -0.01, 0.01):
            self.assertIsNone(power.find_pairs(0.10, distance, 1))
