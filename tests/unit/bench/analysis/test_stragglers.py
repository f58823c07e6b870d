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

import math
import random

import testtools
from scipy import stats as reference

from hpcvirt.bench.analysis import stragglers
from hpcvirt.bench.model import judgement

Word = judgement.Word
LIMIT = math.log(1.05)


def arm(slow, count=30, factor=10.0, seed=0):
    """Logarithms of the times of an arm with some slow runs."""
    dice = random.Random(seed)
    return [dice.gauss(0, 0.02) + (math.log(factor) if number < slow else 0)
            for number in range(count)]


class TestStragglers(testtools.TestCase):
    def found(self, native, guest, **more):
        return stragglers.find(arm(native, seed=1, **more),
                               arm(guest, seed=2, **more))

    def test_they_are_counted_in_both_arms(self):
        for native, guest in ((0, 0), (0, 3), (2, 1)):
            found = self.found(native, guest)
            self.assertEqual((native, guest), (found.native, found.guest))

    def test_ordinary_noise_has_none(self):
        for seed in range(50):
            dice = random.Random(seed)
            found = stragglers.find([dice.gauss(0, 0.1) for _ in range(40)],
                                    [dice.gauss(0, 0.1) for _ in range(40)])
            self.assertEqual((0, 0), (found.native, found.guest))

    def test_the_mean_counts_them_in_full(self):
        found = self.found(0, 3)
        self.assertAlmostEqual(math.log((27 + 3 * 10) / 30), found.mean_loss,
                               delta=0.02)

    def test_the_chance_is_that_of_fishers_test(self):
        for native, guest in ((0, 1), (0, 9), (2, 5), (3, 3)):
            expected = reference.fisher_exact(
                [[guest, 30 - guest], [native, 30 - native]],
                alternative='greater').pvalue
            self.assertAlmostEqual(expected, self.found(native, guest).p)

    def test_a_guest_passes_that_has_no_more_than_native(self):
        for native, guest in ((0, 0), (1, 1), (3, 1), (1, 2)):
            self.assertEqual(Word.PASS,
                             self.found(native, guest).word(LIMIT))

    def test_a_guest_with_any_is_held_up_if_native_has_none(self):
        self.assertEqual(Word.INCONCLUSIVE, self.found(0, 1).word(LIMIT))

    def test_a_guest_with_many_fails(self):
        self.assertEqual(Word.FAIL, self.found(0, 12).word(LIMIT))

    def test_what_the_bound_allows_passes(self):
        slight = self.found(0, 1, factor=1.3)
        self.assertEqual((0, 1), (slight.native, slight.guest))
        self.assertEqual(Word.PASS, slight.word(LIMIT))
        self.assertEqual(Word.PASS, self.found(0, 12).word(math.log(10)))

    def test_a_guest_as_good_as_native_hardly_ever_fails(self):
        dice = random.Random(5)
        words = []
        for _ in range(2000):
            arms = [[dice.gauss(0, 0.02)
                     + (math.log(3) if dice.random() < 0.1 else 0)
                     for _ in range(30)] for _ in range(2)]
            words.append(stragglers.find(*arms).word(LIMIT))
        self.assertLessEqual(words.count(Word.FAIL) / len(words),
                             stragglers.ALPHA + 0.003)
