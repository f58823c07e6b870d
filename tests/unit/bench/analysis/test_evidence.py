# SPDX-License-Identifier: Apache-2.0

import dataclasses
import math
import random

import testtools

from hpcvirt.bench.analysis import evidence
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from tests.builders import runs

INVALID = judgement.VerdictResult.INVALID


def of_two_levels(dice, count, deviation=0.002):
    """Times with four digits; 30 % of the runs have no turbo."""
    return [float(f'{3 * math.exp((dice.random() < 0.3) * 0.1 + value):.4g}')
            for value in (dice.gauss(0, deviation) for _ in range(count))]


def with_outputs(run, make_digest):
    """Give each sample an output and a short message."""
    return dataclasses.replace(run, samples=tuple(
        dataclasses.replace(sample, outputs=(
            record.RawOutput('stdout', 'o', make_digest(sample), 5000),
            record.RawOutput('stderr', 'e', 'empty', 0)))
        for sample in run.samples))


class TestCopies(testtools.TestCase):

    def is_invalid(self, run):
        found = verdict.judge([run])
        self.assertEqual('copies of outputs' in (found.reason or ''),
                         found.result is INVALID)
        return found.result is INVALID

    def rate(self, make, trials=60):
        dice = random.Random('copies')
        return sum(self.is_invalid(make(dice))
                   for _ in range(trials)) / trials

    def test_honest_figures_of_two_levels_are_no_copies(self):
        for pairs in (10, 20, 40):
            self.assertLessEqual(self.rate(lambda dice, count=pairs: runs.run(
                of_two_levels(dice, count), of_two_levels(dice, count), 1.05,
                'wall_s', runs.DOWN)), 0.05)

    def test_rates_of_a_coarse_clock_are_no_copies(self):
        def rates(dice, count):
            """Runs of two seconds on a clock of 10 ms, with six decimals."""
            return [round(200 / round(200 * math.exp(dice.gauss(0, 0.008)), 0),
                          6) for _ in range(count)]
        for pairs in (10, 30):
            self.assertLessEqual(self.rate(lambda dice, count=pairs: runs.run(
                rates(dice, count), rates(dice, count))), 0.05)

    def test_copies_of_five_rates_are_found(self):
        def make(dice):
            outputs = [round(100 * math.exp(dice.gauss(0, 0.01)), 6)
                       for _ in range(5)]
            return runs.run([round(100 * math.exp(dice.gauss(0, 0.01)), 6)
                             for _ in range(20)],
                            [dice.choice(outputs) for _ in range(20)])
        self.assertGreater(self.rate(make), 0.95)

    def test_copies_of_three_outputs_of_two_levels_are_found(self):
        def make(dice):
            outputs = of_two_levels(dice, 3, 0.01)
            return runs.run(of_two_levels(dice, 20, 0.01),
                            [dice.choice(outputs) for _ in range(20)], 1.05,
                            'wall_s', runs.DOWN)
        self.assertGreater(self.rate(make), 0.7)

    def test_equal_figures_are_copies_only_if_the_outputs_are_equal(self):
        run = runs.run([97.31 + 0.13 * number for number in range(10)],
                       [97.31, 97.44] * 5)
        self.assertTrue(self.is_invalid(with_outputs(
            run, lambda sample: str(sample.outcome))))
        self.assertFalse(self.is_invalid(with_outputs(
            run, lambda sample: str(sample.position))))

    def test_long_outputs_that_are_equal_are_copies_of_near_figures_too(self):
        run = runs.run([97.31 + 0.13 * number for number in range(20)],
                       [97.31, 97.33, 98.21, 99.4, 99.42] * 4)
        self.assertFalse(self.is_invalid(run))
        self.assertTrue(self.is_invalid(with_outputs(
            run, lambda sample: str(sample.outcome))))

    def test_several_equal_figures_are_copies_in_whatever_output(self):
        def measured(first, second):
            return runs.figures({'wall_s': first, 'cpu_s': second}, 's',
                                runs.DOWN)
        run = runs.run(
            [measured(97.317 + 0.13 * number, 181.233 + number)
             for number in range(10)],
            [measured(97.317, 181.233), measured(98.261, 181.917)] * 5, 1.05,
            'wall_s')
        self.assertTrue(self.is_invalid(with_outputs(
            run, lambda sample: str(sample.position))))


def noisy(seed, count=10, deviation=0.01, base=0.2, digits=None):
    dice = random.Random(seed)
    values = [base * math.exp(dice.gauss(0, deviation)) for _ in range(count)]
    return values if digits is None else [round(value, digits)
                                          for value in values]


def copies(native, guest):
    run = runs.run(native, guest)
    return evidence.copies(run, 'mops_total', sample_pairs.values(
        run, 'mops_total'))


class TestFindCopies(testtools.TestCase):
    def test_measurements_are_no_copies(self):
        self.assert_are_no_copies(range(30))

    def test_periodic_many_measurements_are_no_copies(self):
        self.assert_are_no_copies(range(30, 1000))

    def assert_are_no_copies(self, seeds):
        for seed in seeds:
            for count, digits in ((5, None), (10, 4), (40, 3), (40, 2)):
                for deviation in (0.01, 0.1):
                    sides = [noisy(2 * seed + side, count, deviation,
                                   digits=digits) for side in (0, 1)]
                    self.assertIsNone(copies(*sides))

    def test_the_same_figures_in_both_arms_are(self):
        for digits in (None, 4):
            values = noisy(1, digits=digits)
            self.assertIn('both sides', copies(values, values))

    def test_a_few_outputs_that_stand_for_many_are(self):
        for different, count in ((1, 5), (1, 40), (2, 10), (4, 40), (5, 20)):
            values = noisy(3, different)
            copied = (values * count)[:count]
            for sides in ((copied, noisy(4, count)),
                          (noisy(4, count), copied)):
                self.assertIn(f'{count} ', copies(*sides))

    def test_equal_figures_of_few_digits_are_not(self):
        self.assertIsNone(copies([0.23] * 10, [0.24] * 10))


class TestStep(testtools.TestCase):
    def test_figures_of_a_fine_clock_have_none(self):
        for deviation in (0.001, 0.1):
            self.assertEqual(0, evidence.step(
                noisy(1, deviation=deviation),
                noisy(2, deviation=deviation)))

    def test_figures_that_vary_less_than_their_last_digit_have_one(self):
        sides = [noisy(seed, deviation=0.001, base=0.21, digits=2)
                 for seed in (1, 2)]
        self.assertAlmostEqual(0.0465, evidence.step(*sides), places=3)

    def test_rounding_averages_out_where_figures_vary_by_more(self):
        sides = [noisy(seed, 40, deviation=0.2, digits=2)
                 for seed in (1, 2)]
        self.assertLess(len(set(sides[0])), 30)
        self.assertEqual(0, evidence.step(*sides))

    def test_rates_of_a_coarse_clock_have_the_step_of_the_clock(self):
        sides = [[1e9 / 3 / value for value in noisy(
            seed, deviation=0.02, digits=2)] for seed in (1, 2)]
        self.assertTrue(all(len(set(side)) < 6 for side in sides))
        self.assertAlmostEqual(0.05, evidence.step(*sides), delta=0.005)
