# SPDX-License-Identifier: Apache-2.0

import testtools

from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.results import aggregation
from tests.builders import runs

LABELS = ('a', 'b')


class TestCombine(testtools.TestCase):
    def test_one_place_is_as_it_was(self):
        alone = runs.bad()
        self.assertIs(alone, aggregation.combine(['a'], [alone]))

    def test_rates_add_up(self):
        combined = aggregation.combine(LABELS, [runs.good(100.0),
                                                runs.good(50.0)])
        self.assertTrue(combined.valid)
        self.assertEqual(outcome.Metric(150.0, 'Mop/s', runs.UP),
                         combined.metrics['mops_total'])
        self.assertEqual({'class': 'C'}, combined.parameters)

    def test_the_slowest_time_is_the_time(self):
        combined = aggregation.combine(LABELS, [
            runs.good(3.0, 'wall_s', runs.DOWN),
            runs.good(5.0, 'wall_s', runs.DOWN)])
        self.assertEqual(5.0, combined.metrics['wall_s'].value)

    def test_each_that_is_invalid_is_named(self):
        combined = aggregation.combine(('a', 'b', 'c'), [
            runs.bad('no end'), runs.good(1.0), runs.bad('lost')])
        self.assertFalse(combined.valid)
        self.assertEqual('a: no end; c: lost', combined.reason)
        self.assertEqual({}, combined.metrics)

    def test_what_one_lacks_is_left_out_and_told(self):
        more = runs.good(1.0)
        more.metrics['other'] = more.metrics['mops_total']
        combined = aggregation.combine(LABELS, [more, runs.good(1.0)])
        self.assertEqual(['mops_total'], list(combined.metrics))
        self.assertEqual(('b: no other',), combined.remarks)


class TestMerge(testtools.TestCase):
    def test_what_differs_is_kept_for_each(self):
        self.assertEqual(
            {'kernel': '6.1', 'host@a': 'x', 'host@b': 'y', 'thp@b': 'on'},
            aggregation.merge(LABELS, [
                {'kernel': '6.1', 'host': 'x'},
                {'kernel': '6.1', 'host': 'y', 'thp': 'on'}]))

    def test_energies_agree_within_their_last_digits(self):
        facts = [{'energy': '-15.84'}, {'energy': '-15.8400001'}]
        self.assertEqual(
            {'energy': '-15.84'}, aggregation.merge(
                LABELS, facts, {'energy': outcome.ParameterType.ENERGY}))
        # The name alone says nothing.
        self.assertEqual({'energy@a': '-15.84', 'energy@b': '-15.8400001'},
                         aggregation.merge(LABELS, facts))

    def test_energies_of_unlike_guests_are_compared_so_too(self):
        def sample(side, energies):
            return runs.sample(side, 0, aggregation.combine(LABELS, [
                outcome.Outcome(True, None, {}, {'energy': energy},
                                kinds={'energy': outcome.ParameterType.ENERGY})
                for energy in energies]))
        run = record.Run('r', 'qe-small', 'mpi', (
            sample(record.Side.NATIVE, ('-15.84', '-31.68')),
            sample(record.Side.GUEST, ('-15.8400001', '-31.6800001'))))
        self.assertIsNone(sample_pairs.explain_invalid(run))


class TestUnique(testtools.TestCase):
    def test_equal_names_are_numbered(self):
        self.assertEqual(('x-1', 'y', 'x-2'),
                         aggregation.unique(['x', 'y', 'x']))
