# SPDX-License-Identifier: Apache-2.0

import dataclasses

import testtools

from hpcvirt import exception
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from tests.builders import runs


class TestInvalid(testtools.TestCase):
    def test_a_run_of_good_samples_is_valid(self):
        self.assertIsNone(sample_pairs.explain_invalid(runs.run([1, 2],
                                                                [3, 4])))
        self.assertIsNone(sample_pairs.explain_invalid(runs.run([], [])))

    def test_the_first_failed_sample_is_named(self):
        why = sample_pairs.explain_invalid(runs.run([1, runs.bad('no end')],
                                                    [3, 4]))
        self.assertEqual('1 of 4 samples failed their own check; the first, '
                         'native pair 1: no end', why)

    def test_another_parameter_is_another_run(self):
        for parameters in ({'class': 'B'}, {'class': 'C', 'ranks': '4'},
                           {'ranks': '4'}):
            guest = [runs.good(3), runs.good(4, **parameters)]
            why = sample_pairs.explain_invalid(runs.run([1, 2], guest))
            self.assertRegex(why, '^not the same run: (class|ranks) is .* in '
                             'native pair 0 and .* in guest pair 1$')

    def differ(self, kind, native, guest, name='energy'):
        kinds = {} if kind is None else {'energy': kind}
        sides = [dataclasses.replace(runs.good(1.0, **{name: text}),
                                     kinds=kinds)
                 for text in (native, guest)]
        run = runs.run(*[[side] for side in sides])
        return sample_pairs.explain_invalid(run) is not None

    def test_energies_may_differ_in_the_last_digits(self):
        energy = outcome.ParameterType.ENERGY
        self.assertFalse(self.differ(energy, '-102.032495', '-102.032501'))
        self.assertTrue(self.differ(energy, '-102.032495', '-102.13'))
        self.assertTrue(self.differ(energy, '-102.032495', 'none'))

    def test_energies_of_one_guest_may_as_well(self):
        self.assertFalse(self.differ(outcome.ParameterType.ENERGY, '-1.0',
                                     '-1.00', 'energy@guest-1'))

    def test_a_parameter_of_no_kind_is_compared_as_text(self):
        self.assertTrue(self.differ(None, '-102.032495', '-102.032501'))


class TestMetrics(testtools.TestCase):
    def test_only_metrics_of_all_samples_count_in_the_order_of_the_first(self):
        def sample(*names):
            return runs.figures(dict.fromkeys(names, 1.0), 's', runs.DOWN)
        run = runs.run([sample('b', 'a', 'c')], [sample('a', 'b')])
        self.assertEqual(('b', 'a'), sample_pairs.metrics(run))

    def test_a_run_without_samples_has_none(self):
        self.assertEqual((), sample_pairs.metrics(runs.run([], [])))


class TestValues(testtools.TestCase):
    def values(self, *sides, **more):
        return sample_pairs.values(runs.run(*sides, **more), 'mops_total')

    def test_complete_pairs_within_the_plan_count(self):
        self.assertEqual(
            sample_pairs.MetricValues((1, 2), (5, 6), (0, 1)),
            self.values([1, 2, 3, 4], [5, 6, 7], planned_pairs=2))
        self.assertEqual((0, 1, 2), self.values([1, 2, 3, 4], [5, 6, 7]).pairs)

    def test_unpaired_arms_may_have_different_lengths(self):
        self.assertEqual(
            sample_pairs.MetricValues((1, 2, 3), (5,), ()),
            self.values([1, 2, 3], [5], purpose=record.Purpose.UNPAIRED))

    def test_two_samples_of_one_pair_are_an_error(self):
        run = runs.run([1], [2])
        twice = dataclasses.replace(run, samples=run.samples * 2)
        self.assertRaises(exception.InvalidInput, sample_pairs.values, twice,
                          'mops_total')


class TestTooFew(testtools.TestCase):
    def too_few(self, native, guest, **more):
        run = runs.run([1.0] * native, [1.0] * guest, **more)
        return sample_pairs.explain_too_few(run,
                                            sample_pairs.values(run,
                                                                'mops_total'))

    def test_five_planned_pairs_are_enough(self):
        self.assertIsNone(self.too_few(5, 5))
        self.assertEqual('4 pairs, at least 5 are needed', self.too_few(5, 4))

    def test_all_planned_pairs_are_needed(self):
        self.assertEqual('only 8 of the 10 planned pairs exist',
                         self.too_few(8, 9, planned_pairs=10))

    def test_each_unpaired_arm_needs_five_samples(self):
        unpaired = record.Purpose.UNPAIRED
        self.assertIsNone(self.too_few(9, 5, purpose=unpaired))
        self.assertEqual('4 samples on a side, at least 5 are needed',
                         self.too_few(9, 4, purpose=unpaired))
