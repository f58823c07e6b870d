# SPDX-License-Identifier: Apache-2.0

import dataclasses
import math
import random

import testtools

from hpcvirt.bench.analysis import losses
from hpcvirt.bench.analysis import signed_rank
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from tests.builders import runs

Word = judgement.VerdictResult
#: Ten losses without a pattern, about 0.
QUIET = (0.002, -0.004, 0.001, -0.003, 0.004, -0.001, -0.002, 0.003, 0.0,
         0.001)
#: The same with two that are 5 % slower.
SKEWED = (0.052, -0.004, 0.001, -0.003, 0.004, -0.001, -0.002, 0.053, 0.0,
          0.001)


def estimate(found, limit=0.05, **more):
    return losses.estimate(found, found, sum(found) / len(found),
                           losses.JudgingContext(limit, **more))


class TestBothLosses(testtools.TestCase):
    def test_symmetric_losses_have_one(self):
        found = estimate(QUIET)
        self.assertIsNone(found.mean)
        self.assertEqual(found.typical.ends(), found.ends())
        self.assertEqual(found.ends(), found.mean_ends())

    def test_skewed_losses_have_two(self):
        found = estimate(SKEWED)
        self.assertLess(abs(found.loss), 0.002)
        self.assertAlmostEqual(0.0101, found.mean.loss)
        self.assertLess(found.ends()[1], 0.053)
        self.assertGreater(found.mean_ends()[1], found.ends()[1] - 0.03)

    def test_one_of_many_figures_looks_skewed_by_chance(self):
        self.assertIsNone(estimate(SKEWED, figures=10_000).mean)

    def test_a_pass_needs_both_and_a_fail_one_that_is_decided(self):
        found = estimate(SKEWED * 8, 0.012)
        # A typical run loses nothing, the mean 1 %.
        self.assertLess(found.typical.p_beyond(0.012), 0.02)
        self.assertGreater(found.p_beyond(0.012), 0.05)
        self.assertEqual(1.0, found.p_within(0.012))

    def test_the_sign_test_decides_for_a_typical_run(self):
        # Three in ten are slow: ranks would say that a typical run is.
        values = [0.0011 * number - 0.0008 for number in range(7)]
        values = [*values[:4], 0.08, *values[4:], 0.085, 0.09]
        found = estimate(values, 0.0)
        self.assertIsNotNone(found.mean)
        self.assertGreater(found.p_within(0.0),
                           signed_rank.estimate(values).p_within(0.0))


class TestDistance(testtools.TestCase):
    def test_a_loss_near_the_bound_is_not_decided(self):
        found = estimate([value + 0.03 for value in QUIET])
        self.assertEqual(1.0, found.p_beyond(0.05))
        self.assertLess(found.typical.p_beyond(0.05), 0.001)
        self.assertLess(estimate(QUIET).p_beyond(0.05), 0.001)

    def test_more_losses_decide_nearer(self):
        for count, is_decided in ((14, False), (15, True)):
            room = losses.JudgingContext(0.05).find_required_distance(count)
            self.assertEqual(is_decided, room <= 0.02)

    def test_larger_bounds_need_no_more(self):
        rooms = [losses.JudgingContext(limit).find_required_distance(10)
                 for limit in (0.02, 0.05, 0.2, None)]
        self.assertLess(rooms[0], rooms[1])
        self.assertEqual([rooms[1], 0.0], rooms[2:])

    def test_a_verdict_says_so(self):
        native = [100.0 * math.exp(value) for value in QUIET]
        guest = [97.0 * math.exp(-value) for value in QUIET[3:] + QUIET[:3]]
        found = verdict.judge([runs.run(native, guest)])
        self.assertEqual(Word.INCONCLUSIVE, found.result)
        self.assertIn('nearer to the bound than 10 pairs can tell',
                      found.reason)


class TestSpread(testtools.TestCase):
    """A guest that varies more than native may change slowly."""

    def judge(self, deviation, pairs=10, loss=0.0):
        dice = random.Random(0)
        return verdict.judge([runs.run(
            [100 * math.exp(dice.gauss(0, 0.005)) for _ in range(pairs)],
            [100 * math.exp(dice.gauss(0, deviation) - loss)
             for _ in range(pairs)], 0.9)]).judgements[0]

    def test_a_few_pairs_of_one_boot_do_not_decide(self):
        figure = self.judge(0.02)
        self.assertEqual(Word.INCONCLUSIVE, figure.result)
        self.assertIn('the guest varies more than twice as much as native, '
                      'and fewer than 20 pairs of one boot do not show',
                      figure.reason)
        self.assertEqual(judgement.Remedy.PAIRS, figure.remedy)

    def test_a_guest_that_varies_as_native_does_is_decided(self):
        self.assertEqual(Word.PASS, self.judge(0.005).result)

    def test_more_pairs_show_what_changes_slowly(self):
        self.assertEqual(Word.PASS, self.judge(0.02, 20).result)

    def test_of_the_guest_alone_a_correlation_is_assumed(self):
        narrow, wide = (losses.estimate(
            QUIET, QUIET, 0.0, losses.JudgingContext(0.05),
            varies_more=more).widening for more in (False, True))
        self.assertEqual(1.0, narrow)
        self.assertGreater(wide, 1.4)

    def test_so_large_a_loss_is_none_of_the_changes(self):
        self.assertEqual(Word.FAIL, self.judge(0.02, loss=0.7).result)

    def test_boots_are_not_one(self):
        dice = random.Random(0)
        run = runs.run(
            [100 * math.exp(dice.gauss(0, 0.005)) for _ in range(10)],
            [100 * math.exp(dice.gauss(0, 0.02)) for _ in range(10)], 0.9)
        found = verdict.judge([dataclasses.replace(run, samples=tuple(
            dataclasses.replace(sample, launch_id=str(sample.pair))
            for sample in run.samples))])
        self.assertEqual(Word.PASS, found.result)


class TestTransient(testtools.TestCase):
    """The first losses, of a guest with too few warm-ups."""

    def judge(self, first):
        dice = random.Random(2)
        late = (0.0,) * (20 - len(first))
        return verdict.judge([runs.run(
            [100 * math.exp(dice.gauss(0, 0.004)) for _ in range(20)],
            [100 * math.exp(dice.gauss(0, 0.004) - 0.01 - value)
             for value in (*first, *late)])]).judgements[0]

    def test_first_losses_that_differ_are_counted(self):
        for first in ((), (0.08,), (0.08, 0.04), (0.09, 0.06, 0.03)):
            values = [*first, *QUIET, *QUIET]
            self.assertEqual(len(first), losses.find_transient(
                values, losses.JudgingContext(0.05)))

    def test_a_verdict_asks_for_more_warm_ups(self):
        figure = self.judge((0.09, 0.07, 0.05))
        self.assertEqual(Word.INCONCLUSIVE, figure.result)
        self.assertEqual(judgement.Remedy.WARM_UPS, figure.remedy)
        self.assertEqual(3, figure.transient)
        self.assertIn('the first 3 of 20 losses differ from all later ones',
                      figure.reason)

    def test_what_goes_on_changing_is_no_transient(self):
        self.assertEqual(0, losses.find_transient(
            [0.01 * number for number in range(20)],
            losses.JudgingContext(0.05)))


class TestResemblance(testtools.TestCase):
    def series(self, correlation, count, seed):
        dice = random.Random(seed)
        found = [dice.gauss(0, 0.02)]
        for _ in range(count - 1):
            found.append(correlation * found[-1] + math.sqrt(
                1 - correlation ** 2) * dice.gauss(0, 0.02))
        return found

    def test_losses_that_resemble_each_other_widen_the_interval(self):
        ups = [estimate(self.series(0.6, 40, seed)).widening
               for seed in range(20)]
        self.assertGreater(sum(up > 1.2 for up in ups), 15)
        self.assertEqual(1.0, estimate(QUIET).widening)

    def test_independent_losses_seldom_do(self):
        ups = [estimate(self.series(0.0, 10, seed)).widening
               for seed in range(100)]
        self.assertLess(sum(up > 1 for up in ups), 15)

    def test_much_resemblance_decides_nothing(self):
        context = losses.JudgingContext(0.05)
        refused = [losses.explain_correlation(
            self.series(0.9, 40, seed), context) for seed in range(20)]
        self.assertGreater(sum(map(bool, refused)), 15)
        self.assertIsNone(losses.explain_correlation(QUIET, context))

    def test_a_verdict_says_so(self):
        dice = random.Random(3)
        guest = [100 * math.exp(value - 0.04)
                 for value in self.series(0.95, 40, 1)]
        native = [100 + dice.gauss(0, 0.1) for _ in range(40)]
        found = verdict.judge([runs.run(native, guest, 0.9)])
        self.assertEqual(Word.INCONCLUSIVE, found.result)
        self.assertIn('the losses resemble those before them', found.reason)


class TestWords(testtools.TestCase):
    def judged(self, slow, ratio=1.0, bound=0.95, pairs=40):
        """Judge a guest of which some runs in ten lose 15 % more."""
        dice = random.Random(7)
        native, guest = ([100 * level * math.exp(dice.gauss(0, 0.003))
                          for _ in range(pairs)] for level in (1, ratio))
        guest = [value / (1.15 if dice.random() < slow else 1)
                 for value in guest]
        return verdict.judge([runs.run(native, guest, bound)])

    def test_a_mean_beyond_the_bound_keeps_a_guest_from_passing(self):
        found = self.judged(0.15, bound=0.985)
        self.assertEqual(Word.INCONCLUSIVE, found.result)
        self.assertIn('a typical run is within the bound, and the mean time '
                      'may be on either side of the bound', found.reason)
        (figure,) = found.judgements
        self.assertGreater(figure.interval.ratio, 0.99)
        self.assertLess(figure.mean.ratio, 0.99)

    def test_a_mean_far_beyond_the_bound_fails(self):
        found = self.judged(0.2, bound=0.985, pairs=200)
        self.assertEqual(Word.FAIL, found.result)
        self.assertIn('a typical run is within the bound, and the mean time '
                      'is beyond the bound', found.reason)

    def test_a_verdict_names_both_losses(self):
        found = self.judged(0.0)
        self.assertEqual(Word.PASS, found.result)
        self.assertIsNone(found.judgements[0].mean)
        self.assertEqual('PASS for at least 92 % of the runs',
                         verdict.name_result(found))


class TestFailedRuns(testtools.TestCase):
    def judged(self, hung, earlier=0):
        dice = random.Random(1)

        def side(count, bad):
            return [runs.bad('stopped at its time limit') if number < bad
                    else 100 + dice.gauss(0, 0.3) for number in range(count)]
        before = tuple(record.Attempt(str(number), '', 10, runs.run(
            side(10, 0), side(10, hung)).samples) for number in range(earlier))
        return verdict.judge([runs.run(side(10, 0), side(10, hung),
                                       earlier=before)])

    def test_a_hang_of_this_attempt_counts_with_the_earlier_ones(self):
        found = self.judged(4, earlier=5)
        (figure,) = found.judgements
        self.assertEqual(Word.FAIL, found.result)
        self.assertIn('24 of 60 guest runs and 0 of ', figure.remarks[0])

    def test_a_hang_of_a_warm_up_counts(self):
        hang = runs.sample(record.Side.GUEST, 0, runs.bad('hung'),
                           warm_up=True)
        values = [100 + number / 100 for number in range(20)]
        judged = runs.run(values, values[::-1])
        before = record.Attempt('0', '', 20, (*judged.samples, hang))
        (figure,) = verdict.judge([dataclasses.replace(
            judged, earlier=(before,))]).judgements
        self.assertEqual(1, figure.tail.guest)
        (figure,) = verdict.judge([dataclasses.replace(
            judged, samples=(*judged.samples, hang))]).judgements
        self.assertEqual(Word.INVALID, figure.result)
        self.assertIn('1 of 21 guest runs', figure.remarks[0])

    def test_a_few_hangs_are_invalid(self):
        found = self.judged(1)
        self.assertEqual(Word.INVALID, found.result)
        self.assertIn('1 of 10 guest runs', found.judgements[0].remarks[0])

    def test_a_guest_of_which_no_run_ends_was_not_set_up_right(self):
        self.assertEqual(Word.INVALID, self.judged(10).result)
