# SPDX-License-Identifier: Apache-2.0

import collections
import dataclasses
import itertools
import math
import random
import time

import hypothesis
import testtools
from hypothesis import strategies

from hpcvirt.tune import analysis
from hpcvirt.tune import design
from hpcvirt.tune import effects
from hpcvirt.tune import model
from tests.builders import tunes

SPACE = tunes.space(*[2] * 5, whole={1}, replicates=3, confirm_boots=5,
                    name='lot', native='ssh://{host}')
SPEED = tunes.sum_gains([(0.1,), (-0.05,), (0.001,), (0.015,), (0.0,)])


def analyse(space, speed, noise, seed='', **fields):
    return analysis.analyse(space, tunes.carry_out(
        space, speed, noise, seed, **fields))


class TestRecommend(testtools.TestCase):
    def test_the_best_is_found_without_noise(self):
        self.assert_best_is_found(range(8))

    def test_periodic_the_best_of_many_spaces_is_found(self):
        self.assert_best_is_found(range(8, 200))

    def assert_best_is_found(self, seeds):
        for seed in seeds:
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
        choice = model.Choice('guests', ('today', 'one', 'four', 'eight'), (
            tunes.COST, model.HostCost(1, 32, 9), model.HostCost(4, 32, 9),
            model.HostCost(4, 30, 9)))
        space = dataclasses.replace(tunes.space(2), choices=(choice,))
        self.assertEqual((2,), analyse(space, tunes.sum_gains(
            [(0.0512, 0.05, 0.051)]), 0.0001).recommended)


class TestFindings(testtools.TestCase):
    SPACE = tunes.space(2, 3, 2, 2, programs=('p', 'q'))
    SPEED = staticmethod(tunes.sum_gains(
        [(0.1,), (0.0, -0.1), (0.012,), (-0.012,)]))

    @staticmethod
    def measure(step, speed, noise, dice):
        """Of all choices, only the first one matters to q: twice as much."""
        made = tunes.measure(step, speed, noise, dice)
        own = model.TrialRun(0.2 * step.levels[0])
        return dataclasses.replace(made, runs={**made.runs, 'q': (own,) * 3})

    def test_values_have_effects_of_each_program_and_of_time(self):
        found = analyse(self.SPACE, self.SPEED, 0.0001, make=self.measure)
        by_name = {(each.choice, each.value): each for each in found.values}
        first = by_name['a', '1']
        self.assertAlmostEqual(0.15, first.effect.gain, delta=0.001)
        self.assertAlmostEqual(0.1, first.programs['p'].gain, delta=0.001)
        self.assertAlmostEqual(0.2, first.programs['q'].gain, delta=0.001)
        self.assertIs(model.Decision.BETTER, first.decision)
        self.assertEqual((True, True), (first.effect.low < first.effect.gain
                                        < first.effect.high,
                                        first.guard is None))
        self.assertEqual(
            [model.Decision.SAME, model.Decision.WORSE],
            [by_name['b', value].decision for value in ('1', '2')])

    def test_interactions_beyond_doubt_are_listed(self):
        space = tunes.space(*[2] * 5)
        found = analyse(space, tunes.sum_gains(
            [(0.01,)] * 5, {(1, 3): 0.04}), 0.0001)
        names = [f'{space.choices[place].name}='
                 f'{space.choices[place].values[1]}' for place in (1, 3)]
        listed, = found.interactions
        self.assertEqual(tuple(names), listed.values)
        self.assertAlmostEqual(0.04, listed.effect.gain, delta=0.001)
        self.assertEqual(tuple(
            f'{space.choices[one].name} x {space.choices[other].name}'
            for one, other in design.make(space).aliases((1, 3))),
            listed.confounded)
        none = analyse(space, tunes.sum_gains([(0.01,)] * 5), 0.0001)
        self.assertEqual((), none.interactions)

    def test_a_gain_is_claimed_from_the_confirmation(self):
        space = tunes.space(*[2] * 4)
        found = analyse(space, self.SPEED, 0.003)
        self.assertTrue(found.confirmation.is_gain)
        self.assertEqual((1, 0, 1, 0), found.recommended)
        self.assertAlmostEqual(0.112, found.confirmation.effect.gain,
                               delta=0.005)
        self.assertEqual('the confirmation showed a gain', found.reason)

    def confirm(self, gain, spread):
        """Analyse an experiment whose fresh boots show another gain.

        :param spread: by how much pairs of boots are above or below the gain
        """
        def measure(step, speed, noise, dice):
            if step.stage is not model.Stage.CONFIRM:
                return tunes.measure(step, speed, noise, dice)
            here = gain + spread * (-1) ** step.block
            return tunes.measure(
                step, lambda levels: here * (levels != space.today))
        space = tunes.space(*[2] * 4)
        return analyse(space, self.SPEED, 0.003, make=measure)

    def test_a_gain_that_is_possible_is_recommended_and_not_claimed(self):
        found = self.confirm(0.05, 0.1)
        self.assertFalse(found.confirmation.is_gain)
        self.assertGreater(found.confirmation.effect.high, 0.01)
        self.assertEqual((1, 0, 1, 0), found.recommended)
        self.assertEqual('the confirmation showed that a gain is possible, '
                         'but not beyond doubt', found.reason)

    def test_a_gain_that_does_not_matter_keeps_todays_profile(self):
        found = self.confirm(0.001, 0.004)
        self.assertTrue(0 < found.confirmation.effect.high < 0.01)
        self.assertEqual((0, 0, 0, 0), found.recommended)
        self.assertEqual("today's profile is kept, because the confirmation "
                         'excludes a gain that matters', found.reason)

    def test_nothing_is_claimed_before_the_end(self):
        space = tunes.space(*[2] * 4)
        made = tunes.carry_out(space, self.SPEED, 0.01)
        confirmed = [each for each in made
                     if each.step.stage is model.Stage.CONFIRM]
        screened = made[:-len(confirmed)]
        found = analysis.analyse(space, screened[:20])
        self.assertEqual(((), None, space.today), (
            found.values[4:], found.confirmation, found.recommended))
        found = analysis.analyse(space, screened[:8])
        self.assertEqual((), found.values)
        found = analysis.analyse(space, screened + confirmed[:8])
        self.assertEqual((space.today, 4, None), (
            found.recommended, found.confirmation.pairs,
            found.confirmation.effect))
        self.assertIn('4 of 10 pairs', found.reason)

    def test_a_gain_is_rarely_claimed_where_there_is_none(self):
        space = tunes.space(2, replicates=0)
        claimed = sum(
            analyse(space, tunes.sum_gains([(0.0,)]), 0.01,
                    str(seed)).confirmation.is_gain for seed in range(300))
        self.assertLessEqual(claimed, 300 * (0.05 + 3 * 0.0126))

    def test_a_winner_with_stragglers_is_refused(self):
        def measure(step, speed, noise, dice):
            made = tunes.measure(step, speed, noise, dice)
            slow = model.TrialRun(made.runs['p'][0].speed - math.log(10))
            return made if not step.levels[0] or dice.random() < 0.5 else (
                dataclasses.replace(made, runs={
                    'p': (slow, *made.runs['p'][1:])}))
        space = tunes.space(2, replicates=0, confirm_boots=20)
        found = analyse(space, tunes.sum_gains([(0.1,)]), 0.01, make=measure)
        self.assertEqual((False, space.today), (found.confirmation.is_gain,
                                                found.recommended))
        self.assertIn('much slower than usual in', found.reason)

    def test_todays_profile_is_compared_with_native(self):
        def measure(step, speed, noise, dice):
            if step.stage is model.Stage.NATIVE:
                return tunes.measure(step, lambda _: 0.05, noise, dice)
            return tunes.measure(step, speed, noise, dice)
        space = tunes.space(*[2] * 4, native='ssh://{host}')
        found = analyse(space, self.SPEED, 0.002, make=measure)
        self.assertAlmostEqual(-0.05, found.native.gain, delta=0.004)
        self.assertLess(found.native.low, -0.05)
        self.assertIsNone(analyse(tunes.space(*[2] * 4), self.SPEED,
                                  0.002).native)

    def test_four_hundred_trials_take_less_than_a_second(self):
        space = tunes.space(*[2] * 8, replicates=24)
        made = tunes.carry_out(space, tunes.sum_gains(
            [(0.004,)] * 8), 0.03)
        self.assertGreater(len(made), 380)
        began = time.process_time()
        analysis.analyse(space, made)
        self.assertLess(time.process_time() - began, 1.0)


class TestNextSteps(testtools.TestCase):
    def test_a_replicate_has_the_design(self):
        found = analysis.next_steps(SPACE, ())
        self.assertEqual(sorted(design.make(SPACE).levels),
                         sorted(step.levels for step in found))

    def test_whole_plots_are_not_interrupted(self):
        found = analysis.next_steps(SPACE, ())
        values = [step.levels[1] for step in found]
        self.assertEqual(1, sum(one != other for one, other
                                in itertools.pairwise(values)))

    def test_the_order_depends_on_the_lot(self):
        orders = {analysis.next_steps(
            tunes.space(*[2] * 5, whole={1}, name=str(lot)), ())
            for lot in range(20)}
        self.assertGreater(len(orders), 15)
        self.assertGreater(len({each[0].levels for each in orders}), 5)

    def test_pairs_of_boots_follow_the_replicates(self):
        made = tunes.carry_out(SPACE, SPEED, 0.005)
        stages = [each.step.stage for each in made]
        self.assertNotIn(model.Stage.SCREEN, stages[-15:])
        self.assertEqual(5, stages.count(model.Stage.NATIVE))
        pairs = [each.step.levels for each in made
                 if each.step.stage is model.Stage.CONFIRM]
        self.assertEqual(10, len(pairs))
        self.assertEqual({SPACE.today, (1, 0, 0, 1, 0)}, set(pairs))
        firsts = collections.Counter(pairs[::2])
        self.assertEqual(2, len(firsts))

    def test_there_is_nothing_to_confirm_if_todays_is_best(self):
        for space, stages in ((tunes.space(*[2] * 5), {'screen'}), (SPACE, {
                'screen', 'native', 'confirm'})):
            made = tunes.carry_out(
                space, tunes.sum_gains([(-0.1,)] * 5), 0.001)
            self.assertEqual(stages, {each.step.stage for each in made})
            self.assertEqual({SPACE.today}, {
                each.step.levels for each in made
                if each.step.stage is not model.Stage.SCREEN
                } or {SPACE.today})

    def test_the_last_values_are_confirmed_without_replicates(self):
        space = tunes.space(2, replicates=0, confirm_boots=5)
        found = analysis.next_steps(space, ())
        self.assertEqual({(0,), (1,)}, {step.levels for step in found})
        self.assertEqual(10, len(tunes.carry_out(
            space, tunes.sum_gains([(0.0,)]))))

    @hypothesis.settings(max_examples=8, deadline=None)
    @hypothesis.given(strategies.integers(0, 100), strategies.randoms())
    def test_a_killed_experiment_continues_as_if_it_had_not_been(
            self, seed, dice):
        def value(step):
            return tunes.measure(step, SPEED, 0.02, random.Random(
                f'{seed} {step}'))
        whole = []
        while rest := analysis.next_steps(SPACE, whole):
            whole += map(value, rest)
        killed = []
        while rest := analysis.next_steps(SPACE, killed):
            killed += map(value, rest[:dice.randint(1, len(rest))])
        self.assertEqual([each.step for each in whole],
                         [each.step for each in killed])


class TestDropping(testtools.TestCase):
    def find_fixed(self, speed, noise, count=2, space=SPACE, seed=''):
        space = dataclasses.replace(space, replicates=count)
        return analysis.screen(space, tunes.carry_out(
            space, speed, noise, seed)).fixed

    def test_a_large_effect_is_fixed_at_the_better_value(self):
        fixed = self.find_fixed(SPEED, 0.005)
        self.assertEqual((1, 0), (fixed[0], fixed[1]))

    def test_values_that_are_the_same_are_fixed_at_the_simpler_one(self):
        self.assertEqual(0, self.find_fixed(SPEED, 0.001)[4])
        cost = model.HostCost(4, 32, 65536)
        choice = model.Choice('guests', ('today', 'one', 'four'),
                              (tunes.COST, tunes.COST, cost))
        space = dataclasses.replace(
            SPACE, choices=(choice, *SPACE.choices[:2]))
        fixed = self.find_fixed(tunes.sum_gains(
            [(0.03, 0.0302), (0.1,), (0.1,)]), 0.0001, space=space)
        self.assertIn(fixed[0], (1, 2))

    def test_what_is_open_stays_in_the_design(self):
        for seed in range(8):
            self.assertNotIn(2, self.find_fixed(SPEED, 0.02, seed=str(seed)))

    def test_nothing_is_dropped_after_one_replicate(self):
        self.assertEqual({}, self.find_fixed(SPEED, 0.0001, count=1))

    def test_dropped_choices_are_not_varied_and_end_the_screening(self):
        speed = tunes.sum_gains([(0.1,), (-0.1,), (0.005,), (0.0,), (0.0,)])
        made = tunes.carry_out(SPACE, speed, 0.005)
        third = {each.step.levels[:2] for each in made
                 if each.step.block == 2
                 and each.step.stage is model.Stage.SCREEN}
        self.assertEqual({(1, 0)}, third)
        made = tunes.carry_out(
            dataclasses.replace(SPACE, replicates=10), SPEED, 0.0005)
        self.assertEqual(2, len(effects.find_complete(SPACE, made)))

    def test_a_choice_that_depends_on_another_stays(self):
        speed = tunes.sum_gains([(0.02,), (0.0,), (0.1,), (0.1,), (0.1,)],
                                {(0, 2): -0.05})
        self.assertNotIn(0, self.find_fixed(speed, 0.001))

    def test_a_wrong_value_is_hardly_ever_fixed(self):
        speed = tunes.sum_gains([(0.005,)] * 5)
        wrong = sum(0 in self.find_fixed(speed, 0.02, seed=str(seed))
                    .values() for seed in range(60))
        self.assertLessEqual(wrong, 2)
