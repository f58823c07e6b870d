# SPDX-License-Identifier: Apache-2.0

import importlib.util
import itertools
import random
import sys

import testtools

from tests import pages

_spec = importlib.util.spec_from_file_location(
    'tune_benchmark', pages.ROOT / 'benchmarks' / 'tune.py')
tune = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = tune
_spec.loader.exec_module(tune)


class TestWorlds(testtools.TestCase):
    def test_a_world_without_gains_has_none(self):
        for number in range(20):
            world = tune.make_world(random.Random(number), next(
                iter(tune.NOISE.values())), is_worse=True)
            self.assertEqual(0.0, world.best)

    def test_plans_fit_into_the_hours(self):
        for name, hours in zip(tune.NOISE, itertools.cycle((8, 24))):
            dice = random.Random(0)
            world = tune.make_world(dice, tune.NOISE[name])
            _, trials = tune.carry_out(world, tune.plan(world, hours), dice)
            self.assertLessEqual(trials * tune.TRIAL_MINUTES, hours * 60)

    def test_periodic_the_best_is_recommended(self):
        near = [tune.simulate('boots differ by 0.4 %', 24, number).lost
                <= tune.MATTERS for number in range(12)]
        self.assertGreaterEqual(sum(near), 11)

    def test_the_published_study_is_replayed(self):
        for number in range(3):
            decided, is_refused, trials, _ = tune.replay_s4(6, number)
            self.assertEqual((True, True), (decided, is_refused))
            self.assertLess(trials, 120)
