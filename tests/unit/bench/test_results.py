# SPDX-License-Identifier: Apache-2.0

import dataclasses
import json
import os
import tempfile
import unittest
from unittest import mock

import testtools

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.results import aggregation
from hpcvirt.bench.results import database
from hpcvirt.bench.results import json_format
from hpcvirt.bench.results import location
from tests.builders import folders
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


SECRETS = ('postgresql+psycopg2://me:pa55@db/x',
           'postgresql+psycopg2://me:@db/x',
           'postgresql+psycopg2://me@db/x?password=pa55',
           'postgresql+psycopg2://me@db/x?a=b&passwd=pa55',
           'postgresql+psycopg2://me@db/x?PASSWORD=pa55',
           'postgresql+psycopg2://me@db/x?%70assword=pa55',
           'postgresql+psycopg2://db/x?options=password%3Dpa55',
           'mysql+pymysql://me@db/x?pwd=pa55')
WRONG = ('nonsense', '', 'postgresql://me@db:port/x', 'postgresql://me@[::1/x',
         'postgresql:me:pa55@db', 'mysql+pymysql://me:pa55@db:99x/x')


class ArgumentTest(unittest.TestCase):
    def test_a_password_is_refused_and_not_repeated(self) -> None:
        for text in SECRETS:
            with (self.subTest(text),
                  self.assertRaises(exception.InvalidInput) as caught):
                database.parse_argument(text)
            self.assertIn('HPCVIRT_STORE_PASSWORD', str(caught.exception))
            self.assertNotIn('pa55', str(caught.exception))

    def test_the_password_comes_from_the_environment(self) -> None:
        with mock.patch.dict(os.environ, HPCVIRT_STORE_PASSWORD='p@:55'):
            url = database.parse_argument('postgresql+psycopg2://me@db/x')
            self.assertEqual('p@:55', url.password)
            self.assertIsNone(database.parse_argument('sqlite:///x').password)

    def test_what_is_no_url_is_refused_and_not_repeated(self) -> None:
        for text in WRONG:
            with (self.subTest(text),
                  self.assertRaises(exception.InvalidInput) as caught):
                database.parse_url(text)
            self.assertNotIn('pa55', str(caught.exception))


class ConnectTest(unittest.TestCase):
    def test_a_server_that_cannot_be_used_is_one_line(self) -> None:
        for text in ('mysql+nodriver://me:pa55@localhost/x',
                     'postgresql+psycopg2://me:pa55@127.0.0.1:1/x',
                     'mysql+pymysql://me:pa55@127.0.0.1:1/x',
                     'sqlite+pysqlcipher://:pa55@/x',
                     'sqlite:////proc/none/x',
                     'sqlite:////dev/null/x', 'sqlite:///x?timeout=never',
                     'sqlite:////' + 'x' * 5000):
            with (self.subTest(text),
                  self.assertRaises(exception.Unreachable) as caught,
                  mock.patch('time.sleep', autospec=True)):
                database.connect(database.parse_url(text))
            self.assertNotIn('pa55', str(caught.exception))
            self.assertNotIn('\n', str(caught.exception))

    def test_a_name_has_no_secret(self) -> None:
        self.assertEqual('mysql+pymysql://db/x', database.format_url(
            database.parse_url('mysql+pymysql://me:pa55@db/x?ssl_key=pa55')))


class ResolveTest(unittest.TestCase):
    def test_any_name_of_a_directory_is_taken_literally(self) -> None:
        for name in ('a?b', 'a#b', 'a%20b', 'a:b@c', 'a b', 'é'):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                directory = os.path.join(folder, name)
                url = database.resolve(None, directory)
                database.make_parent(url)
                database.connect(url).connect().close()
                self.assertEqual([name], os.listdir(folder))
                self.assertEqual(['bench.sqlite'], os.listdir(directory))

    def test_what_is_no_file_is_refused(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'bench.sqlite')
            os.mkfifo(path)
            for url in (None, f'sqlite:///{path}', f'sqlite:///{folder}'):
                with (self.subTest(url), self.assertRaisesRegex(
                        exception.InvalidInput, 'is not a file')):
                    database.resolve(url, folder)


class MakeDirectoryTest(unittest.TestCase):
    def setUp(self):
        self.path = folders.make(self) / 'data'

    def make(self):
        location.make_directory(str(self.path))

    def test_a_new_directory_is_private_whatever_the_umask(self):
        self.addCleanup(os.umask, os.umask(0))
        self.make()
        self.assertEqual(0o700, self.path.stat().st_mode & 0o777)

    def test_a_directory_of_the_caller_stays_as_it_is(self):
        self.path.mkdir(0o775)
        self.path.chmod(0o775)
        self.make()
        self.assertEqual(0o775, self.path.stat().st_mode & 0o777)

    def test_one_that_everybody_writes_to_is_refused(self):
        for mode in (0o777, 0o1777):
            self.path.mkdir(exist_ok=True)
            self.path.chmod(mode)
            self.assertRaisesRegex(exception.InvalidInput, 'everybody',
                                   self.make)

    @unittest.skipIf(os.geteuid(), 'only root can give directories away')
    def test_one_of_another_user_is_refused(self):
        self.path.mkdir()
        os.chown(self.path, 65534, 65534)
        self.assertRaisesRegex(exception.InvalidInput, 'another user',
                               self.make)


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
        exc = self.assertRaises(
            exception.InvalidInput, json_format.result_from, plain, 'r.json')
        self.assertIn(what, str(exc))

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
                (lambda p: p['verdict'].update(word='MAYBE'),
                 ('verdict.word: must be one of PASS, FAIL, INCONCLUSIVE, '
                  "INVALID, not 'MAYBE'")),
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
