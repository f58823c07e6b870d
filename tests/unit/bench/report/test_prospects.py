# SPDX-License-Identifier: Apache-2.0

import dataclasses
import math
import random

import testtools

from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from hpcvirt.bench.report import prospects
from hpcvirt.bench.run import plan
from tests import pages
from tests.builders import runs


class TestProspects(testtools.TestCase):
    def describe(self, pairs=10, bound=0.97, **more):
        run = dataclasses.replace(runs.run([], [], **more), benchmark='stream',
                                  variant='openmp', planned_pairs=pairs,
                                  bounds={'triad_mb_s': judgement.Bound(
                                      bound)})
        return list(prospects.describe(plan.RunPlan((
            plan.PlannedRun({}, run),))))

    def test_it_says_which_guest_passes_with_which_noise(self):
        found = '\n'.join(self.describe())
        self.assertEqual("""\
plan stream openmp: 10 pairs, 1 figure, about 22 min if a job takes a minute
  triad_mb_s, bound 0.97: a guest passes in 4 of 5 cases
    if single runs vary by 1%: from 0.988
    if single runs vary by 3%: hardly any with 10 pairs; a guest that equals \
native with 16, about 34 min if a job takes a minute
    if single runs vary by 10%: hardly any with 10 pairs; a guest that equals \
native with 151, about 5 h 4 min if a job takes a minute""", found)
        page = ' '.join(pages.read('user/verdict').split())
        self.assertIn('a guest of at least 0.988 passes', page)
        self.assertIn('needs 16 pairs', page)
        self.assertIn('needs 151 pairs', page)

    def test_a_guest_as_slow_as_it_says_passes_4_times_of_5(self):
        dice = random.Random(1)
        passed = sum(verdict.judge([runs.run(
            *([100 * ratio * math.exp(dice.gauss(0, 0.01)) for _ in range(10)]
              for ratio in (1, 0.988)), 0.97)]).result
            is judgement.VerdictResult.PASS for _ in range(200))
        self.assertTrue(140 <= passed <= 180, passed)

    def test_boots_count_and_not_pairs(self):
        found = self.describe(13, relaunched=True, planned_figures=23)
        self.assertIn('13 pairs in at least 10 boots', found[0])
        alone, relaunched = (self.describe(16, relaunched=more)[2]
                             for more in (False, True))
        self.assertIn('from 0.984', alone)
        self.assertIn('from 0.989', relaunched)

    def test_a_guest_at_native_speed_may_be_required(self):
        self.assertIn('not even a guest that equals native, with 200 pairs',
                      self.describe(bound=1.0)[2])

    def test_a_machine_that_is_compared_with_itself_gets_no_word(self):
        self.assertEqual([], self.describe(purpose=record.Purpose.AA))
