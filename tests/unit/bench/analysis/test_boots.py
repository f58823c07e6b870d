# SPDX-License-Identifier: Apache-2.0

import dataclasses
import math
import statistics

import testtools

from hpcvirt.bench.analysis import boots
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from tests.builders import runs


def exact(within, between):
    """Three boots of two losses with these variances between and within."""
    means = statistics.NormalDist(0, math.sqrt(between + within / 2))
    spread = means.stdev
    half = math.sqrt(within / 2)
    return [(mean - half, mean + half) for mean in (-spread, 0, spread)]


def piloted(pairs, levels=(0, 0, 0), noise=0.01, relaunch_s=30.0, after=0,
            **more):
    """A run after its pilot; a run of the program takes 2 s."""
    samples = []
    for boot, level in enumerate(levels):
        samples.append(record.Sample(
            record.Side.GUEST, boot, len(samples), runs.good(1), warm_up=True,
            elapsed_s=2.0, environment={boots.RELAUNCH_S: str(relaunch_s)}))
        for pair in (2 * boot, 2 * boot + 1):
            sign = noise if pair % 2 else -noise
            of_guest = 100 * math.exp(-level + sign)
            for side, value in ((record.Side.NATIVE, 100),
                                (record.Side.GUEST, of_guest)):
                samples.append(record.Sample(
                    side, pair, len(samples), runs.good(value), elapsed_s=2.0))
    samples += [record.Sample(record.Side.NATIVE, 6 + number, 100 + number,
                              runs.good(100), elapsed_s=1000.0)
                for number in range(after)]
    return dataclasses.replace(
        runs.run([], [], planned_pairs=pairs), samples=tuple(samples),
        relaunched=True, **more)


class TestPairsPerBoot(testtools.TestCase):
    def test_no_other_number_is_as_precise_for_the_same_time(self):
        for cost_ratio in (0.3, 2.0, 15.0, 400.0):
            for within, between in ((1.0, 1.0), (9.0, 1.0), (1.0, 25.0)):
                found = boots.pairs_per_boot(exact(within, between),
                                             cost_ratio)

                def variance_of_a_second(count, cost=cost_ratio,
                                         within=within, between=between):
                    return (between + within / count) * (cost + count)
                best = min(range(1, 200), key=variance_of_a_second)
                self.assertIn(found, (best, best + 1))

    def test_the_formula_of_kalibera_and_jones(self):
        for cost_ratio, within, between, count in (
                (16, 1.0, 1.0, 4), (17, 1.0, 1.0, 5), (16, 4.0, 1.0, 8),
                (16, 1.0, 64.0, 1), (0.01, 1.0, 1.0, 1)):
            self.assertEqual(count, boots.pairs_per_boot(
                exact(within * 1.0000001, between), cost_ratio - 1e-5))

    def test_boots_that_do_not_differ_need_no_further_boot(self):
        self.assertEqual(math.inf, boots.pairs_per_boot(
            [(1.0, 2.0), (2.0, 1.0), (1.1, 1.9)], 1))


class TestSizes(testtools.TestCase):
    def test_all_pairs_are_measured_in_at_least_five_boots(self):
        for pairs in range(5, 70):
            for levels in ((0, 0, 0), (0, 0.01, 0.03), (0, 0.1, 0.2)):
                for run in (piloted(pairs, levels), piloted(pairs, ())):
                    sizes = boots.sizes(run)
                    self.assertEqual(pairs, sum(sizes))
                    self.assertGreaterEqual(len(sizes), 5 if pairs < 16 else 8)

    def test_an_unpaired_run_has_as_few_boots_as_decide(self):
        for pairs, expected in ((5, (1,) * 5), (10, (2,) * 5),
                                (40, (2, 2, 2, 5, 6, 6, 5, 6, 6))):
            run = record.Run('r', 'hs06', '', (), planned_pairs=pairs,
                             purpose=record.Purpose.UNPAIRED)
            self.assertEqual(expected, boots.sizes(run))

    def test_boots_that_differ_more_are_more(self):
        found = [len(boots.sizes(piloted(40, levels)))
                 for levels in ((0, 0, 0), (0, 0.02, 0.04), (0, 0.3, 0.6))]
        self.assertEqual([9, 15, 37], found)

    def test_boots_that_take_longer_are_fewer(self):
        found = [len(boots.sizes(piloted(40, (0, 0.02, 0.04),
                                         relaunch_s=seconds)))
                 for seconds in (0.1, 30, 1000)]
        self.assertEqual([37, 15, 9], found)

    def test_what_follows_the_pilot_does_not_change_it(self):
        self.assertEqual(boots.sizes(piloted(40, (0, 0.02, 0.04))),
                         boots.sizes(piloted(40, (0, 0.02, 0.04), after=5)))

    def test_many_figures_need_more_boots(self):
        run = piloted(16)
        several = dataclasses.replace(run, bounds={
            f'{number}': judgement.Bound(0.95) for number in range(23)},
            samples=tuple(dataclasses.replace(
                sample, outcome=dataclasses.replace(sample.outcome, metrics={
                    f'{number}': value for number in range(23)
                    for value in sample.outcome.metrics.values()}))
                for sample in run.samples))
        self.assertEqual([8, 13], [len(boots.sizes(each))
                                   for each in (run, several)])

    def test_few_pairs_have_a_boot_each(self):
        for pairs in (1, 5, 7):
            self.assertEqual((1,) * pairs, boots.sizes(piloted(pairs, ())))

    def test_a_failed_pilot_decides_nothing(self):
        run = piloted(20)
        failed = dataclasses.replace(run.samples[3], outcome=runs.bad())
        self.assertEqual((2, 2, 2) + (1,) * 14, boots.sizes(
            dataclasses.replace(run, samples=(
                *run.samples[:3], failed, *run.samples[4:]))))


class TestFigures(testtools.TestCase):
    def test_boots_suffice_for_the_figures_of_all_runs(self):
        # Boots that do not differ would be as few as possible.
        for figures, count in ((1, 5), (3, 7), (6, 7)):
            self.assertEqual(count, len(boots.sizes(
                piloted(10, planned_figures=figures))))
        self.assertEqual(10, len(boots.sizes(
            piloted(13, planned_figures=23))))
