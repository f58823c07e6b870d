# SPDX-License-Identifier: Apache-2.0

import collections
import dataclasses
import itertools
import random

import hypothesis
import testtools
from hypothesis import strategies

from hpcvirt.tune import analysis
from hpcvirt.tune import design
from hpcvirt.tune import effects
from hpcvirt.tune import space as spaces
from hpcvirt.tune import steps
from hpcvirt.tune import trial
from tests.builders import tunes

SPACE = tunes.space(*[2] * 5, whole={1})
SPEED = tunes.sum_gains([(0.1,), (-0.05,), (0.001,), (0.015,), (0.0,)])
BUDGET = spaces.Budget(3, 5, hosts=2, lot='lot', has_native=True)


class TestNextSteps(testtools.TestCase):
    def test_a_replicate_has_the_design(self):
        found = steps.next_steps(SPACE, BUDGET, ())
        self.assertEqual(sorted(design.make(SPACE).levels),
                         sorted(step.levels for step in found))

    def test_whole_plots_are_not_interrupted(self):
        found = steps.next_steps(SPACE, BUDGET, ())
        values = [step.levels[1] for step in found]
        self.assertEqual(1, sum(one != other for one, other
                                in itertools.pairwise(values)))

    def test_the_order_depends_on_the_lot(self):
        orders = {steps.next_steps(SPACE, spaces.Budget(2, 5, lot=str(lot)),
                                   ()) for lot in range(20)}
        self.assertGreater(len(orders), 15)
        self.assertGreater(len({each[0].levels for each in orders}), 5)

    def test_replicates_and_pairs_take_the_hosts_in_turn(self):
        for each in tunes.carry_out(SPACE, BUDGET, SPEED, 0.005):
            self.assertEqual(each.step.block % 2, each.step.host)

    def test_pairs_of_boots_follow_the_replicates(self):
        made = tunes.carry_out(SPACE, BUDGET, SPEED, 0.005)
        stages = [each.step.stage for each in made]
        self.assertNotIn(trial.Stage.SCREEN, stages[-15:])
        self.assertEqual(BUDGET.pairs, stages.count(trial.Stage.NATIVE))
        pairs = [each.step.levels for each in made
                 if each.step.stage is trial.Stage.CONFIRM]
        self.assertEqual(2 * BUDGET.pairs, len(pairs))
        self.assertEqual({SPACE.today, (1, 0, 0, 1, 0)}, set(pairs))
        firsts = collections.Counter(pairs[::2])
        self.assertEqual(2, len(firsts))

    def test_there_is_nothing_to_confirm_if_todays_is_best(self):
        for has_native, stages in ((False, {'screen'}), (True, {
                'screen', 'native', 'confirm'})):
            made = tunes.carry_out(SPACE, dataclasses.replace(
                BUDGET, has_native=has_native), tunes.sum_gains(
                    [(-0.1,)] * 5), 0.001)
            self.assertEqual(stages, {each.step.stage for each in made})
            self.assertEqual({SPACE.today}, {
                each.step.levels for each in made
                if each.step.stage is not trial.Stage.SCREEN
                } or {SPACE.today})

    def test_the_last_values_are_confirmed_without_replicates(self):
        found = steps.next_steps(tunes.space(2), spaces.Budget(0, 5), ())
        self.assertEqual({(0,), (1,)}, {step.levels for step in found})
        self.assertEqual(10, len(tunes.carry_out(
            tunes.space(2), spaces.Budget(0, 5), tunes.sum_gains([(0.0,)]))))

    @hypothesis.settings(max_examples=8, deadline=None)
    @hypothesis.given(strategies.integers(0, 100), strategies.randoms())
    def test_a_killed_experiment_continues_as_if_it_had_not_been(
            self, seed, dice):
        def value(step):
            return tunes.measure(step, SPEED, 0.02, random.Random(
                f'{seed} {step}'))
        whole = []
        while rest := steps.next_steps(SPACE, BUDGET, whole):
            whole += map(value, rest)
        killed = []
        while rest := steps.next_steps(SPACE, BUDGET, killed):
            killed += map(value, rest[:dice.randint(1, len(rest))])
        self.assertEqual([each.step for each in whole],
                         [each.step for each in killed])


class TestDropping(testtools.TestCase):
    def find_fixed(self, speed, noise, count=2, space=SPACE, seed=''):
        budget = spaces.Budget(count, 5)
        found = analysis.screen(space, budget, tunes.carry_out(
            space, budget, speed, noise, seed)).design
        return {choice: level for choice, level in enumerate(found.levels[0])
                if choice not in found.columns}

    def test_a_large_effect_is_fixed_at_the_better_value(self):
        fixed = self.find_fixed(SPEED, 0.005)
        self.assertEqual((1, 0), (fixed[0], fixed[1]))

    def test_values_that_are_the_same_are_fixed_at_the_simpler_one(self):
        self.assertEqual(0, self.find_fixed(SPEED, 0.001)[4])
        cost = spaces.HostCost(4, 32, 65536)
        choice = spaces.Choice('guests', ('today', 'one', 'four'),
                               (tunes.COST, tunes.COST, cost))
        space = spaces.Space((choice, *SPACE.choices[:2]), {'p': 1.0}, 0.01)
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
        made = tunes.carry_out(SPACE, spaces.Budget(3, 5), speed, 0.005)
        third = {each.step.levels[:2] for each in made
                 if each.step.block == 2
                 and each.step.stage is trial.Stage.SCREEN}
        self.assertEqual({(1, 0)}, third)
        made = tunes.carry_out(SPACE, spaces.Budget(10, 5), SPEED, 0.0005)
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
