# SPDX-License-Identifier: Apache-2.0

"""What a run can decide, against what simulated runs decide."""

import dataclasses
import math
import random

import testtools

from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.analysis import power
from hpcvirt.bench.analysis import signed_rank
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from tests.builders import runs

Word = judgement.VerdictResult


class TestReach(testtools.TestCase):
    TRIALS = 300

    def test_a_loss_at_this_distance_is_decided_4_times_of_5(self):
        dice = random.Random(1)
        for count, figures in ((5, 1), (7, 5), (8, 1), (10, 1), (10, 3),
                               (10, 23), (13, 10), (20, 1), (40, 5)):
            reach = power.find_detectable_distance(count, figures)
            decided = sum(
                signed_rank.estimate(dice.gauss(0, 1) - reach for _ in range(
                    count)).p_beyond(0) <= stats.ALPHA / figures
                for _ in range(self.TRIALS)) / self.TRIALS
            self.assertTrue(0.71 <= decided <= 0.88,
                            (count, figures, decided))

    def test_too_few_losses_decide_at_no_distance(self):
        for count, figures in ((4, 1), (6, 5), (9, 23)):
            self.assertEqual(math.inf, power.find_detectable_distance(
                count, figures))

    def test_pairs_of_one_boot_are_averaged(self):
        self.assertAlmostEqual(
            math.sqrt(0.5) * power.find_margin(0.01, 10, 1, 10, 0.0),
            power.find_margin(0.01, 10, 1, 20, 0.0))

    def test_the_number_of_pairs_is_the_least_that_decides(self):
        for variation, figures in ((0.03, 1), (0.03, 23)):
            pairs = power.find_pairs(variation, 0.03, 0.03, figures)
            for count, decides in ((pairs, True), (pairs - 1, False)):
                self.assertEqual(decides, power.find_margin(
                    variation, count, figures, count, 0.03) <= 0.03)
        for distance in (0.0, -0.01, 0.01):
            self.assertIsNone(power.find_pairs(0.10, distance, 0.03, 1))

    def test_fewer_than_ten_pairs_are_never_planned(self):
        self.assertEqual(10, power.find_pairs(0.0001, 0.05, 0.05, 1))

    def test_boots_that_are_fewer_than_pairs_count(self):
        pairs = power.find_pairs(0.01, 0.03, 0.06, 1, lambda pairs: pairs // 2)
        alone = power.find_pairs(0.01, 0.03, 0.06, 1)
        self.assertGreater(pairs, alone)


class TestStudy(testtools.TestCase):
    """A bound that a study measured, with the default margin."""

    def judge(self, ratio, seed, kind=judgement.BoundKind.MEASURED,
              pairs=16, **more):
        dice = random.Random(seed)
        native, guest = ([100 * level * dice.lognormvariate(0, 0.01)
                          for _ in range(pairs)] for level in (1, ratio))
        run = runs.run(native, guest, **more)
        margin = bounds.STUDY_MARGIN if kind else 0.0
        chosen = {metric: judgement.Bound(0.962, margin, kind=kind)
                  for metric in run.bounds}
        return verdict.judge([dataclasses.replace(
            run, bounds=chosen)]).judgements[0]

    def test_a_guest_as_in_the_study_passes(self):
        found = [self.judge(0.962, seed).result for seed in range(60)]
        self.assertGreater(found.count(Word.PASS), 50)

    def test_a_guest_at_the_claim_does_not(self):
        found = [self.judge(0.962 * 0.97, seed).result for seed in range(60)]
        self.assertLess(found.count(Word.PASS), 3)
        self.assertLess(found.count(Word.FAIL), 3)

    def test_the_verdict_says_whether_the_study_lies_in_the_interval(self):
        for ratio, direction, text in (
                (0.962, runs.UP, 'lies in the interval'),
                (0.99, runs.UP, 'is worse than the whole interval'),
                (0.90, runs.UP, 'is better than the whole interval'),
                (0.90, runs.DOWN, 'is worse than the whole interval'),
                (1.10, runs.DOWN, 'is better than the whole interval')):
            figure = self.judge(ratio, 1, direction=direction)
            self.assertEqual((f'the ratio of the study, 0.962, {text}',),
                             figure.remarks)

    def test_other_bounds_have_no_such_remark(self):
        for kind in (judgement.BoundKind.EXPECTED, None):
            self.assertEqual((), self.judge(0.962, 1, kind).remarks)


NOISE = 0.03


def simulated(pairs, ratio, seed, noise=NOISE, **more):
    """A run of a simulated guest."""
    dice = random.Random(seed)
    native = [100 * dice.lognormvariate(0, noise) for _ in range(pairs)]
    guest = [100 * ratio * dice.lognormvariate(0, noise) for _ in range(pairs)]
    return runs.run(native, guest, 0.95, **more)


def judge(pairs, ratio, seed):
    return verdict.judge([simulated(pairs, ratio, seed)]).judgements[0]


#: A run by itself, and one whose evidence a further run continues.
ALONE = simulated(10, 0.95, 1)
KNOWN = dataclasses.replace(ALONE, subject='s')


class TestEstimate(testtools.TestCase):
    """How many pairs decide, against what they decide."""

    def figure(self, ratio, low, high, pairs=10, limit=0.95, **more):
        return dataclasses.replace(
            judge(10, 0.95, 1), pairs=pairs, limit=limit, tail=None,
            interval=judgement.Interval(ratio, low, high), **more)

    def typical(self, ratio, noise=NOISE):
        """What 10 pairs show on average."""
        half = noise * 2 ** 0.5 / 10 ** 0.5 * 1.83
        return self.figure(ratio, ratio * (1 - half), ratio * (1 + half))

    def test_the_pairs_that_it_asks_for_decide_about_4_times_of_5(self):
        for ratio, word in ((0.98, Word.PASS), (0.92, Word.FAIL)):
            pairs = power.estimate_pairs(self.typical(ratio), ALONE, 1)
            decided = sum(judge(pairs, ratio, seed).result is word
                          for seed in range(100))
            self.assertTrue(70 <= decided <= 97, (pairs, decided))

    def test_so_do_pairs_near_the_bound(self):
        pairs = power.estimate_pairs(self.typical(0.96, 0.01), ALONE, 1)
        decided = sum(verdict.judge([simulated(pairs, 0.96, seed, 0.01)
                                     ]).result is Word.PASS
                      for seed in range(60))
        self.assertTrue(40 <= decided <= 58, (pairs, decided))

    def test_so_do_pairs_that_a_further_run_adds(self):
        pairs = power.estimate_pairs(self.typical(0.98), KNOWN, 1)
        decided = 0
        for seed in range(100):
            first = simulated(10, 0.98, 1000 + seed)
            run = simulated(pairs, 0.98, seed, earlier=(record.Attempt(
                'first', '', 10, first.samples),))
            judged, = verdict.judge([run]).judgements
            decided += judged.result is Word.PASS
        self.assertTrue(70 <= decided <= 99, (pairs, decided))

    def test_later_attempts_need_more(self):
        figure = self.figure(0.97, 0.94, 1.0)
        earlier = dataclasses.replace(figure, earlier=(Word.INCONCLUSIVE,) * 3)
        self.assertGreater(power.estimate_pairs(earlier, KNOWN, 1),
                           power.estimate_pairs(figure, KNOWN, 1))

    def test_more_noise_and_more_figures_need_more(self):
        little = power.estimate_pairs(self.figure(0.97, 0.95, 0.99), ALONE, 1)
        self.assertGreater(power.estimate_pairs(
            self.figure(0.97, 0.94, 1.0), ALONE, 1), little)
        self.assertGreater(power.estimate_pairs(
            self.figure(0.97, 0.95, 0.99), ALONE, 20), little)

    def test_it_is_more_than_were_measured(self):
        for pairs in (6, 10, 13):
            self.assertGreater(power.estimate_pairs(
                self.figure(0.999, 0.96, 1.0, pairs), ALONE, 1), pairs)

    def test_stragglers_need_many(self):
        tail = judgement.Tail(Word.INCONCLUSIVE, 0, 1, 0.9)
        figure = dataclasses.replace(self.figure(0.999, 0.98, 1.0), tail=tail)
        self.assertEqual(60, power.estimate_pairs(figure, ALONE, 1))
        self.assertEqual(50, power.estimate_pairs(figure, KNOWN, 1))

    def test_a_guest_at_its_bound_is_never_decided(self):
        for ratio in (0.95, 0.951):
            self.assertIsNone(power.estimate_pairs(
                self.figure(ratio, 0.9, 1.0), ALONE, 1))
