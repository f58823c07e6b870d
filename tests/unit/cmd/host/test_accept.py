# SPDX-License-Identifier: Apache-2.0

import json

import fixtures
import testtools

from hpcvirt.cmd import main
from hpcvirt.cmd.host import audit
from tests.builders import commands
from tests.builders import folders


class AcceptTest(testtools.TestCase):
    """What ``hpcvirt host accept`` refuses before it asks a cloud."""

    def setUp(self):
        super().setUp()
        self.scratch = folders.make(self)
        self.plan = self.write('plan.json', {'schema_version': 1, 'flavors': [
            {'name': 'a', 'vcpus': 1, 'ram_mib': 64, 'extra_specs': {},
             'per_host': {'n1': 2}}]})
        # What gets as far as a cloud finds none.
        self.useFixture(fixtures.EnvironmentVariable('OS_CLOUD', 'none'))
        self.useFixture(fixtures.EnvironmentVariable(
            'OS_CLIENT_CONFIG_FILE', str(self.scratch / 'clouds.yaml')))

    def write(self, name, content):
        path = self.scratch / name
        path.write_text(json.dumps(content))
        return str(path)

    def assert_refused(self, said, *words, host='n1', flavor='a'):
        commands.check_refused(self, said, commands.run(
            'host', 'accept', host, '--flavor', flavor, '--plan', self.plan,
            '--image', 'i', '--network', 'n', '--data', self.scratch / 'data',
            '--apply', *words))
        self.assertFalse((self.scratch / 'data').exists())

    def test_each_fault_is_one_line(self):
        audit = self.write('audit.json', {'schema_version': 1})
        for more, words in (
                ({'host': '../n1'}, 'is not the name of a compute host'),
                ({'host': 'n2'}, 'is not for the host n2'),
                ({'flavor': 'b'}, "has no flavor 'b'")):
            self.assert_refused(words, **more)
        for options, words in (
                (['--benchmarks', 'nosuch'], 'nosuch'),
                (['--set', 'nosuch=1'], 'none of the named benchmarks'),
                (['--bound', 'x'], 'is not METRIC=RATIO'),
                (['--audit', audit], 'is not the output of "hpcvirt host '),
                (['--json-lines', '/nowhere/x'], 'cannot be written'),
                (['--plan', str(self.scratch / 'nothing')], 'nothing')):
            self.assert_refused(words, *options)

    def test_a_measurement_that_passes_nothing_does_not_begin(self):
        native = ['--native', 'ssh://n1']
        for words, said in (
                ([*native, '--pairs', '5'],
                 'hpcc mpi 2x1 warm: 5 pairs pass no guest; give --pairs 11'),
                (['--pairs', '4'],
                 '4 samples pass no host; give --pairs 5'),
                ([*native, '--benchmarks', 'fio'],
                 'fio: no figure has a bound; give --bound METRIC=RATIO'),
                (['--benchmarks', 'fio'],
                 'fio: no figure has a bound; give --bound METRIC=RATIO')):
            self.assert_refused(said, *words)
        # These get as far as the cloud.
        for words in ([*native, '--pairs', '11'], ['--pairs', '5'], native,
                      ['--benchmarks', 'fio', '--bound',
                       'write_mb_s=0.9']):
            self.assert_refused('Cloud none was not found', *words)

    def test_what_is_missing_is_named(self):
        given = {'--flavor': 'a', '--plan': self.plan, '--image': 'i',
                 '--network': 'n'}
        for missing in given:
            words = [word for option, value in given.items()
                     if option != missing for word in (option, value)]
            ended = commands.run('host', 'accept', 'n1', *words, '--apply')
            commands.check_refused(self, f'{missing}: is missing', ended)
        ended = commands.run('host', 'accept', 'n1', '--quick', '--apply')
        commands.check_refused(self, '--gate or --native: is missing', ended)

    def test_the_quick_gate_needs_no_cloud(self):
        status, out, err = commands.run(
            'host', 'accept', 'n1', '--quick', '--native', 'ssh://n1',
            '--data', self.scratch / 'data')
        self.assertEqual((0, ''), (status, err))
        self.assertIn('Run the quick gate on ssh://n1', out)
        self.assertIn('use --apply', out)
        self.assertNotIn('quarantine', out)
        self.assertFalse((self.scratch / 'data').exists())

    def test_wrong_numbers_are_usage(self):
        for words in (['--pairs', '0'], ['--time-limit', '0'],
                      ['--time-limit', 'x'], ['--benchmarks', 'a,,b']):
            error = self.assertRaises(SystemExit, main.main, [
                'host', 'accept', 'n1', '--flavor', 'a', '--plan', 'p',
                '--image', 'i', '--network', 'n', *words])
            self.assertEqual(2, error.code)

    def test_pairs_are_printed_in_rounds(self):
        status, out, _ = commands.run('host', 'report', '--rounds',
                                      'a', 'b', 'c', 'd')
        rounds = [text.split('\n') for text in out.strip().split('\n\n')]
        self.assertEqual((0, [2, 2, 2]), (status, list(map(len, rounds))))
        self.assertEqual(6, len({frozenset(pair.split()) for pairs in rounds
                                 for pair in pairs}))

    def test_the_findings_of_an_audit_are_read(self):
        finding = {'code': 'ksm', 'severity': 'warning', 'found': 'KSM runs',
                   'expected': 'no KSM', 'why': 'slow', 'sources': ['X'],
                   'change': ['echo 0']}
        (found,) = audit.read_findings(self.write('audit.json', {
            'schema_version': 1, 'host': 'n1', 'clean': False, 'counts': {},
            'findings': [finding], 'checked': ['ksm']}))
        self.assertEqual(('ksm', 'warning', ('echo 0',)),
                         (found.code, found.severity, found.change))
