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

"""How many pairs decide, against what they decide."""

import dataclasses
import random

import testtools

from hpcvirt.bench.analysis import pairs_needed
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from tests.unit.bench import runs

Word = judgement.Word
NOISE = 0.03


def simulated(pairs, ratio, seed, **more):
    """A run of a simulated guest."""
    dice = random.Random(seed)
    native = [100 * dice.lognormvariate(0, NOISE) for _ in range(pairs)]
    guest = [100 * ratio * dice.lognormvariate(0, NOISE)
             for _ in range(pairs)]
    return runs.run(native, guest, 0.95, **more)


def judge(pairs, ratio, seed):
    return verdict.judge([simulated(pairs, ratio, seed)]).judgements[0]


#: A run by itself, and one whose evidence a further run continues.
ALONE = simulated(10, 0.95, 1)
KNOWN = dataclasses.replace(ALONE, subject='s')


class TestEstimate(testtools.TestCase):
    def figure(self, ratio, low, high, pairs=10, limit=0.95, **more):
        return dataclasses.replace(
            judge(10, 0.95, 1), pairs=pairs, limit=limit, tail=None,
            interval=judgement.Interval(ratio, low, high), **more)

    def test_the_pairs_that_it_asks_for_decide_about_4_times_of_5(self):
        # What 10 pairs show on average for a guest that loses 2 % and 8 %.
        for ratio, word in ((0.98, Word.PASS), (0.92, Word.FAIL)):
            half = NOISE * 2 ** 0.5 / 10 ** 0.5 * 1.83
            pairs = pairs_needed.estimate(self.figure(
                ratio, ratio * (1 - half), ratio * (1 + half)), ALONE, 1)
            decided = sum(judge(pairs, ratio, seed).word is word
                          for seed in range(100))
            self.assertTrue(70 <= decided <= 97, (pairs, decided))

    def test_so_do_pairs_that_a_further_run_adds(self):
        half = NOISE * 2 ** 0.5 / 10 ** 0.5 * 1.83
        pairs = pairs_needed.estimate(self.figure(
            0.98, 0.98 * (1 - half), 0.98 * (1 + half)), KNOWN, 1)
        decided = 0
        for seed in range(100):
            first = simulated(10, 0.98, 1000 + seed)
            run = simulated(pairs, 0.98, seed, earlier=(record.Attempt(
                'first', '', 10, first.samples),))
            judged, = verdict.judge([run]).judgements
            decided += judged.word is Word.PASS
        self.assertTrue(70 <= decided <= 99, (pairs, decided))

    def test_later_attempts_need_more(self):
        figure = self.figure(0.97, 0.94, 1.0)
        earlier = dataclasses.replace(figure, earlier=(
            Word.INCONCLUSIVE,) * 3)
        self.assertGreater(pairs_needed.estimate(earlier, KNOWN, 1),
                           pairs_needed.estimate(figure, KNOWN, 1))

    def test_more_noise_and_more_figures_need_more(self):
        little = pairs_needed.estimate(self.figure(0.97, 0.94, 1.0), ALONE, 1)
        self.assertGreater(pairs_needed.estimate(
            self.figure(0.97, 0.93, 1.01), ALONE, 1), little)
        self.assertGreater(pairs_needed.estimate(
            self.figure(0.97, 0.94, 1.0), ALONE, 20), little)

    def test_it_is_more_than_were_measured(self):
        for pairs in (6, 10, 13):
            self.assertGreater(pairs_needed.estimate(
                self.figure(0.999, 0.96, 1.0, pairs), ALONE, 1), pairs)

    def test_stragglers_need_many(self):
        tail = judgement.Tail(Word.INCONCLUSIVE, 0, 1, 0.9)
        figure = dataclasses.replace(self.figure(0.999, 0.96, 1.0), tail=tail)
        self.assertEqual(60, pairs_needed.estimate(figure, ALONE, 1))
        self.assertEqual(50, pairs_needed.estimate(figure, KNOWN, 1))

    def test_a_guest_at_its_bound_is_never_decided(self):
        for ratio in (0.95, 0.951):
            self.assertIsNone(pairs_needed.estimate(
                self.figure(ratio, 0.9, 1.0), ALONE, 1))
