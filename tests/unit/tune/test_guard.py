# SPDX-License-Identifier: Apache-2.0

import dataclasses
import math
import random

import testtools

from hpcvirt.bench.analysis import stragglers
from hpcvirt.tune import design
from hpcvirt.tune import guard
from hpcvirt.tune import model
from tests.builders import tunes

SPACE = tunes.space(*[2] * 4)


def make_trials(chance=lambda _: 0.0, count=4, seed='', slow=2.3,
                whole_boots=False):
    """Make trials with stragglers.

    :param chance: of a straggler, for each configuration
    """
    dice = random.Random(seed)
    made = []
    for block in range(count):
        for levels in design.make(SPACE).levels:
            is_slow = [dice.random() < chance(levels) for _ in range(3)]
            if whole_boots:
                is_slow = is_slow[:1] * 3
            speeds = [dice.gauss(0, 0.01) - slow * each for each in is_slow]
            made.append(model.Trial(
                model.Step(model.Stage.SCREEN, block, levels),
                {'p': tuple(model.TrialRun(each) for each in speeds)}))
    return made


def find_refused(found):
    """The choices whose other value is refused."""
    return {choice for choice in range(len(SPACE.choices))
            if found.refuse_value(choice, 1)}


class TestGuard(testtools.TestCase):
    def test_a_value_with_stragglers_is_refused_with_the_numbers(self):
        found = guard.Guard(SPACE, make_trials(
            lambda levels: 0.3 * levels[1]))
        self.assertEqual({1}, find_refused(found))
        trials, runs, slow = found.count(1, 1)
        self.assertEqual((16, 48), (trials, runs))
        self.assertGreater(slow, 7)
        self.assertRegex(
            found.refuse_value(1, 1), 'runs failed or were much slower than '
            r'usual in \d+ of 16 boots, but in 0 of 16 others')

    def test_stragglers_of_all_values_are_no_reason(self):
        refused = sum(bool(find_refused(guard.Guard(SPACE, make_trials(
            lambda _: 0.05, seed=str(seed)))))
            for seed in range(300))
        # Four values, each with a chance of at most 0.5 %.
        self.assertLessEqual(refused, 300 * (0.02 + 3 * 0.0081))

    def test_the_runs_of_a_bad_boot_count_once(self):
        refused = sum(bool(find_refused(guard.Guard(SPACE, make_trials(
            lambda _: 0.1, seed=str(seed), whole_boots=True,
            slow=math.log(1.5))))) for seed in range(300))
        self.assertLessEqual(refused, 300 * (0.02 + 3 * 0.0081))

    def test_seven_of_16_boots_are_enough_and_four_are_not(self):
        self.assertLess(stragglers.find_chance(0, 7, 16, 16),
                        guard.LEVEL)
        trials = make_trials()
        for count, is_refused in ((4, False), (7, True)):
            struck = [each for each in trials if each.step.levels[2]][:count]
            self.assertEqual(is_refused, bool(guard.Guard(SPACE, [
                dataclasses.replace(each, runs={'p': (
                    model.TrialRun(None), *each.runs['p'][1:])})
                if each in struck else each
                for each in trials]).refuse_value(2, 1)))

    def test_a_value_that_never_runs_is_refused(self):
        trials = [dataclasses.replace(each, runs={'p': (
            model.TrialRun(None),) * 3}) if each.step.levels[0] else each
            for each in make_trials()]
        self.assertIn(0, find_refused(guard.Guard(SPACE, trials)))

    def test_a_slower_value_has_no_stragglers(self):
        trials = [tunes.measure(model.Step(
            model.Stage.SCREEN, 0, levels), tunes.sum_gains(
                [(-2.0,), (0.1,), (0.0,), (-0.5,)]))
            for levels in design.make(SPACE).levels * 3]
        found = guard.Guard(SPACE, trials)
        self.assertEqual(0, found.count(0, 1)[2])

    def test_the_slowest_guest_of_a_host_counts(self):
        trials = [dataclasses.replace(each, runs={'p': (model.TrialRun(
            0.0, 100.0 if each.step.levels[3] and not number % 3
            else 10.0),) * 3})
            for number, each in enumerate(make_trials(count=8))]
        self.assertIn(3, find_refused(guard.Guard(SPACE, trials)))

    def test_a_storm_of_shootdowns_is_refused(self):
        def trials(rate, other):
            return [dataclasses.replace(
                each, shootdowns=rate if each.step.levels[0] else other)
                for each in make_trials()]
        reason = guard.Guard(SPACE, trials(3000, 20)).refuse_value(0, 1)
        self.assertEqual('3000 TLB shoot-downs in a second for each CPU, and '
                         'more than 1250 make jobs slow', reason)
        for rate, other in ((1000, 20), (3000, 2000), (20, 3000)):
            self.assertIsNone(guard.Guard(
                SPACE, trials(rate, other)).refuse_value(0, 1))
