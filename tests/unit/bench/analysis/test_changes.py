# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.


import itertools
import math
import random

import hypothesis
import testtools
from hypothesis import strategies

from hpcvirt.bench.analysis import changes

HISTORIES = strategies.lists(strategies.floats(-1, 1), max_size=25)


def noisy(levels, deviation=0.02, seed=1):
    dice = random.Random(seed)
    return [level + dice.gauss(0, deviation) for level in levels]


class TestChanges(testtools.TestCase):
    def test_a_steady_figure_does_not_change(self):
        for seed in range(20):
            self.assertEqual((), changes.changes(noisy([0] * 40, seed=seed)))

    def test_a_step_is_found_after_a_few_runs_where_it_is(self):
        histories = [noisy([0] * 15 + [0.2] * 15, seed=seed)
                     for seed in range(20)]
        self.assertEqual({()}, {changes.changes(history[:17])
                                for history in histories})
        soon = [changes.changes(history[:21]) for history in histories]
        self.assertGreater(len([found for found in soon if found]), 8)
        late = [found for history in histories
                for found in changes.changes(history)]
        self.assertGreater(len(late), 17)
        self.assertTrue(all(14 <= found <= 16 for found in late), late)

    def test_each_of_several_steps_is_found(self):
        self.assertEqual((15, 30), changes.changes(
            noisy([0] * 15 + [0.2] * 15 + [0] * 15, seed=2)))

    def test_a_creep_is_found(self):
        for creep, deviation in ((0.005, 0.01), (0.01, 0.02), (0.03, 0.05)):
            history = noisy([creep * run for run in range(40)], deviation)
            self.assertNotEqual((), changes.changes(history))

    def test_a_few_stragglers_are_no_change(self):
        history = noisy([0] * 30)
        for slow in ((29,), (28, 29), (10, 20, 27, 29), (5, 6, 7)):
            self.assertEqual((), changes.changes([
                value + (math.log(3) if run in slow else 0)
                for run, value in enumerate(history)]))

    def test_stragglers_do_not_hide_a_change(self):
        history = noisy([0] * 15 + [0.2] * 12, seed=2)
        history[4] += 1
        history[20] += 1
        self.assertEqual((15,), changes.changes(history))

    def test_figures_without_noise_change_by_a_per_cent(self):
        for step in (0.01, 0.05, 0.5):
            self.assertEqual((10,), changes.changes(
                [0.0] * 10 + [step] * 10))
        self.assertEqual((), changes.changes([0.0] * 40))

    def test_less_than_twice_five_runs_say_nothing(self):
        self.assertEqual((), changes.changes([0.0] * 5 + [1.0] * 4))
        self.assertEqual((5,), changes.changes([0.0] * 5 + [1.0] * 5))

    @hypothesis.settings(deadline=None, max_examples=50)
    @hypothesis.given(HISTORIES)
    def test_a_later_run_does_not_move_a_change(self, history):
        found = [changes.changes(history[:runs])
                 for runs in range(len(history) + 1)]
        for before, after in itertools.pairwise(found):
            self.assertEqual(before, after[:len(before)])

    @hypothesis.settings(deadline=None, max_examples=50)
    @hypothesis.given(HISTORIES)
    def test_better_and_worse_are_alike(self, history):
        self.assertEqual(changes.changes(history),
                         changes.changes([-value for value in history]))
