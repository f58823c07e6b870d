# SPDX-License-Identifier: Apache-2.0

import dataclasses
import math
import random
import time

import testtools

from hpcvirt.tune import analysis
from hpcvirt.tune import findings
from hpcvirt.tune import space as spaces
from hpcvirt.tune import trial
from tests.builders import tunes

BUDGET = spaces.Budget(4, 10)


def analyse(space, speed, noise, budget=BUDGET, seed='', **fields):
    return analysis.analyse(space, budget, tunes.carry_out(
        space, budget, speed, noise, seed, **fields))


class TestRecommend(testtools.TestCase):
    def test_the_best_is_found_without_noise(self):
        for seed in range(30):
            dice = random.Random(seed)
            space = tunes.space(2, 2, 3, 2, 4)
            speed = tunes.sum_gains([
                [dice.choice((-0.1, -0.03, 0.03, 0.1))
                 for _ in choice.values[1:]] for choice in space.choices])
            found = analyse(space, speed, 0.0)
            self.assertAlmostEqual(speed(tunes.find_best(space, speed)),
                                   speed(found.recommended))

    def test_an_interaction_changes_the_best(self):
        space = tunes.space(*[2] * 5)
        speed = tunes.sum_gains([(0.02,), (0.03,), (0.0,), (-0.1,), (-0.1,)],
                                {(0, 1): -0.06})
        self.assertEqual((0, 1, 0, 0, 0),
                         analyse(space, speed, 0.002).recommended)

    def test_a_confounded_interaction_is_of_the_largest_effects(self):
        space = tunes.space(*[2] * 4)
        speed = tunes.sum_gains([(0.01,), (0.1,), (0.01,), (0.1,)],
                                {(1, 3): -0.06})
        found = analyse(space, speed, 0.002)
        self.assertEqual(speed(tunes.find_best(space, speed)),
                         speed(found.recommended))

    def test_small_gains_are_not_worth_a_change(self):
        space = tunes.space(*[2] * 4)
        found = analyse(space, tunes.sum_gains(
            [(0.001,), (0.0005,), (-0.1,), (-0.1,)]), 0.0001)
        self.assertEqual(space.today, found.recommended)
        self.assertIn('predicted to be better by more than 0.3 %',
                      found.reason)

    def test_of_equal_values_that_with_more_guests_is_simpler(self):
        choice = spaces.Choice('guests', ('today', 'one', 'four', 'eight'), (
            tunes.COST, spaces.HostCost(1, 32, 9), spaces.HostCost(4, 32, 9),
            spaces.HostCost(4, 30, 9)))
        space = spaces.Space((choice,), {'p': 1.0}, 0.01)
        self.assertEqual((2,), analyse(space, tunes.sum_gains(
            [(0.0512, 0.05, 0.051)]), 0.0001).recommended)


class TestFindings(testtools.TestCase):
    SPACE = tunes.space(2, 3, 2, 2, weights={'p': 0.5, 'q': 0.5})
    SPEED = staticmethod(tunes.sum_gains(
        [(0.1,), (0.0, -0.1), (0.012,), (-0.012,)]))

    @staticmethod
    def measure(step, speed, noise, dice):
        """Of all choices, only the first one matters to q: twice as much."""
        made = tunes.measure(step, speed, noise, dice)
        own = trial.TrialRun(0.2 * step.levels[0])
        return dataclasses.replace(made, runs={**made.runs, 'q': (own,) * 3})

    def test_values_have_effects_of_each_program_and_of_time(self):
        found = analyse(self.SPACE, self.SPEED, 0.0001, make=self.measure)
        by_name = {(each.choice, each.value): each for each in found.values}
        first = by_name['a', '1']
        self.assertAlmostEqual(0.15, first.effect.gain, delta=0.001)
        self.assertAlmostEqual(0.1, first.programs['p'].gain, delta=0.001)
        self.assertAlmostEqual(0.2, first.programs['q'].gain, delta=0.001)
        self.assertIs(findings.Decision.BETTER, first.decision)
        self.assertEqual((True, True), (first.effect.low < first.effect.gain
                                        < first.effect.high,
                                        first.guard is None))
        self.assertEqual(
            [findings.Decision.SAME, findings.Decision.WORSE],
            [by_name['b', value].decision for value in ('1', '2')])

    def test_a_gain_is_claimed_from_the_confirmation(self):
        space = tunes.space(*[2] * 4)
        found = analyse(space, self.SPEED, 0.003)
        self.assertTrue(found.confirmation.is_gain)
        self.assertEqual((1, 0, 1, 0), found.recommended)
        self.assertAlmostEqual(0.112, found.confirmation.effect.gain,
                               delta=0.005)
        self.assertEqual('the confirmation showed a gain', found.reason)

    def test_nothing_is_claimed_before_the_end(self):
        space = tunes.space(*[2] * 4)
        made = tunes.carry_out(space, BUDGET, self.SPEED, 0.01)
        confirmed = [each for each in made
                     if each.step.stage is trial.Stage.CONFIRM]
        screened = made[:-len(confirmed)]
        found = analysis.analyse(space, BUDGET, screened[:20])
        self.assertEqual(((), None, space.today), (
            found.values[4:], found.screened, found.recommended))
        found = analysis.analyse(space, BUDGET, screened[:8])
        self.assertEqual((), found.values)
        found = analysis.analyse(space, BUDGET, screened + confirmed[:8])
        self.assertEqual((space.today, 4, None), (
            found.recommended, found.confirmation.pairs,
            found.confirmation.effect))
        self.assertIn('4 of 10 pairs', found.reason)

    def test_a_gain_is_rarely_claimed_where_there_is_none(self):
        space = tunes.space(2)
        claimed = sum(analyse(
            space, tunes.sum_gains([(0.0,)]), 0.01, spaces.Budget(0, 10),
            str(seed)).confirmation.is_gain for seed in range(300))
        self.assertLessEqual(claimed, 300 * (0.05 + 3 * 0.0126))

    def test_a_winner_with_stragglers_is_refused(self):
        def measure(step, speed, noise, dice):
            made = tunes.measure(step, speed, noise, dice)
            slow = trial.TrialRun(made.runs['p'][0].speed - math.log(10))
            return made if not step.levels[0] or dice.random() < 0.5 else (
                dataclasses.replace(made, runs={
                    'p': (slow, *made.runs['p'][1:])}))
        space = tunes.space(2)
        found = analyse(space, tunes.sum_gains([(0.1,)]), 0.01,
                        spaces.Budget(0, 20), make=measure)
        self.assertEqual((False, space.today), (found.confirmation.is_gain,
                                                found.recommended))
        self.assertIn('much slower than usual in', found.reason)

    def test_todays_profile_is_compared_with_native(self):
        def measure(step, speed, noise, dice):
            if step.stage is trial.Stage.NATIVE:
                return tunes.measure(step, lambda _: 0.05, noise, dice)
            return tunes.measure(step, speed, noise, dice)
        budget = dataclasses.replace(BUDGET, has_native=True)
        space = tunes.space(*[2] * 4)
        found = analyse(space, self.SPEED, 0.002, budget, make=measure)
        self.assertAlmostEqual(-0.05, found.native.gain, delta=0.004)
        self.assertLess(found.native.low, -0.05)
        self.assertIsNone(analyse(space, self.SPEED, 0.002).native)

    def test_four_hundred_trials_take_less_than_a_second(self):
        space = tunes.space(*[2] * 8)
        budget = spaces.Budget(24, 10)
        made = tunes.carry_out(space, budget, tunes.sum_gains(
            [(0.004,)] * 8), 0.03)
        self.assertGreater(len(made), 380)
        began = time.process_time()
        analysis.analyse(space, budget, made)
        self.assertLess(time.process_time() - began, 1.0)
