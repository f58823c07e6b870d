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

import random

import testtools

from hpcvirt.bench.analysis import looks
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import signed_rank
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import judgement
from tests.unit.bench import runs

Word = judgement.Word


class TestPlan(testtools.TestCase):
    def test_looks_become_rarer_and_end_with_the_last_pair(self):
        self.assertEqual((6, 9, 14, 20, 30, 40), looks.plan(40))
        self.assertEqual((6, 9, 10), looks.plan(10))
        for most in (5, 6):
            self.assertEqual((most,), looks.plan(most))
        for most in range(5, 200):
            planned = looks.plan(most)
            self.assertEqual(sorted(set(planned)), list(planned))
            self.assertEqual(most, planned[-1])

    def test_the_shares_add_up_to_the_whole(self):
        for most in (5, 10, 40, 1000):
            shares = looks.shares(looks.plan(most))
            self.assertAlmostEqual(1, sum(shares))
            self.assertGreater(min(shares), 0)

    def test_the_looks_that_were_reached(self):
        self.assertEqual((), looks.reached((6, 9), 5))
        self.assertEqual((6,), looks.reached((6, 9), 8))

    def test_the_first_pairs_of_all_that_is_known(self):
        values = sample_pairs.Values((1.0, 2.0), (3.0, 4.0), (0, 1),
                                     ('a', 'b'), ())
        self.assertEqual(
            sample_pairs.Values((1.0,), (3.0,), (0,), ('a',), ()),
            looks.first(values, 1))


class TestSequential(testtools.TestCase):
    def setUp(self):
        super().setUp()
        dice = random.Random(1)
        self.losses = [dice.gauss(0.02, 0.02) for _ in range(20)]
        self.estimates = tuple(signed_rank.of(self.losses[:pairs])
                               for pairs in (6, 9, 20))
        self.found = looks.Sequential(self.estimates, (0.3, 0.15, 0.55))

    def test_a_p_value_counts_by_its_share(self):
        for limit in (-0.05, 0.0, 0.02, 0.05, 0.2):
            self.assertEqual(
                min(1.0, *(each.p_beyond(limit) / share for each, share in zip(
                    self.estimates, (0.3, 0.15, 0.55), strict=True))),
                self.found.p_beyond(limit))

    def test_the_p_values_and_the_ends_say_the_same(self):
        low, high = self.found.ends()
        for limit in (-0.05, 0.0, 0.01, 0.02, 0.03, 0.04, 0.05, 0.2):
            self.assertEqual(high < limit,
                             self.found.p_beyond(limit) <= stats.ALPHA)
            self.assertEqual(low > limit,
                             self.found.p_within(limit) <= stats.ALPHA)


class TestVerdict(testtools.TestCase):
    NATIVE = tuple(100 + 0.3 * (7 * number % 11) for number in range(40))
    GUEST = tuple(99 + 0.3 * (5 * number % 13) for number in range(40))

    def judge(self, pairs):
        return verdict.judge([runs.run(
            self.NATIVE[:pairs], self.GUEST[:pairs], planned_pairs=40,
            looks=looks.plan(40))])

    def test_before_the_first_look_there_is_no_verdict(self):
        found = self.judge(5)
        self.assertEqual(Word.INCONCLUSIVE, found.word)
        self.assertIn('5 pairs, the first verdict is after 6', found.reason)

    def test_between_two_looks_the_last_one_counts(self):
        for pairs, used, count in ((6, 6, 1), (8, 6, 1), (9, 9, 2),
                                   (40, 40, 6)):
            found = self.judge(pairs)
            figure, = found.judgements
            self.assertEqual((Word.PASS, used, count),
                             (found.word, figure.pairs, figure.looks))
            self.assertIn('at several numbers of pairs', found.method)
