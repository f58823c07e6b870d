# SPDX-License-Identifier: Apache-2.0

import math
import random

import testtools
from scipy import stats as reference

from hpcvirt.bench.analysis import stragglers
from hpcvirt.bench.model import judgement

Word = judgement.VerdictResult
LIMIT = math.log(1.05)


def side(slow, count=30, factor=10.0, seed=0):
    """Logarithms of the times of a side with some slow runs."""
    dice = random.Random(seed)
    return [dice.gauss(0, 0.02) + (math.log(factor) if number < slow else 0)
            for number in range(count)]


class TestStragglers(testtools.TestCase):
    def found(self, native, guest, **more):
        return stragglers.find(side(native, seed=1, **more),
                               side(guest, seed=2, **more))

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
            self.assertEqual(Word.PASS, self.found(native, guest).word(LIMIT))

    def test_a_guest_with_any_is_held_up_if_native_has_none(self):
        self.assertEqual(Word.INCONCLUSIVE, self.found(0, 1).word(LIMIT))

    def test_a_guest_with_many_fails(self):
        self.assertEqual(Word.FAIL, self.found(0, 12).word(LIMIT))

    def test_what_the_bound_allows_passes(self):
        # Up to 4.6 % of the runs may be as slow as the one of 100.
        slight = self.found(0, 1, factor=1.3, count=100)
        self.assertEqual((0, 1), (slight.native, slight.guest))
        self.assertEqual(Word.PASS, slight.word(LIMIT))
        self.assertEqual(Word.INCONCLUSIVE,
                         self.found(0, 1, factor=1.5).word(LIMIT))
        self.assertEqual(Word.PASS, self.found(0, 12).word(math.log(10)))

    def test_what_native_has_excuses_no_longer_ones(self):
        native, guest = side(1, 40, 2.0, 1), side(1, 40, 10.0, 2)
        found = stragglers.find(native, guest)
        self.assertEqual((1, 1, True),
                         (found.native, found.guest, found.is_longer))
        self.assertEqual(Word.INCONCLUSIVE, found.word(LIMIT))
        self.assertEqual(Word.PASS, stragglers.find(guest, native).word(LIMIT))

    def test_longer_ones_fail_by_the_chance_that_all_are_of_the_guest(self):
        found = stragglers.find(side(12, 40, 2.0, 1), side(12, 40, 10.0, 2))
        self.assertAlmostEqual(math.comb(40, 12) / math.comb(80, 12),
                               found.p_length)
        self.assertGreater(found.p, 0.5)
        self.assertEqual(Word.FAIL, found.word(LIMIT))

    def test_a_failed_run_is_a_straggler_of_any_length(self):
        found = stragglers.find(side(0, seed=1), side(0, seed=2), (0, 1))
        self.assertEqual((0, 1, (30, 31), math.inf), (
            found.native, found.guest, found.runs, found.mean_loss))
        self.assertEqual(Word.INCONCLUSIVE, found.word(math.log(100)))
        both = stragglers.find(side(0, seed=1), side(0, seed=2), (1, 1))
        self.assertEqual(Word.PASS, both.word(LIMIT))

    def test_among_many_figures_each_has_a_part_of_the_errors(self):
        found = self.found(0, 12)
        self.assertEqual(Word.INCONCLUSIVE,
                         found.word(LIMIT, together=[found] * 1000))

    def test_among_many_figures_native_may_have_them_in_another_one(self):
        # Each figure has a straggler in one side, as chance has it.
        guest, native = self.found(0, 1), self.found(1, 0)
        self.assertEqual(Word.INCONCLUSIVE, guest.word(LIMIT))
        self.assertEqual(Word.INCONCLUSIVE,
                         guest.word(LIMIT, together=[guest] * 23))
        self.assertEqual(Word.PASS, guest.word(
            LIMIT, together=[*[guest] * 11, *[native] * 12]))
        hung = stragglers.find(side(0, seed=1), side(0, seed=2), (0, 1))
        self.assertEqual(Word.INCONCLUSIVE, hung.word(
            LIMIT, together=[hung, *[native] * 22]))

    def test_what_tail_is_excluded(self):
        for slow, count in ((0, 10), (0, 60), (2, 30)):
            found = stragglers.find(side(0, count, seed=1),
                                    side(slow, count, seed=2))
            self.assertAlmostEqual(
                reference.beta.ppf(0.95, slow + 1, count - slow), found.most)

    def test_a_guest_as_good_as_native_hardly_ever_fails(self):
        dice = random.Random(5)
        words = []
        for _ in range(2000):
            sides = [[dice.gauss(0, 0.02)
                     + (math.log(3) if dice.random() < 0.1 else 0)
                     for _ in range(30)] for _ in range(2)]
            words.append(stragglers.find(*sides).word(LIMIT))
        self.assertLessEqual(words.count(Word.FAIL) / len(words),
                             stragglers.ALPHA + 0.003)


class FailedRunsTest(testtools.TestCase):
    def test_failed_runs_of_both_sides_are_runs(self):
        usual = [0.001 * (-1) ** number for number in range(10)]
        found = stragglers.find(usual, usual, (2, 1))
        self.assertEqual((12, 11), found.runs)
        self.assertEqual((2, 1), (found.native, found.guest))
        # The mean time of a guest is known if it fails less than native.
        self.assertAlmostEqual(0.0, found.mean_loss)
        self.assertEqual(math.inf,
                         stragglers.find(usual, usual, (1, 2)).mean_loss)
