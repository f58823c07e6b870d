# SPDX-License-Identifier: Apache-2.0

"""What a run can decide, against what simulated runs decide."""

import dataclasses
import math
import random
import re
import statistics

import testtools

from hpcvirt.bench.analysis import power
from hpcvirt.bench.analysis import signed_rank
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import judgement
from tests.builders import runs

Word = judgement.VerdictResult


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
            math.sqrt(0.5) * power.find_margin(0.01, 10, 1, 10, 0.0),
            power.find_margin(0.01, 10, 1, 20, 0.0))

    def test_the_number_of_pairs_is_the_least_that_decides(self):
        for variation, figures in ((0.01, 1), (0.03, 1), (0.03, 23)):
            pairs = power.find_pairs(variation, 0.03, figures)
            for count, decides in ((pairs, True), (pairs - 1, False)):
                self.assertEqual(decides, power.find_margin(
                    variation, count, figures, count, 0.03) <= 0.03)
        for distance in (0.0, -0.01, 0.01):
            self.assertIsNone(power.find_pairs(0.10, distance, 1))


class TestStudy(testtools.TestCase):
    """A bound that is the ratio which a study measured."""

    def judge(self, ratio, seed, kind=judgement.BoundKind.MEASURED, **more):
        dice = random.Random(seed)
        native, guest = ([100 * level * dice.lognormvariate(0, 0.01)
                          for _ in range(10)] for level in (1, ratio))
        run = runs.run(native, guest, **more)
        bounds = {metric: judgement.Bound(0.962, kind=kind)
                  for metric in run.bounds}
        return verdict.judge([dataclasses.replace(
            run, bounds=bounds)]).judgements[0]

    def ratios(self, figure):
        """The better and the worse ratio that a remark names."""
        (remark,) = [each for each in figure.remarks if 'a study' in each]
        found = re.search(r'a study measured 0\.962, .* 10 pairs pass one at '
                          r'(\S+) and fail one at (\S+) in 4 of 5 cases',
                          remark)
        return tuple(map(float, found.groups()))

    def test_a_guest_as_measured_is_told_what_could_be_decided(self):
        found = [self.judge(0.962, seed) for seed in range(100)]
        undecided = [figure for figure in found
                     if figure.result is Word.INCONCLUSIVE]
        self.assertGreater(len(undecided), 80)
        better, worse = (statistics.median(each) for each in zip(
            *map(self.ratios, undecided), strict=True))
        for ratio, word in ((better, Word.PASS), (worse, Word.FAIL)):
            decided = sum(self.judge(ratio, seed).result is word
                          for seed in range(200))
            self.assertTrue(140 <= decided <= 185, (ratio, decided))

    def test_a_time_is_better_if_it_is_shorter(self):
        figure = self.judge(0.962, 1, direction=runs.DOWN)
        better, worse = self.ratios(figure)
        self.assertLess(better, 0.962)
        self.assertGreater(worse, 0.962)

    def test_other_bounds_and_other_guests_need_no_word(self):
        for ratio, kind in ((1.0, judgement.BoundKind.MEASURED),
                            (0.962, judgement.BoundKind.EXPECTED),
                            (0.962, None)):
            self.assertEqual((), self.judge(ratio, 1, kind).remarks)
