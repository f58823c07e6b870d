# SPDX-License-Identifier: Apache-2.0

import dataclasses
import json

import testtools

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.results import json_format
from tests.builders import refusals


def triad(value):
    return outcome.Outcome(
        valid=True, reason=None,
        metrics={'triad_mb_s': outcome.Metric(
            value, 'MB/s', outcome.Direction.UP)},
        parameters={'size': '2000000'},
        kinds={'size': outcome.ParameterType.WHOLE})


def result(**changes):
    run = record.Run(
        id='a1', benchmark='stream', variant='openmp', shape='1x4',
        samples=(
            record.Sample(record.Side.NATIVE, 0, 0, triad(20000.5)),
            record.Sample(
                record.Side.GUEST, 0, 1, triad(19000), exit_status=0,
                launch=record.Launch.COLD, command=('./stream',),
                environment={'kernel': '6.1'},
                outputs=(record.RawOutput('stdout', 'a1/1/stdout', 'ab', 9),
                         ))),
        bounds={'triad_mb_s': judgement.Bound(0.95, source='site')})
    verdict = judgement.Verdict(
        judgement.VerdictResult.INCONCLUSIVE, 'one pair',
        (judgement.Judgement(
            'stream', 'triad_mb_s', 'MB/s', outcome.Direction.UP,
            judgement.VerdictResult.INCONCLUSIVE, 'one pair', 0.95, None, 1),),
        'paired')
    return dataclasses.replace(
        record.Result((run,), verdict, {'hpcvirt': '1.0'}), **changes)


class TestRecordJson(testtools.TestCase):
    def test_what_is_written_reads_back_the_same(self):
        text = json_format.dumps(result())
        self.assertEqual(result(), json_format.loads(text))

    def test_the_text_is_strict_json_with_the_schema_version(self):
        plain = json.loads(json_format.dumps(result()))
        self.assertEqual(record.SCHEMA_VERSION, plain['schema_version'])
        self.assertEqual('up', plain['runs'][0]['samples'][0]['outcome'][
            'metrics']['triad_mb_s']['direction'])

    def test_a_field_with_a_default_may_be_missing(self):
        plain = serialization.dump(result())
        del plain['software']
        del plain['runs'][0]['samples'][0]['command']
        del plain['runs'][0]['samples'][0]['outcome']['kinds']
        self.assertEqual({}, json_format.result_from(plain).software)

    def test_a_whole_number_is_read_as_a_float_where_one_belongs(self):
        read = json_format.loads(json_format.dumps(result()))
        metric = read.runs[0].samples[1].outcome.metrics['triad_mb_s']
        self.assertIsInstance(metric.value, float)

    def refused(self, change, what):
        plain = serialization.dump(result())
        change(plain)
        self.assertIn(what, refusals.message(
            self, json_format.result_from, plain, 'r.json'))

    def test_what_is_wrong_is_named_by_its_path(self):
        def sample(plain):
            return plain['runs'][0]['samples'][0]
        for change, what in (
                (lambda p: p.update(schema_version=2), 'schema_version: is 2'),
                (lambda p: p['runs'][0].update(colour='red'),
                 "r.json: runs[0]: unknown key 'colour'"),
                (lambda p: p['runs'][0].pop('id'),
                 "r.json: runs[0]: the key 'id' is missing"),
                (lambda p: sample(p).update(pair='0'),
                 ('r.json: runs[0].samples[0].pair: must be a whole number, '
                  "not '0'")),
                (lambda p: sample(p).update(pair=True),
                 'pair: must be a whole number, not true'),
                (lambda p: p['verdict'].update(result='MAYBE'),
                 ('verdict.result: must be one of PASS, FAIL, COMPARED, '
                  "INCONCLUSIVE, INVALID, not 'MAYBE'")),
                (lambda p: p['runs'][0]['bounds']['triad_mb_s'].update(
                    ratio=10 ** 400), 'must be a number from 1e-06 to 1e+06')):
            self.refused(change, what)

    def test_figures_without_a_logarithm_are_refused(self):
        for value in (0, -1, 1e-320, True):
            self.refused(
                lambda p, value=value: p['runs'][0]['samples'][0]['outcome'][
                    'metrics']['triad_mb_s'].update(value=value),
                'must be a number from 1e-300 to 1e+300')
            self.refused(
                lambda p, value=value: p['runs'][0]['bounds'][
                    'triad_mb_s'].update(ratio=value),
                'must be a number from 1e-06 to 1e+06')
        self.refused(
            lambda p: p['runs'][0]['bounds']['triad_mb_s'].update(margin=1),
            'must be a number from 0 to 0.99')

    def test_text_that_is_no_json_is_refused(self):
        for text in ('', '{', '[]', 'null', '3', '"x"', '[' * 100000,
                     '{"schema_version": NaN}'):
            self.assertRaises(exception.InvalidInput, json_format.loads, text)

    def test_infinity_is_never_written(self):
        bad = result(software={'x': float('inf')})
        self.assertRaises(ValueError, json_format.dumps, bad)
