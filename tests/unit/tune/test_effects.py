# SPDX-License-Identifier: Apache-2.0

import dataclasses
import itertools
import math
import random

import testtools

from hpcvirt.tune import design
from hpcvirt.tune import effects
from hpcvirt.tune import experiment
from hpcvirt.tune import model
from tests.builders import tunes


def screen(space, count, speed, noise=0.0, seed='', plots=0.0):
    """Make the trials of replicates, in which nothing is dropped."""
    dice = random.Random(seed)
    made = []
    for block in range(count):
        for plot in design.make(space).plots:
            of_plot = dice.gauss(0, plots)
            made += [tunes.measure(
                model.Step(model.Stage.SCREEN, block, levels),
                lambda levels, more=of_plot: speed(levels) + more, noise,
                dice) for levels in plot]
    return made


def fit(space, trials):
    return effects.fit(space, effects.find_complete(space, trials))


class TestFit(testtools.TestCase):
    def test_effects_are_recovered_without_noise(self):
        space = tunes.space(2, 3, 4, 2, whole={0})
        gains = ((0.1,), (0.02, -0.03), (0.01, 0.0, -0.05), (0.0,))
        found = fit(space, screen(space, 2, tunes.sum_gains(gains)))
        for choice, each in enumerate(gains):
            for level, gain in enumerate(each, 1):
                effect = found.find_effect((choice,), (level,))
                self.assertAlmostEqual(gain, effect.loss)
                self.assertAlmostEqual(0.0, effect.error)

    def test_an_interaction_is_recovered_without_noise(self):
        space = tunes.space(*[2] * 5)
        found = fit(space, screen(space, 2, tunes.sum_gains(
            [(0.01,)] * 5, {(1, 3): 0.04})))
        self.assertEqual([(1, 3)], [*found.find_counting()])
        self.assertAlmostEqual(
            0.04, found.find_effect((1, 3), (1, 1)).loss)

    def test_intervals_cover_the_truth_as_often_as_promised(self):
        space = tunes.space(2, 2, 2, 3, whole={1})
        speed = tunes.sum_gains([(0.01,), (0.02,), (0.0,), (0.01, -0.01)])
        below = dict.fromkeys(range(4), 0)
        for number in range(300):
            found = fit(space, screen(space, 3, speed, 0.02, str(number),
                                      plots=0.01))
            for choice, gain in enumerate((0.01, 0.02, 0.0, 0.01)):
                effect = effects.describe(found.find_effect((choice,), (1,)))
                below[choice] += effect.low > gain
        for count in below.values():
            # Within 3.3 standard errors of 5 %.
            self.assertLess(abs(count - 15), 13, below)

    def test_one_replicate_tells_nothing(self):
        space = tunes.space(2, 2)
        self.assertIsNone(fit(space, screen(space, 1, lambda _: 0.0)))

    def test_a_slow_boot_and_a_failed_one_change_no_effect(self):
        space = tunes.space(*[2] * 4)
        trials = screen(space, 3, tunes.sum_gains(
            [(0.1,), (0.01,), (0.0,), (-0.1,)]))
        failed = model.TrialRun(None)
        trials[3] = dataclasses.replace(trials[3], runs={'p': (failed,) * 3})
        slow = model.TrialRun(trials[9].runs['p'][0].speed - math.log(10))
        trials[9] = dataclasses.replace(trials[9], runs={'p': (slow,) * 3})
        found = fit(space, trials)
        for choice, gain in enumerate((0.1, 0.01, 0.0, -0.1)):
            self.assertAlmostEqual(
                gain, found.find_effect((choice,), (1,)).loss, delta=1e-4)

    def test_the_time_is_the_objective_if_asked_for(self):
        space = tunes.space(2, 2, objective=experiment.Objective.TIME)
        trials = [dataclasses.replace(each, runs={'p': (model.TrialRun(
            0.0, 10.0 if each.step.levels[0] else 20.0),)})
            for each in screen(space, 2, lambda _: 0.0)]
        self.assertAlmostEqual(math.log(2),
                               fit(space, trials).find_effect((0,), (1,)).loss)

    def test_programs_count_by_their_weights(self):
        space = dataclasses.replace(
            tunes.space(2), experiment=tunes.make_experiment(programs={
                name: experiment.TunedProgram(
                    benchmark=name, minutes=1, weight=weight)
                for name, weight in (('p', 3.0), ('q', 1.0))}))
        made = model.Trial(model.Step(model.Stage.SCREEN, 0, (0,)), {
            'p': (model.TrialRun(1.0),), 'q': (model.TrialRun(5.0),)})
        self.assertEqual(2.0, effects.measure(space, made))


class TestSmallestEffects(testtools.TestCase):
    def test_they_are_shown_in_four_of_five_cases(self):
        space = tunes.space(2, 2, 2, 3, whole={0}, replicates=3)
        noise = math.log1p(space.experiment.noise_percent / 100)
        smallest = effects.smallest_effects(space)
        gains = [(each,) for each in smallest[:3]] + [(smallest[3], 0.0)]
        shown = [0] * 4
        for number in range(300):
            found = fit(space, screen(
                space, 3, tunes.sum_gains(gains), noise, str(number),
                plots=noise * effects.REBOOTS))
            for choice in range(4):
                shown[choice] += effects.describe(
                    found.find_effect((choice,), (1,))).low > 0
        for count in shown[1:]:
            self.assertLess(abs(count - 240), 25, shown)
        # Two degrees of freedom: the sum of two quantiles is too cautious.
        self.assertGreater(shown[0], 215)

    def test_more_replicates_show_smaller_effects(self):
        shown = [effects.smallest_effects(tunes.space(
            *[2] * 6, replicates=number)) for number in (1, 2, 8, 32)]
        self.assertEqual((math.inf,) * 6, shown[0])
        for fewer, more in itertools.pairwise(map(max, shown)):
            self.assertLess(more, fewer)
        # Four times as many show about half the effect.
        self.assertAlmostEqual(0.5, max(shown[3]) / max(shown[2]), 1)
