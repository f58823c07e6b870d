# SPDX-License-Identifier: Apache-2.0

"""Study documents of ``hpcvirt bench run``, up to the first machine."""

import json

import testtools
import yaml

from tests.builders import commands
from tests.builders import folders
from tests.builders import hosts

SMT = str(hosts.TOPOLOGIES / 'intel-2s-16c-smt.json')
PLAIN = str(hosts.TOPOLOGIES / 'hs06-2s-16c.json')
#: What standard error has at most for these hosts.
NO_HOUSEKEEPING = r'\A(Warning: no-housekeeping: [^\n]*\n)?\Z'
S4 = {'study': 'S4', 'case': '4x8-tuned'}
GUESTS = {'study': 'S3', 'case': 'on-2vm-1net-8', 'instead': 'gromacs',
          'where': ['ssh://g1', 'ssh://g2']}


class ShippedTest(testtools.TestCase):
    def test_the_documents_that_are_shipped_have_steps(self):
        shipped = sorted((hosts.TOPOLOGIES.parent / 'studies').iterdir())
        self.assertGreaterEqual(len(shipped), 2)
        for path in shipped:
            ended = commands.run('bench', 'run', path)
            self.assertEqual(0, ended.status, ended.err)
            self.assertIn('use --apply', ended.out)


class StudyCase(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)

    def run_(self, *words, **keys):
        """Run the command with a document of these keys."""
        path = self.folder / 'study.yaml'
        path.write_text(yaml.safe_dump(
            {'kind': 'study', 'schema_version': 1, **keys}))
        return commands.run('bench', 'run', path, '--data',
                            self.folder / 'data', *words)

    def refuse(self, said, *words, **keys):
        commands.check_refused(self, said, self.run_(*words, **keys))
        self.assertEqual(['study.yaml'], [
            path.name for path in self.folder.iterdir()])


class InstancesTest(StudyCase):
    def test_without_apply_the_plan_is_printed(self):
        status, out, err = self.run_(**S4, hosts=[f'n7={PLAIN}'])
        self.assertEqual(0, status)
        self.assertRegex(err, NO_HOUSEKEEPING)
        for line in ('Host: nested paging on', 'cpu_dedicated_set = 0-31',
                     'Start 4 instances of it on n7',
                     'Run hs06/multi in all instances and on ssh://HOST, 16 t',
                     'use --apply to do it'):
            self.assertIn(line, out)

    def test_the_plan_says_how_many_ranks_and_instances_there_are(self):
        out = self.run_(study='S1', case='small-on', hosts=[f'n7={SMT}']).out
        self.assertIn('Start 1 instance of it on n7', out)
        self.assertIn('Run hpcc/mpi with 16 ranks in all instances', out)

    def test_paths_are_relative_to_the_document(self):
        hosts.as_json(hosts.build(name='own'), self.folder / 'own.json')
        (self.folder / 'fleet.yaml').write_text(json.dumps({
            'schema_version': 1, 'classes': {'big': {
                'hosts': ['n=own.json*3'], 'profile': 'dense'}}}))
        for keys, names in (({'hosts': ['n1=own.json']}, ['n1']),
                            ({'fleet': 'fleet.yaml', 'host_class': 'big'},
                             ['n-1'])):
            plan = commands.read_document(self, self.run_(
                '-f', 'json', **S4, **keys))
            self.assertEqual((names, []), (plan['hosts'], plan['runs']))

    def test_a_refused_case_is_not_run(self):
        status, out, err = self.run_(study='S3', case='on-1vm-4',
                                     hosts=[PLAIN])
        self.assertEqual((1, ''), (status, err))
        self.assertIn('needs SMT', out)

    def test_a_case_that_no_guest_can_pass_is_refused(self):
        keys = {**S4, 'hosts': [PLAIN]}
        for more in ((), ('--apply',)):
            self.refuse('15 pairs pass no guest; set pairs to 16', *more,
                        image='i', networks=['n'], pairs=15, **keys)
        for more in ({'pairs': 16}, {'pairs': 15, 'verdict': False}):
            self.assertEqual(0, self.run_(**keys, **more).status)

    def test_a_case_without_a_bound_needs_one_or_no_verdict(self):
        keys = {'study': 'S5', 'case': 'collectives',
                'hosts': [f'n1={PLAIN}', f'n2={PLAIN}']}
        self.refuse('osu-allreduce, osu-alltoall: no figure has a bound; set '
                    'bounds or overhead_percent, or verdict to false', **keys)
        for more in ({'overhead_percent': 5}, {'verdict': False}):
            self.assertEqual(0, self.run_(**keys, **more).status)

    def test_what_is_missing_for_apply_is_named(self):
        keys = {**S4, 'hosts': [PLAIN]}
        self.refuse('study.yaml: image: is missing', '--apply', **keys)
        self.refuse('study.yaml: networks: has 0, but the case needs 1',
                    '--apply', image='i', **keys)
        self.refuse('study.yaml: networks: has 2', networks=['a', 'b'], **keys)

    def test_each_fault_names_its_key(self):
        for said, keys in (
                ('study: S9: no such study', {'study': 'S9'}),
                ("case: S4: has no case 'sriov'", {'case': 'sriov'}),
                ('instead: hpcc: does not stand in', {'instead': 'hpcc'}),
                ('pairs: must be a whole number from 1 to 1000, not 0',
                 {'pairs': 0}),
                ('settings x: none of the named', {'settings': {'x': '1'}}),
                ("settings['N']: must be text, not 5", {'settings': {'N': 5}}),
                ('bounds x: none of the named', {'bounds': {'x': 0.9}}),
                ("bounds['score']: must be a number", {
                    'bounds': {'score': 'much'}}),
                ('hosts: /nowhere', {'hosts': ['/nowhere']}),
                ('native: n7: not a target', {'native': 'n7'}),
                ('native: must be text such as ssh://{host}',
                 {'native': 'ssh://{hots}'}),
                ('native: must be one target',
                 {'native': ['ssh://a', 'ssh://b']}),
                ('hosts: contradicts where', {'where': ['ssh://g1']}),
                ('fleet: contradicts hosts',
                 {'fleet': 'f', 'host_class': 'c'}),
                ('fleet: is missing', {'host_class': 'c'}),
                ('this_launch: needs where', {'this_launch': True}),
                ("unknown key 'host'; known: kind, ", {'host': 'n7'}),
                ('verdict: contradicts', {
                    'verdict': False, 'overhead_percent': 5}),
                ("not 'studi' (did you mean study?)", {'kind': 'studi'}),
                ('schema_version: is 2', {'schema_version': 2})):
            with self.subTest(said):
                self.refuse(said, **{**S4, 'hosts': [PLAIN], **keys})
        self.refuse('where: is missing; give where, hosts or fleet', **S4)
        self.refuse("the key 'case' is missing", study='S4')


class GuestsTest(StudyCase):
    def test_without_apply_no_machine_is_asked(self):
        status, out, err = self.run_(**GUESTS, native='ssh://n7', pairs=20)
        self.assertEqual((0, ''), (status, err))
        self.assertIn('Run gromacs/mpi in ssh://g1, ssh://g2 and on ssh://n7, '
                      '20 times\n', out)
        self.assertIn('use --apply', out)

    def test_each_fault_names_its_key(self):
        for said, keys in (
                ('where: on-2vm-1net-8: needs 2 guests, not 1',
                 {'where': ['ssh://g1']}),
                ('where: vm: not a target', {'where': ['vm', 'vm']}),
                ('native_cpus: needs', {'native_cpus': ['0']}),
                ('native_cpus: ', {'native_cpus': ['x'], 'native': 'local'}),
                ('native: is given 3 times', {'native': ['local'] * 3}),
                ('native: must name the host itself',
                 {'native': 'ssh://{host}'}),
                ('image: contradicts where', {'image': 'i'})):
            self.refuse(f'study.yaml: {said}', **{**GUESTS, **keys})

    def test_no_host_and_no_option_of_benchmarks_is_taken(self):
        self.refuse('n7: is too much', 'n7', **GUESTS)
        for words in (('--where', 'local'), ('--pairs', '5'),
                      ('--warm-ups', '0'), ('--overhead', '5'),
                      ('--no-verdict',)):
            self.refuse(f'{words[0]}: is for benchmarks by name, not for a '
                        'study document', *words, **GUESTS)
        for words in (('--quick',), ('--repaired', '')):
            self.refuse(f'{words[0]}: is for an acceptance document', *words,
                        **GUESTS)
        self.refuse('--format junit: is for an acceptance', '-f', 'junit',
                    **GUESTS)
