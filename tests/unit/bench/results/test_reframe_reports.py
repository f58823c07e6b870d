# SPDX-License-Identifier: Apache-2.0

import json
import pathlib

import hypothesis
import testtools
from hypothesis import strategies

from hpcvirt import exception
from hpcvirt.bench.model import outcome
from hpcvirt.bench.results import reframe_reports

REPORTS = pathlib.Path(__file__).parents[3] / 'data' / 'bench' / 'reframe'
UP, DOWN = outcome.Direction.UP, outcome.Direction.DOWN
TESTS = {('reframe:MemoryCopy %block=1M', 'builtin'),
         ('reframe:MemoryCopy %block=4M', 'builtin')}


def load(name):
    return json.loads((REPORTS / f'{name}.json').read_text())


def read(*names):
    return reframe_reports.read((load(name), name) for name in names)


class TestRead(testtools.TestCase):
    def test_the_figures_are_those_that_dd_printed(self):
        samples = read('4.10.4')
        # The test that measures nothing has no sample.
        self.assertEqual(TESTS, set(samples))
        (found, launch), = samples['reframe:MemoryCopy %block=4M', 'builtin']
        self.assertEqual(load('4.10.4')['session_info']['uuid'], launch)
        self.assertTrue(found.valid)
        self.assertEqual(outcome.Metric(19.2, 'GB/s', UP),
                         found.metrics['rate'])
        self.assertEqual(('s', DOWN), (found.metrics['elapsed'].unit,
                                       found.metrics['elapsed'].direction))
        # 838860800 bytes / the elapsed time is the rate that dd rounds.
        self.assertAlmostEqual(
            19.2, 0.8388608 / found.metrics['elapsed'].value, delta=0.1)
        # Bytes may be good or bad.
        self.assertNotIn('size', found.metrics)
        self.assertIn('size (B) is left out', found.remarks[0])

    def test_a_missed_reference_is_a_figure_all_the_same(self):
        for (found, _), in read('4.10.4-slow').values():
            self.assertTrue(found.valid)
            self.assertIn(found.metrics['rate'].value, (20.0, 14.9))

    def test_a_test_that_failed_is_an_invalid_sample(self):
        samples = read('4.10.4-bad')
        self.assertEqual(TESTS, set(samples))
        for (found, _), in samples.values():
            self.assertFalse(found.valid)
            self.assertIn("in sanity: sanity error: pattern 'nothing' not "
                          'found', found.reason)

    def test_a_test_that_was_skipped_is_no_sample(self):
        self.assertEqual({}, read('4.10.4-skip'))

    def test_repetitions_are_samples_of_one_test(self):
        samples = read('4.10.4-repeat')
        self.assertEqual(TESTS, set(samples))
        self.assertEqual([2, 2], [*map(len, samples.values())])

    def test_reports_are_told_apart_and_each_counts_once(self):
        names = ('4.10.4', '4.10.4-slow', '4.10.4-bad', '4.10.4')
        self.assertEqual(
            [load(name)['session_info']['uuid'] for name in names[1:]],
            [launch for _, launch in read(*names)[min(TESTS)]])

    def test_samples_of_several_partitions_are_refused(self):
        other = load('4.10.4-slow')
        other['runs'][0]['testcases'][0]['partition'] = 'other'
        self.assertRaisesRegex(
            exception.InvalidInput, 'b: reframe:MemoryCopy %block=1M ran on '
            'generic:other, and on generic:default before',
            reframe_reports.read, [(load('4.10.4'), 'a'), (other, 'b')])

    def directions(self, unit, lower=None, upper=None):
        report = load('4.10.4')
        case = report['runs'][0]['testcases'][0]
        case['perfvalues'] = {'a:b:x': [5.0, 1, lower, upper, unit, 'pass']}
        (found, _), = reframe_reports.read([(report, 'r')])[min(TESTS)]
        return (found.metrics['x'].direction if found.valid
                else found.reason)

    def test_the_unit_says_which_direction_is_better(self):
        for unit in ('GB/s', 'MB/sec', 'Gflop/s', 'GFLOPS', 'it/s', 'ns/day',
                     'Mbps', 'iterations/second', 'GUPS', 'steps / s'):
            self.assertEqual(UP, self.directions(unit), unit)
        for unit in ('s', 'us', 'µs', 'ms', 'ns', 'seconds', 'sec', 'min', 'h',
                     's/step', 'ms/iteration'):
            self.assertEqual(DOWN, self.directions(unit), unit)
        for unit in ('%', 'W', '', None, 'B', 'x'):
            self.assertIn('whether more is better', self.directions(unit))

    def test_a_reference_with_one_limit_says_so_before_the_unit(self):
        self.assertEqual(UP, self.directions('W', lower=-0.1))
        self.assertEqual(DOWN, self.directions('W', upper=0.1))
        self.assertEqual(DOWN, self.directions('GB/s', upper=0.1))
        self.assertIn('whether', self.directions('W', -0.1, 0.1))

    def test_a_figure_that_is_no_measurement_is_invalid(self):
        for value in (0, -1, '5', True, [], 1e-300):
            report = load('4.10.4')
            report['runs'][0]['testcases'][0]['perfvalues'][
                'generic:default:rate'][0] = value
            (found, _), = reframe_reports.read([(report, 'r')])[min(TESTS)]
            self.assertFalse(found.valid)
            self.assertIn('rate is', found.reason)

    def test_other_documents_and_versions_are_refused(self):
        older, newer = load('4.10.4'), load('4.10.4')
        older['session_info']['data_version'] = '3.1'
        newer['session_info']['data_version'] = '5.0'
        for document in ({}, [], None, {'session_info': 1, 'runs': []}, older,
                         newer):
            exc = self.assertRaises(exception.InvalidInput,
                                    reframe_reports.read, [(document, 'r')])
            self.assertIn('r: data_version is', str(exc))

    @hypothesis.settings(max_examples=150, deadline=None)
    @hypothesis.given(strategies.data())
    def test_damage_is_refused_and_never_a_crash(self, data):
        document = load(data.draw(strategies.sampled_from(
            ('4.10.4', '4.10.4-bad'))))
        place, holder, key = document, None, None
        for _ in range(data.draw(strategies.integers(1, 7))):
            keys = (list(place) if isinstance(place, dict)
                    else range(len(place)) if isinstance(place, list) else [])
            if not keys:
                break
            holder, key = place, data.draw(strategies.sampled_from(keys))
            place = holder[key]
        if holder is not None:
            holder[key] = data.draw(strategies.sampled_from(
                (None, 7, 'x', [], {}, [None], True, float('inf'), '\ud800')))
        try:
            for samples in reframe_reports.read([(document, 'r')]).values():
                for found, _ in samples:
                    for metric in found.metrics.values():
                        self.assertGreater(metric.value, 0)
        except exception.InvalidInput as exc:
            self.assertNotIn('\n', str(exc))
