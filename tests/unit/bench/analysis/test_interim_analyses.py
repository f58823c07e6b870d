# SPDX-License-Identifier: Apache-2.0

import dataclasses
import random

import testtools

from hpcvirt.bench.analysis import interim_analyses
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import signed_rank
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from tests.builders import runs
from tests.unit.bench.analysis import enumeration

Word = judgement.VerdictResult


class TestPlan(testtools.TestCase):
    def test_looks_become_rarer_and_end_with_the_last_pair(self):
        self.assertEqual((10, 16, 25, 40), interim_analyses.plan(40))
        self.assertEqual((7, 10), interim_analyses.plan(10))
        for most in (5, 6):
            self.assertEqual((most,), interim_analyses.plan(most))
        for most in range(5, 200):
            planned = interim_analyses.plan(most)
            self.assertEqual(sorted(set(planned)), list(planned))
            self.assertEqual(most, planned[-1])

    def test_the_first_look_can_decide(self):
        for most in range(8, 100):
            first = interim_analyses.plan(most)[0]
            for count, decides in ((first, True), (first - 1, False)):
                self.assertEqual(decides, any(interim_analyses.find_levels(
                    (count,), (count / most,), stats.ALPHA)))

    def test_the_chance_of_an_error_is_exact_for_all_looks_together(self):
        for counts in ((5, 7), (6, 9), (5, 7, 9), (6, 8, 9)):
            for level in (stats.ALPHA, stats.ALPHA / 3):
                levels = interim_analyses.find_levels(
                    counts, tuple(count / counts[-1] for count in counts),
                    level)
                chance = enumeration.chance_of_any(counts, [
                    signed_rank.find_critical(count, each) if each else -1
                    for count, each in zip(counts, levels, strict=True)])
                self.assertLessEqual(chance, level)
                # No further step of the last look would fit.
                count = counts[-1]
                further = signed_rank.find_critical(count, levels[-1]) + 1
                self.assertGreater(
                    chance + signed_rank.find_chance(count, further)
                    - levels[-1], 0.95 * level)

    def test_more_looks_leave_most_to_the_last_one(self):
        # Divided among the looks, it would be a third.
        looks = interim_analyses.plan(40)
        levels = interim_analyses.find_levels(
            looks, tuple(look / looks[-1] for look in looks),
            stats.ALPHA)
        self.assertGreater(levels[-1], 0.8 * stats.ALPHA)

    def test_a_look_that_cannot_decide_spends_nothing(self):
        self.assertEqual((0.0, 2.0 ** -5), interim_analyses.find_levels(
            (4, 5), (0.8, 1.0), stats.ALPHA))
        # Boots: those of the second look are no more than those of the first.
        for counts in ((3, 4, 7), (3, 3, 7)):
            self.assertEqual(
                (0.0, 0.0, signed_rank.find_chance(7, 3)),
                interim_analyses.find_levels(counts, (0.5, 0.7, 1.0),
                                             stats.ALPHA))
        # Among 23 figures, 9 losses decide nothing.
        self.assertEqual(0.0, interim_analyses.find_levels(
            (9, 40), (0.9, 1.0), stats.ALPHA / 23)[0])

    def test_the_first_pairs_of_all_that_is_known(self):
        values = sample_pairs.MetricValues((1.0, 2.0), (3.0, 4.0), (0, 1),
                                           ('a', 'b'), ())
        self.assertEqual(
            sample_pairs.MetricValues((1.0,), (3.0,), (0,), ('a',), ()),
            interim_analyses.first(values, 1))


class TestSequential(testtools.TestCase):
    def setUp(self):
        super().setUp()
        dice = random.Random(1)
        self.losses = [dice.gauss(0.02, 0.02) for _ in range(20)]
        self.estimates = tuple(signed_rank.estimate(self.losses[:pairs])
                               for pairs in (8, 13, 20))
        self.looks = ((8, 13, 20), (0.4, 0.65, 1.0))
        self.found = interim_analyses.Sequential(self.estimates, *self.looks,
                                                 figures=5)

    def test_a_p_value_is_a_level_at_which_a_look_rejects(self):
        seen = set()
        for step in range(-20, 50):
            limit = step / 400
            p = self.found.p_beyond(limit)
            seen.add(p)
            for count in range(1, 6):
                level = stats.ALPHA / count
                self.assertEqual(p <= level, any(
                    estimate.p_beyond(limit) <= each for estimate, each
                    in zip(self.estimates, interim_analyses.find_levels(
                        *self.looks, level), strict=True)))
        self.assertGreater(len(seen), 2)
        # Ten losses that are all far below the limit have a p-value of their
        # own, for the best of several results.
        self.assertLess(self.found.p_beyond(0.2), stats.ALPHA / 100)

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
            interim_analyses=interim_analyses.plan(40))])

    def test_before_the_first_look_there_is_no_verdict(self):
        found = self.judge(5)
        self.assertEqual(Word.INCONCLUSIVE, found.result)
        self.assertIn('5 pairs, the first verdict is after 10', found.reason)

    def test_between_two_looks_the_last_one_counts(self):
        for pairs, used, count in ((10, 10, 1), (15, 10, 1), (16, 16, 2),
                                   (40, 40, 4)):
            found = self.judge(pairs)
            figure, = found.judgements
            self.assertEqual((Word.PASS, used, count),
                             (found.result, figure.pairs,
                              figure.interim_analyses))
            self.assertIn('at several numbers of pairs', found.method)


NOISE = 0.03


def simulated(pairs, ratio, seed, **more):
    """A run of a simulated guest."""
    dice = random.Random(seed)
    native = [100 * dice.lognormvariate(0, NOISE) for _ in range(pairs)]
    guest = [100 * ratio * dice.lognormvariate(0, NOISE) for _ in range(pairs)]
    return runs.run(native, guest, 0.95, **more)


def judge(pairs, ratio, seed):
    return verdict.judge([simulated(pairs, ratio, seed)]).judgements[0]


#: A run by itself, and one whose evidence a further run continues.
ALONE = simulated(10, 0.95, 1)
KNOWN = dataclasses.replace(ALONE, subject='s')


class TestEstimate(testtools.TestCase):
    """How many pairs decide, against what they decide."""

    def figure(self, ratio, low, high, pairs=10, limit=0.95, **more):
        return dataclasses.replace(
            judge(10, 0.95, 1), pairs=pairs, limit=limit, tail=None,
            interval=judgement.Interval(ratio, low, high), **more)

    def test_the_pairs_that_it_asks_for_decide_about_4_times_of_5(self):
        # What 10 pairs show on average for a guest that loses 2 % and 8 %.
        for ratio, word in ((0.98, Word.PASS), (0.92, Word.FAIL)):
            half = NOISE * 2 ** 0.5 / 10 ** 0.5 * 1.83
            pairs = interim_analyses.estimate_pairs(self.figure(
                ratio, ratio * (1 - half), ratio * (1 + half)), ALONE, 1)
            decided = sum(judge(pairs, ratio, seed).result is word
                          for seed in range(100))
            self.assertTrue(70 <= decided <= 97, (pairs, decided))

    def test_so_do_pairs_that_a_further_run_adds(self):
        half = NOISE * 2 ** 0.5 / 10 ** 0.5 * 1.83
        pairs = interim_analyses.estimate_pairs(self.figure(
            0.98, 0.98 * (1 - half), 0.98 * (1 + half)), KNOWN, 1)
        decided = 0
        for seed in range(100):
            first = simulated(10, 0.98, 1000 + seed)
            run = simulated(pairs, 0.98, seed, earlier=(record.Attempt(
                'first', '', 10, first.samples),))
            judged, = verdict.judge([run]).judgements
            decided += judged.result is Word.PASS
        self.assertTrue(70 <= decided <= 99, (pairs, decided))

    def test_later_attempts_need_more(self):
        figure = self.figure(0.97, 0.94, 1.0)
        earlier = dataclasses.replace(figure, earlier=(Word.INCONCLUSIVE,) * 3)
        self.assertGreater(interim_analyses.estimate_pairs(earlier, KNOWN, 1),
                           interim_analyses.estimate_pairs(figure, KNOWN, 1))

    def test_more_noise_and_more_figures_need_more(self):
        little = interim_analyses.estimate_pairs(self.figure(0.97, 0.94, 1.0),
                                                 ALONE, 1)
        self.assertGreater(interim_analyses.estimate_pairs(
            self.figure(0.97, 0.93, 1.01), ALONE, 1), little)
        self.assertGreater(interim_analyses.estimate_pairs(
            self.figure(0.97, 0.94, 1.0), ALONE, 20), little)

    def test_it_is_more_than_were_measured(self):
        for pairs in (6, 10, 13):
            self.assertGreater(interim_analyses.estimate_pairs(
                self.figure(0.999, 0.96, 1.0, pairs), ALONE, 1), pairs)

    def test_stragglers_need_many(self):
        tail = judgement.Tail(Word.INCONCLUSIVE, 0, 1, 0.9)
        figure = dataclasses.replace(self.figure(0.999, 0.96, 1.0), tail=tail)
        self.assertEqual(60, interim_analyses.estimate_pairs(figure, ALONE, 1))
        self.assertEqual(50, interim_analyses.estimate_pairs(figure, KNOWN, 1))

    def test_a_guest_at_its_bound_is_never_decided(self):
        for ratio in (0.95, 0.951):
            self.assertIsNone(interim_analyses.estimate_pairs(
                self.figure(ratio, 0.9, 1.0), ALONE, 1))
