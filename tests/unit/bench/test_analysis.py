# SPDX-License-Identifier: Apache-2.0

import collections
import dataclasses
import itertools
import math
import random
import statistics
import unittest

import hypothesis
import testtools
from hypothesis import strategies
from scipy import stats as reference

from hpcvirt import exception
from hpcvirt.bench.analysis import attempts
from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.analysis import evidence
from hpcvirt.bench.analysis import figures
from hpcvirt.bench.analysis import interim_analyses
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import signed_rank
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.analysis import stragglers
from hpcvirt.bench.analysis import trends
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from tests.builders import runs

GIVEN = {'time_s': judgement.Bound(2.0)}
CONTEXT = {'pages': 'small', 'nodes': 'one'}


def ratios(given=None, overhead=None, context=None, **run):
    run.setdefault('bounds', {})
    host = run.pop('host', 'n17')
    measured = dataclasses.replace(runs.run([100, 100], [90, 90], **run),
                                   host=host)
    bounded = bounds.set_bounds(
        measured, given or {}, overhead,
        CONTEXT if context is None else context)
    return {name: round(bound.ratio, 4)
            for name, bound in bounded.bounds.items()}


class WithBoundsTest(unittest.TestCase):
    def test_the_definition_bounds_a_run_that_has_no_bounds(self):
        self.assertEqual({'mops_total': round(1 / 1.03, 4)}, ratios())

    def test_the_definition_knows_runs_over_several_nodes(self):
        self.assertNotEqual(ratios(), ratios(
            context={'pages': 'small', 'nodes': 'several'}))

    def test_a_run_knows_the_hosts_that_it_spans(self):
        self.assertEqual({'mops_total': round(1 / 1.17, 4)},
                         ratios(context={}, host='n1, n2'))
        self.assertEqual({'mops_total': round(1 / 1.03, 4)},
                         ratios(context={'nodes': 'one'}, host='n1, n2'))

    def test_what_is_stated_selects_the_bounds_anew(self):
        stored = {'mops_total': judgement.Bound(
            0.5, kind=judgement.BoundKind.TRANSFERRED)}
        self.assertEqual({'mops_total': 0.5}, ratios(
            context={}, bounds=stored))
        self.assertEqual({'mops_total': round(1 / 1.17, 4)}, ratios(
            context={'nodes': 'several'}, bounds=stored))

    def test_bounds_of_the_run_go_before_those_of_the_definition(self):
        self.assertEqual({'mops_total': 0.5}, ratios(
            bounds={'mops_total': judgement.Bound(0.5)}))

    def test_bounds_of_the_user_go_before_those_of_the_run(self):
        self.assertEqual({'time_s': 2.0}, ratios(
            GIVEN, bounds={'mops_total': judgement.Bound(0.5)}))

    def test_an_overhead_follows_the_direction_of_the_metric(self):
        self.assertEqual({'mops_total': round(1 / 1.25, 4)},
                         ratios(overhead='25%'))
        self.assertEqual({'latency_us[8]': 1.25}, ratios(
            overhead='25', benchmark='osu-latency', metric='latency_us[8]',
            direction=outcome.Direction.DOWN))

    def test_an_overhead_is_for_primary_metrics_only(self):
        self.assertEqual({}, ratios(overhead='25', metric='time_s'))

    def test_a_bound_of_the_user_goes_before_the_overhead(self):
        self.assertEqual({'mops_total': 0.8, 'time_s': 2.0},
                         ratios(GIVEN, overhead='25'))

    def test_an_overhead_that_is_no_number_is_refused(self):
        self.assertRaises(exception.InvalidInput, ratios, overhead='much')


HISTORIES = strategies.lists(strategies.floats(-1, 1), max_size=25)


def noisy(levels, deviation=0.02, seed=1):
    dice = random.Random(seed)
    return [level + dice.gauss(0, deviation) for level in levels]


class TestChanges(testtools.TestCase):
    def test_a_steady_figure_does_not_change(self):
        for seed in range(20):
            self.assertEqual((), trends.changes(noisy([0] * 40, seed=seed)))

    def test_a_step_is_found_after_a_few_runs_where_it_is(self):
        histories = [noisy([0] * 15 + [0.2] * 15, seed=seed)
                     for seed in range(20)]
        self.assertEqual({()}, {trends.changes(history[:17])
                                for history in histories})
        soon = [trends.changes(history[:21]) for history in histories]
        self.assertGreater(len([found for found in soon if found]), 5)
        late = [found for history in histories
                for found in trends.changes(history)]
        self.assertGreater(len(late), 17)
        self.assertTrue(all(14 <= found <= 16 for found in late), late)

    def test_each_of_several_steps_is_found(self):
        self.assertEqual((15, 30), trends.changes(
            noisy([0] * 15 + [0.2] * 15 + [0] * 15, seed=2)))

    def test_a_creep_is_found(self):
        for creep, deviation in ((0.005, 0.01), (0.01, 0.02), (0.03, 0.05)):
            history = noisy([creep * run for run in range(40)], deviation)
            self.assertNotEqual((), trends.changes(history))

    def test_a_few_stragglers_are_no_change(self):
        history = noisy([0] * 30)
        for slow in ((29,), (28, 29), (10, 20, 27, 29), (5, 6, 7)):
            self.assertEqual((), trends.changes([
                value + (math.log(3) if run in slow else 0)
                for run, value in enumerate(history)]))

    def test_stragglers_do_not_hide_a_change(self):
        history = noisy([0] * 15 + [0.2] * 12, seed=2)
        history[4] += 1
        history[20] += 1
        self.assertEqual((15,), trends.changes(history))

    def test_figures_without_noise_change_by_a_per_cent(self):
        for step in (0.01, 0.05, 0.5):
            self.assertEqual((10,), trends.changes([0.0] * 10 + [step] * 10))
        self.assertEqual((), trends.changes([0.0] * 40))

    def test_less_than_twice_five_runs_say_nothing(self):
        self.assertEqual((), trends.changes([0.0] * 5 + [1.0] * 4))
        self.assertEqual((5,), trends.changes([0.0] * 5 + [1.0] * 5))

    @hypothesis.settings(deadline=None, max_examples=50)
    @hypothesis.given(HISTORIES)
    def test_a_later_run_does_not_move_a_change(self, history):
        found = [trends.changes(history[:runs])
                 for runs in range(len(history) + 1)]
        for before, after in itertools.pairwise(found):
            self.assertEqual(before, after[:len(before)])

    @hypothesis.settings(deadline=None, max_examples=50)
    @hypothesis.given(HISTORIES)
    def test_better_and_worse_are_alike(self, history):
        self.assertEqual(trends.changes(history),
                         trends.changes([-value for value in history]))


def evidence_noisy(seed, count=10, deviation=0.01, base=0.2, digits=None):
    dice = random.Random(seed)
    values = [base * math.exp(dice.gauss(0, deviation)) for _ in range(count)]
    return values if digits is None else [round(value, digits)
                                          for value in values]


def copies(native, guest):
    run = runs.run(native, guest)
    return evidence.copies(run, 'mops_total', sample_pairs.values(
        run, 'mops_total'))


class TestCopies(testtools.TestCase):
    def test_measurements_are_no_copies(self):
        for seed in range(300):
            for count, digits in ((5, None), (10, 4), (40, 3), (40, 2)):
                for deviation in (0.01, 0.1):
                    sides = [evidence_noisy(2 * seed + side, count, deviation,
                                  digits=digits) for side in (0, 1)]
                    self.assertIsNone(copies(*sides))

    def test_the_same_figures_in_both_arms_are(self):
        for digits in (None, 4):
            values = evidence_noisy(1, digits=digits)
            self.assertIn('both sides', copies(values, values))

    def test_a_few_outputs_that_stand_for_many_are(self):
        for different, count in ((1, 5), (1, 40), (2, 10), (4, 40), (5, 20)):
            values = evidence_noisy(3, different)
            copied = (values * count)[:count]
            for sides in ((copied, evidence_noisy(4, count)),
                          (evidence_noisy(4, count),
                                                     copied)):
                self.assertIn(f'{count} ', copies(*sides))

    def test_equal_figures_of_few_digits_are_not(self):
        self.assertIsNone(copies([0.23] * 10, [0.24] * 10))


class TestStep(testtools.TestCase):
    def test_figures_of_a_fine_clock_have_none(self):
        for deviation in (0.001, 0.1):
            self.assertEqual(0, evidence.step(
                evidence_noisy(1, deviation=deviation),
                evidence_noisy(2, deviation=deviation)))

    def test_figures_that_vary_less_than_their_last_digit_have_one(self):
        sides = [evidence_noisy(seed, deviation=0.001, base=0.21, digits=2)
                for seed in (1, 2)]
        self.assertAlmostEqual(0.0465, evidence.step(*sides), places=3)

    def test_rounding_averages_out_where_figures_vary_by_more(self):
        sides = [evidence_noisy(seed, 40, deviation=0.2, digits=2) for seed
                 in (1, 2)]
        self.assertLess(len(set(sides[0])), 30)
        self.assertEqual(0, evidence.step(*sides))

    def test_rates_of_a_coarse_clock_have_the_step_of_the_clock(self):
        sides = [[1e9 / 3 / value for value in evidence_noisy(
            seed, deviation=0.02, digits=2)] for seed in (1, 2)]
        self.assertTrue(all(len(set(side)) < 6 for side in sides))
        self.assertAlmostEqual(0.05, evidence.step(*sides), delta=0.005)


NATIVE = (100, 101, 99, 100.5, 99.5, 100.2, 99.8, 101.2, 98.8, 100.1)


class TestFigures(testtools.TestCase):
    def figure(self, *sides, machines=(), **more):
        found, = figures.estimate_run(runs.run(*sides, **more), machines)
        return found

    def test_a_figure_has_the_geometric_means_and_their_ratio(self):
        guest = [value * 0.9 for value in NATIVE[::-1]]
        found = self.figure(NATIVE, guest).judgement
        self.assertAlmostEqual(statistics.geometric_mean(NATIVE), found.native)
        self.assertAlmostEqual(found.guest / found.native,
                               found.interval.ratio)
        self.assertAlmostEqual(0.9, found.interval.ratio)
        self.assertLess(found.interval.low, 0.9)
        self.assertGreater(found.interval.high, 0.9)

    def test_the_limit_is_a_loss_for_rates_and_times(self):
        rate = self.figure(NATIVE, NATIVE[::-1], ratio=0.8)
        time = self.figure(NATIVE, NATIVE[::-1], 1.25, 'wall_s', runs.DOWN)
        self.assertAlmostEqual(math.log(1.25), rate.limit)
        self.assertAlmostEqual(math.log(1.25), time.limit)

    def test_what_cannot_be_judged_has_no_estimate(self):
        for word, guest in (
                (judgement.VerdictResult.INVALID, [runs.bad()] * 10),
                (judgement.VerdictResult.INCONCLUSIVE, NATIVE[:4]),
                (judgement.VerdictResult.INCONCLUSIVE,
                 [runs.good(1.0, 'other')] * 10)):
            found = self.figure(NATIVE, guest)
            self.assertIsNone(found.estimate)
            self.assertEqual(word, found.judgement.result)

    def test_a_metric_without_a_bound_is_estimated_but_not_judged(self):
        found = figures.estimate_metric(
            attempts.gather(runs.run(NATIVE, NATIVE[::-1])), 'mops_total',
            None, ())
        self.assertIsNone(found.estimate)
        self.assertIsNone(found.judgement.result)
        self.assertIsNone(found.judgement.reason)
        self.assertAlmostEqual(1.0, found.judgement.interval.ratio)

    def test_only_native_runs_of_the_same_host_describe_the_machine(self):
        for more, matches in (({}, True), ({'benchmark': 'npb-ep'}, False)):
            machine = runs.run(NATIVE, NATIVE[::-1],
                               purpose=record.Purpose.AA, **more)
            found = self.figure(NATIVE, NATIVE[::-1], machines=[machine])
            self.assertEqual(matches, found.machine is not None)


Word = judgement.VerdictResult


def chance_of_any(counts, rank_sums):
    """The chance that any look has at most its rank sum, by enumeration.

    Each loss is of the first look that has it; all orders of the losses by
    size are equally likely, and so are all signs.
    """
    stages = [stage for stage, (count, before)
              in enumerate(zip(counts, (0, *counts), strict=False))
              for _ in range(count - before)]
    found = total = 0
    for order in arrangements(collections.Counter(stages)):
        ranks = [[sum(other <= look for other in order[:place + 1])
                  if stage <= look else 0
                  for place, stage in enumerate(order)]
                 for look in range(len(counts))]
        sums = [subset_sums(each) for each in ranks]
        total += 1 << counts[-1]
        found += sum(any(each <= most for each, most
                         in zip(together, rank_sums, strict=True))
                     for together in zip(*sums, strict=True))
    return found / total


def arrangements(left):
    """All orders of some things of several kinds."""
    if not any(left.values()):
        yield ()
    for kind in [kind for kind, count in left.items() if count]:
        for rest in arrangements(left - collections.Counter([kind])):
            yield (kind, *rest)


def subset_sums(values):
    """The sum of each subset, in one order for all lists of a length."""
    sums = [0]
    for value in values:
        sums += [each + value for each in sums]
    return sums


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
                chance = chance_of_any(counts, [
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


SETTINGS = hypothesis.settings(
    deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
LOSSES = strategies.lists(strategies.floats(-1, 1), min_size=5, max_size=25,
                          unique_by=lambda value: round(abs(value), 6))


class TestSignedRank(testtools.TestCase):
    @SETTINGS
    @hypothesis.given(LOSSES, strategies.floats(-1, 1))
    def test_p_values_are_those_of_the_exact_test(self, losses, limit):
        apart = sorted(abs(value - limit) for value in losses)
        hypothesis.assume(apart[0] > 1e-6 and all(
            after - before > 1e-6
            for before, after in itertools.pairwise(apart)))
        found = signed_rank.estimate(losses)
        shifted = [value - limit for value in losses]
        for way, p in (('less', found.p_beyond(limit)),
                       ('greater', found.p_within(limit))):
            exact = reference.wilcoxon(shifted, alternative=way,
                                       method='exact').pvalue
            self.assertAlmostEqual(exact, p)

    @SETTINGS
    @hypothesis.given(LOSSES, strategies.floats(-1, 1))
    def test_the_p_values_and_the_ends_say_the_same(self, losses, limit):
        found = signed_rank.estimate(losses)
        low, high = found.ends()
        hypothesis.assume(min(abs(high - limit), abs(low - limit)) > 1e-9)
        self.assertEqual(high < limit, found.p_beyond(limit) <= stats.ALPHA)
        self.assertEqual(low > limit, found.p_within(limit) <= stats.ALPHA)

    def test_the_estimate_is_that_of_hodges_and_lehmann(self):
        losses = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8]
        means = [(losses[i] + losses[j]) / 2
                 for i in range(8) for j in range(i, 8)]
        self.assertAlmostEqual(statistics.median(means),
                               signed_rank.estimate(losses).loss)

    def test_the_distribution_is_that_of_all_signs(self):
        for count in (3, 8):
            sums = [sum(ranks) for size in range(count + 1) for ranks
                    in itertools.combinations(range(1, count + 1), size)]
            for rank_sum in range(count * (count + 1) // 2 + 1):
                expected = sum(each <= rank_sum for each in sums) / 2 ** count
                self.assertAlmostEqual(expected, signed_rank._distribution(
                    count)[rank_sum])

    def test_many_pairs_are_judged_as_if_they_were_counted(self):
        for count in (61, 80):
            middle = count * (count + 1) // 4
            for rank_sum in (middle - 400, middle - 200, middle, middle + 300):
                self.assertAlmostEqual(
                    signed_rank._distribution(count)[rank_sum],
                    signed_rank.find_chance(count, rank_sum), delta=1e-3)

    def test_two_rank_sums_are_those_of_all_orders_and_signs(self):
        for first, count in ((5, 7), (6, 8), (7, 8)):
            most, other = (signed_rank.find_critical(each, stats.ALPHA)
                           for each in (first, count))
            for low in range(most + 1):
                for rank_sum in range(other + 1):
                    neither = chance_of_any((first, count), (low, rank_sum))
                    self.assertAlmostEqual(
                        signed_rank.find_chance(first, low)
                        + signed_rank.find_chance(count, rank_sum) - neither,
                        signed_rank.find_both(first, low, count, rank_sum))

    def test_many_losses_are_judged_as_if_both_sums_were_counted(self):
        for first, count in ((20, 41), (30, 45)):
            counted = signed_rank._count_both(first, count)
            for level in (stats.ALPHA, stats.ALPHA / 4):
                low, rank_sum = (signed_rank.find_critical(each, level)
                                 for each in (first, count))
                both = counted[low][rank_sum]
                self.assertAlmostEqual(both, signed_rank.find_both(
                    first, low, count, rank_sum), delta=0.05 * level)

    def test_one_enormous_loss_widens_the_interval_little(self):
        dice = random.Random(1)
        losses = [dice.gauss(0, 0.02) for _ in range(20)]
        calm = signed_rank.estimate(losses).ends()
        disturbed = signed_rank.estimate([*losses[:-1], 3.0]).ends()
        self.assertLess(disturbed[1] - calm[1], 0.01)

    def test_how_far_away_losses_are_is_no_better_evidence(self):
        for count in range(5, 12):
            for loss in (0.06, 3.0):
                found = signed_rank.estimate(
                    [loss + 0.001 * number for number in range(count)])
                self.assertEqual(2.0 ** -count, found.p_within(0.05))

    def test_the_least_number_that_decides(self):
        for count in (1, 2, 3, 23, 200):
            least = signed_rank.find_least(1 / count)
            self.assertLessEqual(count * 2.0 ** -least, stats.ALPHA)
            self.assertGreater(count * 2.0 ** (1 - least), stats.ALPHA)

    def test_too_few_losses_have_no_ends(self):
        self.assertEqual((-math.inf, math.inf), signed_rank.estimate(
            [0.01, 0.02, 0.03, 0.025]).ends())


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

    def test_the_number_of_runs_that_exclude_a_tail(self):
        for part, count in ((0.26, 10), (0.05, 59), (0.01, 299)):
            self.assertEqual(count, stragglers.count_runs(part))

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


UP = outcome.Direction.UP


def run(host, day, value, direction=UP, name='triad_mb_s'):
    figure = outcome.Metric(value, 'MB/s', direction)
    done = outcome.Outcome(True, None, {name: figure})
    return record.Result((record.Run(
        f'{host}-{day}', 'stream', 'openmp', host=host,
        started_at=f'2026-11-{day:02d}T00:00:00+00:00',
        samples=(record.Sample(record.Side.NATIVE, 0, 0, done),)),))


class TimeSeriesTest(unittest.TestCase):
    def series(self, values, **more):
        found, = trends.time_series(
            run('n1', day, value, **more)
            for day, value in enumerate(values, 1))
        return found

    def test_a_sudden_loss_stands_out_when_it_stays(self):
        steady = (100, 101, 99, 100, 101, 99, 100, 100, 101, 99, 100, 99)
        found = self.series((*steady, 80, 81, 79, 80, 80, 81))
        self.assertAlmostEqual(0.25, found.drift)
        self.assertEqual('2026-11-13T00:00:00+00:00', found.changed_at)
        self.assertIsNone(self.series((*steady, 80)).drift)

    def test_a_slow_decline_stands_out(self):
        found = self.series([100 * 0.99 ** day * (1 + 0.01 * (day % 3 - 1))
                             for day in range(25)])
        self.assertGreater(found.drift, 0.08)

    def test_a_gain_is_a_negative_loss(self):
        found = self.series([80] * 10 + [100] * 10)
        self.assertAlmostEqual(-0.2, found.drift)

    def test_a_repaired_host_is_not_named(self):
        found = self.series([100] * 8 + [80] * 8 + [99] * 8)
        self.assertIsNone(found.drift)
        self.assertIsNone(found.changed_at)

    def test_a_change_below_five_per_cent_is_not_named(self):
        self.assertIsNone(self.series([100] * 10 + [97] * 10).drift)

    def test_noise_does_not_stand_out(self):
        self.assertIsNone(self.series((100, 101, 99, 100, 97)).drift)
        self.assertIsNone(self.series((100, 80, 120, 90, 85) * 4).drift)

    def of_hosts(self, values, runs):
        found = trends.time_series(
            run(host, day, value * (1 + 0.01 * (day % 3)))
            for host, value in values.items() for day in range(1, runs + 1))
        return {series.key.host: series.behind for series in found}

    def test_a_slow_host_is_behind_the_others_and_they_are_not(self):
        values = {'n1': 100, 'n2': 101, 'n3': 99, 'n4': 70}
        behind = self.of_hosts(values, 5)
        self.assertAlmostEqual(100 / 70 - 1, behind.pop('n4'), places=3)
        self.assertEqual({None}, set(behind.values()))
        # Each host may have been slow for a moment.
        self.assertEqual({None}, set(self.of_hosts(values, 4).values()))

    def test_hosts_that_are_all_different_are_not_behind(self):
        self.assertEqual({None}, set(self.of_hosts(
            {'n1': 100, 'n2': 90, 'n3': 80, 'n4': 70}, 9).values()))

    def test_two_hosts_are_not_compared(self):
        self.assertEqual({None}, set(self.of_hosts(
            {'n1': 100, 'n2': 50}, 9).values()))

    def test_for_a_time_more_is_worse(self):
        found = self.series([10] * 8 + [12] * 8, name='wall_s',
                            direction=outcome.Direction.DOWN)
        self.assertAlmostEqual(0.2, found.drift)

    def test_two_runs_say_nothing(self):
        found = self.series((100, 10))
        self.assertIsNone(found.drift)
        self.assertEqual((100.0, 10.0), tuple(
            round(value, 6) for value in found.values))

    def test_failed_and_warm_up_samples_are_left_out(self):
        bad = outcome.Outcome(False, 'no')
        sample = record.Sample(record.Side.NATIVE, 0, 0, bad)
        result = record.Result((record.Run('r', 'stream', 'openmp',
                                           (sample,), host='n1'),))
        self.assertEqual((), trends.time_series([result]))
