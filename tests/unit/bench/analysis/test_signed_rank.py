# SPDX-License-Identifier: Apache-2.0

import itertools
import math
import random
import statistics

import hypothesis
import testtools
from hypothesis import strategies
from scipy import stats as reference

from hpcvirt.bench.analysis import signed_rank
from hpcvirt.bench.analysis import stats

SETTINGS = hypothesis.settings(
    deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
LOSSES = strategies.lists(strategies.floats(-1, 1), min_size=5, max_size=25,
                          unique_by=lambda value: round(abs(value), 6))


class TestSignedRank(testtools.TestCase):
    @SETTINGS
    @hypothesis.given(LOSSES, strategies.floats(-1, 1))
    def test_p_values_are_those_of_the_exact_test(self, losses, limit):
        apart = sorted(abs(value - limit) for value in losses)
        hypothesis.assume(apart[0] > 1e-6 and all(
            after - before > 1e-6
            for before, after in itertools.pairwise(apart)))
        found = signed_rank.estimate(losses)
        shifted = [value - limit for value in losses]
        for way, p in (('less', found.p_beyond(limit)),
                       ('greater', found.p_within(limit))):
            exact = reference.wilcoxon(shifted, alternative=way,
                                       method='exact').pvalue
            self.assertAlmostEqual(exact, p)

    @SETTINGS
    @hypothesis.given(LOSSES, strategies.floats(-1, 1))
    def test_the_p_values_and_the_ends_say_the_same(self, losses, limit):
        found = signed_rank.estimate(losses)
        low, high = found.ends()
        hypothesis.assume(min(abs(high - limit), abs(low - limit)) > 1e-9)
        self.assertEqual(high < limit, found.p_beyond(limit) <= stats.ALPHA)
        self.assertEqual(low > limit, found.p_within(limit) <= stats.ALPHA)

    def test_the_estimate_is_that_of_hodges_and_lehmann(self):
        losses = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8]
        means = [(losses[i] + losses[j]) / 2
                 for i in range(8) for j in range(i, 8)]
        self.assertAlmostEqual(statistics.median(means),
                               signed_rank.estimate(losses).loss)

    def test_the_distribution_is_that_of_all_signs(self):
        for count in (3, 8):
            sums = [sum(ranks) for size in range(count + 1) for ranks
                    in itertools.combinations(range(1, count + 1), size)]
            for rank_sum in range(count * (count + 1) // 2 + 1):
                expected = sum(each <= rank_sum for each in sums) / 2 ** count
                self.assertAlmostEqual(expected, signed_rank._distribution(
                    count)[rank_sum])

    def test_many_pairs_are_judged_as_if_they_were_counted(self):
        for count in (61, 80):
            middle = count * (count + 1) // 4
            for rank_sum in (middle - 400, middle - 200, middle, middle + 300):
                self.assertAlmostEqual(
                    signed_rank._distribution(count)[rank_sum],
                    signed_rank.find_chance(count, rank_sum), delta=1e-3)

    def test_one_enormous_loss_widens_the_interval_little(self):
        dice = random.Random(1)
        losses = [dice.gauss(0, 0.02) for _ in range(20)]
        calm = signed_rank.estimate(losses).ends()
        disturbed = signed_rank.estimate([*losses[:-1], 3.0]).ends()
        self.assertLess(disturbed[1] - calm[1], 0.01)

    def test_how_far_away_losses_are_is_no_better_evidence(self):
        for count in range(5, 12):
            for loss in (0.06, 3.0):
                found = signed_rank.estimate(
                    [loss + 0.001 * number for number in range(count)])
                self.assertEqual(2.0 ** -count, found.p_within(0.05))

    def test_the_least_number_that_decides(self):
        for count in (1, 2, 3, 23, 200):
            least = signed_rank.find_least(1 / count)
            self.assertLessEqual(count * 2.0 ** -least, stats.ALPHA)
            self.assertGreater(count * 2.0 ** (1 - least), stats.ALPHA)

    def test_too_few_losses_have_no_ends(self):
        self.assertEqual((-math.inf, math.inf), signed_rank.estimate(
            [0.01, 0.02, 0.03, 0.025]).ends())
