# SPDX-License-Identifier: Apache-2.0

"""What an acceptance refuses before it asks a cloud."""

import json
import shlex

import fixtures
import testtools
import yaml

from hpcvirt.cmd.host import audit
from tests.builders import commands
from tests.builders import folders
from tests.builders import hosts

#: With another target, all that a shell takes apart.
PATHS = ("it's here", '$HOME', 'a;b')


class ShippedTest(testtools.TestCase):
    def test_the_documents_that_are_shipped_have_a_quick_gate(self):
        shipped = sorted((hosts.TOPOLOGIES.parent / 'acceptance').iterdir())
        self.assertGreaterEqual(len(shipped), 2)
        for path in shipped:
            ended = commands.run('bench', 'run', path, 'node7', '--quick')
            self.assertEqual((0, ''), (ended.status, ended.err))
            self.assertIn('the quick gate on ssh://root@node7', ended.out)
        # What a document names is written only with --apply.
        self.assertEqual({'.yaml'}, {path.suffix for path in
                                     shipped[0].parent.iterdir()})


class AcceptTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.scratch = folders.make(self)
        self.write('plan.json', {'schema_version': 1, 'flavors': [
            {'name': 'a', 'vcpus': 1, 'ram_mib': 64, 'extra_specs': {},
             'per_host': {'n1': 2}}]})
        self.keys = {'flavors': ['a'], 'plan': 'plan.json', 'image': 'i',
                     'network': 'n'}
        # What gets as far as a cloud finds none.
        self.useFixture(fixtures.EnvironmentVariable('OS_CLOUD', 'none'))
        self.useFixture(fixtures.EnvironmentVariable(
            'OS_CLIENT_CONFIG_FILE', str(self.scratch / 'clouds.yaml')))

    def write(self, name, content):
        path = self.scratch / name
        path.write_text(json.dumps(content))
        return str(path)

    def run_(self, *words, **keys):
        """Run the command with a document of these keys."""
        (self.scratch / 'accept.yaml').write_text(yaml.safe_dump(
            {'kind': 'acceptance', 'schema_version': 1, **keys}))
        return commands.run('bench', 'run', self.scratch / 'accept.yaml',
                            '--data', self.scratch / 'data', *words)

    def assert_refused(self, said, *words, host='n1', **keys):
        commands.check_refused(self, said, self.run_(
            host, '--apply', *words, **{**self.keys, **keys}))
        self.assertFalse((self.scratch / 'data').exists())

    def test_each_fault_is_one_line(self):
        self.assert_refused('is not the name of a compute host',
                            host='../n1')
        self.assert_refused('is not for the host n2', host='n2')
        self.write('n1.json', {'schema_version': 1})
        for said, keys in (
                ("has no flavor 'b'", {'flavors': ['b']}),
                ('benchmarks: nosuch: no such', {'benchmarks': ['nosuch']}),
                ('benchmarks: names none', {'benchmarks': []}),
                ('settings nosuch: none of', {'settings': {'nosuch': '1'}}),
                ("settings['N']: must be text", {'settings': {'N': 1}}),
                ('bounds x: none of', {'bounds': {'x': 0.9}}),
                ("bounds['x']: must be a number", {'bounds': {'x': 0}}),
                ('is not the output of "hpcvirt host ',
                 {'audit': '{host}.json'}),
                ('audit: must be text such as', {'audit': '{name}.json'}),
                ('cannot be written', {'json_lines': '/nowhere/x'}),
                ('nothing', {'plan': 'nothing'}),
                ('native: n1: not a target', {'native': '{host}'}),
                ('gate: must be text such as', {'gate': 'ssh://{hots}'}),
                ('gate: ssh://n1:x: has no valid', {'gate': 'ssh://n1:x'}),
                ('gate_benchmarks: x: no such', {'gate_benchmarks': ['x']}),
                ('gate_settings x: none', {'gate_settings': {'x': '1'}}),
                ('gate_bounds x: none', {'gate_bounds': {'x': 1}}),
                ('pairs: must be a whole number', {'pairs': 0}),
                ('time_limit_minutes: must be', {'time_limit_minutes': 0}),
                ("unknown key 'bound'; known: kind, ", {'bound': {}}),
                ('schema_version: is 2', {'schema_version': 2})):
            with self.subTest(said):
                self.assert_refused(said, **keys)

    def test_a_key_that_occurs_twice_is_refused(self):
        path = self.scratch / 'twice.yml'
        path.write_text('kind: acceptance\nschema_version: 1\nkind: study\n')
        line = commands.check_refused(
            self, "the key 'kind' occurs twice",
            commands.run('bench', 'run', path, 'n1'))
        self.assertIn('twice.yml', line)

    def test_a_measurement_that_passes_nothing_does_not_begin(self):
        native = {'native': 'ssh://{host}'}
        for keys, said in (
                ({**native, 'pairs': 5},
                 'hpcc mpi 2x1 warm: 5 pairs pass no guest; set pairs to 11'),
                ({'pairs': 4}, '4 samples pass no host; set pairs to 5'),
                ({**native, 'benchmarks': ['fio']},
                 'fio: no figure has a bound; set bounds'),
                ({'benchmarks': ['fio']},
                 'fio: no figure has a bound; set bounds')):
            self.assert_refused(said, **keys)
        # These get as far as the cloud.
        for keys in ({**native, 'pairs': 11}, {'pairs': 5}, native,
                     {'benchmarks': ['fio'], 'bounds': {'write_mb_s': 0.9}}):
            self.assert_refused('Cloud none was not found', **keys)

    def test_what_is_missing_is_named(self):
        for missing in self.keys:
            keys = {key: value for key, value in self.keys.items()
                    if key != missing}
            commands.check_refused(self, f'{missing}: is missing',
                                   self.run_('n1', '--apply', **keys))
        commands.check_refused(self, 'gate: is missing, and native',
                               self.run_('n1', '--quick', '--apply'))
        commands.check_refused(self, 'HOST: is missing', self.run_('--quick'))
        commands.check_refused(self, 'n2: is too much; one host',
                               self.run_('n1', 'n2', **self.keys))

    def test_the_quick_gate_needs_no_cloud(self):
        for keys in ({'native': 'ssh://{host}'}, {'gate': 'ssh://{host}'},
                     {**self.keys, 'gate': 'ssh://{host}',
                      'plan': 'none', 'audit': 'none'}):
            status, out, err = self.run_('n1', '--quick', **keys)
            self.assertEqual((0, ''), (status, err))
            self.assertIn('Run the quick gate on ssh://n1:', out)
            self.assertIn('use --apply', out)
            self.assertNotIn('quarantine', out)
        self.assertFalse((self.scratch / 'data').exists())

    def asked(self, *words, **keys):
        """Return what is asked of the quick gate."""
        return commands.read_document(self, self.run_(
            'n1', '--quick', '-f', 'json', *words,
            **{'gate': 'ssh://n1', **keys}))

    def test_the_request_depends_on_what_is_measured(self):
        first = self.asked()['request']
        self.assertEqual(first, self.asked(
            json_lines='x', time_limit_minutes=5, user='root')['request'])
        for words, keys in (((), {'gate': 'ssh://n2'}),
                            ((), {'user': 'other'}),
                            ((), {'gate_settings': {'N': '1000'}}),
                            ((), {'gate_bounds': {'HPL_Tflops': 0.5}}),
                            (('--repaired', 'DIMM'), {})):
            with self.subTest(words=words, keys=keys):
                self.assertNotEqual(first,
                                    self.asked(*words, **keys)['request'])

    def test_the_command_that_repeats_it_may_be_pasted(self):
        for name in PATHS:
            folder = self.scratch / name
            benchmarks = folder / 'own'
            benchmarks.mkdir(parents=True)
            path = folder / 'class.yaml'
            path.write_text(yaml.safe_dump({
                'kind': 'acceptance', 'schema_version': 1, 'gate': 'local'}))
            words = ['bench', 'run', str(path), 'n1', '--quick',
                     f'--repaired=--{name}', f'--data={folder}/data',
                     '--host-key=known', f'--catalogue={benchmarks}']
            found = commands.read_document(self, commands.run(
                *words, '-f', 'json'))
            self.assertEqual(['hpcvirt', *words, '--apply'],
                             shlex.split(found['command']))
            again = commands.read_document(self, commands.run(
                *shlex.split(found['command'])[1:-1], '-f', 'json'))
            self.assertEqual(found, again)

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
