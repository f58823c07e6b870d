# SPDX-License-Identifier: Apache-2.0

import math
import statistics

import hypothesis
import testtools
from hypothesis import strategies
from scipy import stats as reference

from hpcvirt.bench.analysis import stats
from hpcvirt.bench.analysis import stragglers
from hpcvirt.bench.model import outcome

UP = outcome.Direction.UP
DOWN = outcome.Direction.DOWN

#: Time limits would fail on a busy machine.
SETTINGS = hypothesis.settings(
    deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])

VALUES = strategies.lists(strategies.floats(0.01, 100), min_size=5,
                          max_size=30)


class TestLoss(testtools.TestCase):
    def test_a_lower_rate_and_a_longer_time_are_losses(self):
        self.assertGreater(stats.loss_of_ratio(0.9, UP), 0)
        self.assertGreater(stats.loss_of_ratio(1.1, DOWN), 0)
        self.assertLess(stats.loss_of_ratio(1.1, UP), 0)

    def test_a_rate_and_its_time_have_the_same_loss(self):
        self.assertAlmostEqual(stats.loss_of_ratio(0.848, UP),
                               stats.loss_of_ratio(1 / 0.848, DOWN))

    def test_a_ratio_comes_back_from_its_loss(self):
        for direction in (UP, DOWN):
            for ratio in (0.848, 1.0, 1.179):
                self.assertAlmostEqual(ratio, stats.ratio_of_loss(
                    stats.loss_of_ratio(ratio, direction), direction))


class TestNormal(testtools.TestCase):
    @staticmethod
    def estimate(losses):
        error = statistics.stdev(losses) / math.sqrt(len(losses))
        return stats.Normal(statistics.fmean(losses), error, len(losses) - 1)

    @SETTINGS
    @hypothesis.given(VALUES)
    def test_the_ends_are_those_of_the_t_test(self, losses):
        hypothesis.assume(statistics.stdev(losses) > 1e-6)
        low, high = self.estimate(losses).ends(0.95)
        expected = reference.ttest_1samp(losses, 0).confidence_interval(0.90)
        self.assertTrue(math.isclose(expected.low, low, abs_tol=1e-9))
        self.assertTrue(math.isclose(expected.high, high, abs_tol=1e-9))

    @SETTINGS
    @hypothesis.given(VALUES, strategies.floats(-3, 3))
    def test_the_p_values_and_the_ends_say_the_same(self, losses, limit):
        hypothesis.assume(statistics.stdev(losses) > 1e-6)
        estimate = self.estimate(losses)
        low, high = estimate.ends()
        hypothesis.assume(min(abs(high - limit), abs(low - limit)) > 1e-9)
        self.assertEqual(high < limit, estimate.p_beyond(limit) < stats.ALPHA)
        self.assertEqual(low > limit, estimate.p_within(limit) < stats.ALPHA)

    def test_without_variation_the_interval_is_a_point(self):
        estimate = stats.Normal(0.05, 0.0, 5)
        low, high = estimate.ends()
        self.assertEqual(low, high)
        self.assertAlmostEqual(0.05, low)
        self.assertEqual(0.0, estimate.p_beyond(0.05))
        self.assertEqual(1.0, estimate.p_beyond(0.049))


def unpaired(native, guest, direction):
    """Estimate from figures."""
    return stats.estimate_unpaired(*(
        [stats.loss_of_ratio(value, direction) for value in side]
        for side in (native, guest)))


class TestUnpaired(testtools.TestCase):
    @SETTINGS
    @hypothesis.given(VALUES, VALUES)
    def test_the_interval_holds_that_of_welch(self, native, guest):
        logs = [[math.log(value) for value in side]
                for side in (native, guest)]
        hypothesis.assume(all(statistics.stdev(side) > 1e-6 for side in logs))
        low, high = unpaired(native, guest, DOWN).ends(0.95)
        expected = reference.ttest_ind(
            logs[1], logs[0], equal_var=False).confidence_interval(0.90)
        self.assertLessEqual(low, expected.low + 1e-8)
        self.assertGreaterEqual(high, expected.high - 1e-8)

    def test_runs_that_alternate_are_judged_by_welch(self):
        native = [100, 104, 99, 103, 98, 105, 97, 102]
        guest = [90, 95, 91, 96, 89, 94, 92, 97]
        low, high = unpaired(native, guest, UP).ends(0.95)
        logs = [[math.log(value) for value in side]
                for side in (native, guest)]
        expected = reference.ttest_ind(
            logs[0], logs[1], equal_var=False).confidence_interval(0.90)
        self.assertAlmostEqual(expected.low, low)
        self.assertAlmostEqual(expected.high, high)

    def test_a_machine_that_changes_slowly_widens_the_interval(self):
        mixed = [100, 104, 99, 103, 98, 105, 97, 102]
        widths = [high - low for low, high in (
            unpaired(side, side, UP).ends()
            for side in (mixed, sorted(mixed)))]
        self.assertGreater(widths[1], 2 * widths[0])

    def count_as_one(self, values):
        """How many runs of two sides with these values count as one."""
        found = stats.estimate_unpaired(values, values)
        return found.error ** 2 * len(values) / (
            2 * statistics.variance(values))

    def test_a_few_runs_underestimate_their_correlation(self):
        # Successive runs have the correlation 1/8; (2 + 4/8) / 8 is added.
        self.assertAlmostEqual(
            (1 + 7 / 16) / (1 - 7 / 16),
            self.count_as_one((0.0, 0.0, 0.01, 0.01, 0.0, 0.0, 0.01, 0.01)))

    def test_a_trend_counts_as_the_largest_correlation(self):
        self.assertAlmostEqual(19, self.count_as_one(
            [number / 100 for number in range(10)]))

    def test_runs_that_are_not_correlated_count_one_by_one(self):
        alternating = [0.0, 0.01] * 5
        self.assertAlmostEqual(1, self.count_as_one(alternating))
        # Values that are all equal say nothing about a correlation.
        found = stats.estimate_unpaired([0.0] * 5, alternating)
        self.assertAlmostEqual(statistics.variance(alternating) / 10,
                               found.error ** 2)

    def test_one_constant_arm_leaves_the_variation_of_the_other(self):
        estimate = unpaired([100.0] * 5, [99, 101, 100, 102, 98], UP)
        self.assertGreater(estimate.error, 0)
        level = unpaired([2.0] * 5, [2.0] * 6, UP)
        self.assertEqual((0.0, 0.0), level.ends())

    def test_sides_that_do_not_overlap_have_the_p_value_of_ranks(self):
        # Of all ways to choose 5 of 10 runs, one has the 5 slowest.
        found = unpaired([100, 104, 99, 103, 98],
                         [10, 10.4, 9.9, 10.3, 9.8], UP)
        self.assertAlmostEqual(1 / 252, found.p_within(math.log(1.05)))
        self.assertAlmostEqual(1 / 252, found.p_beyond(math.log(1000)))


class TestAlpha(testtools.TestCase):
    def test_with_the_tail_it_is_below_5_percent(self):
        self.assertLess(stats.ALPHA + stragglers.ALPHA, 0.05)


class TestHolm(testtools.TestCase):
    def test_the_example_of_a_textbook(self):
        self.assertEqual((0.03, 0.06, 0.06, 0.02), tuple(
            round(p, 9) for p in stats.holm((0.01, 0.04, 0.03, 0.005))))

    def test_one_alone_is_left_as_it_is(self):
        self.assertEqual((0.04,), stats.holm((0.04,)))
        self.assertEqual((), stats.holm(()))

    @SETTINGS
    @hypothesis.given(strategies.lists(strategies.floats(0, 1), max_size=20))
    def test_adjusting_never_lowers_and_keeps_the_order(self, p_values):
        adjusted = stats.holm(p_values)
        for before, after in zip(p_values, adjusted, strict=True):
            self.assertTrue(before <= after <= 1)
        order = sorted(range(len(p_values)), key=p_values.__getitem__)
        self.assertEqual(sorted(adjusted), [adjusted[i] for i in order])
