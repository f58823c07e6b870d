# SPDX-License-Identifier: Apache-2.0

"""The operator's page against what the command prints."""

import contextlib
import io
import json
import os
import re
import textwrap
import unittest
from unittest import mock

from demo import transcript
from hpcvirt import exception
from hpcvirt.cmd.fleet import make_room
from tests import pages
from tests.builders import commands
from tests.builders import folders

ROOT = pages.ROOT
ETC = ROOT / 'etc' / 'hpcvirt'
BLOCK = re.compile(r'\.\. code-block:: text\n\n((?:   .*\n|\n)+)')
#: Written by an embedded Nova.
LOG = ROOT / 'tests' / 'data' / 'logs' / 'nova-scheduler.log'
SHADOW_PAGE = pages.read('admin/shadow-mode')
PAGE = pages.read('admin/capacity', 'admin/drain', 'admin/explain',
                  'admin/make-room', 'admin/read-refusals',
                  'reference/fleet-json')


def run(*words):
    """Run the command in 80 columns."""
    with mock.patch.dict(os.environ, COLUMNS='80'):
        return commands.run(*words)


class DocumentationTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)
        document = json.loads(
            (ETC / 'fleets' / 'three-hosts.json').read_text())
        self.hosts = document['classes']['plain']['hosts']
        self.hosts[:] = [host.replace('..', str(ETC)) for host in self.hosts]
        self.document = document
        self.fleet = self.folder / 'fleet.json'

    def ask(self, *words):
        self.fleet.write_text(json.dumps(self.document))
        return run(*words, '--fleet', self.fleet)

    def answer(self, *words, status=0):
        """Return the standard output of a command with this status."""
        found, text, _ = self.ask(*words)
        self.assertEqual(status, found)
        return text

    def document_shown(self, first, after=''):
        """Return the JSON of the page that begins in a way."""
        return json.loads(re.search(
            r'::\n\n( +\{"schema_version": 1,' + first + r'.*?)\n\n|\Z',
            PAGE[PAGE.index(after):] + '\n', re.DOTALL)[1])

    def assert_shown(self, text):
        """Check that a block shows a text, or its parts between "..."."""
        first = text.split('\n', 1)[0]
        blocks = [textwrap.dedent(block) for block in BLOCK.findall(PAGE)]
        self.assertTrue(any(
            transcript.is_printed(block, text) for block in blocks
            if block.startswith(f'{first}\n')), text)

    def test_the_capacity_of_the_example_is_shown(self):
        text = self.answer('capacity')
        self.assert_shown(text)

    def test_what_sets_of_devices_are_free_is_shown(self):
        fleet = f'--fleet={ETC}/fleets/gpu-sets.json'
        flavor = '--flavor=hpc.18c1n2t.2m.gpu4r'
        for words in (('capacity',), ('explain', flavor),
                      ('make-room', '--cold', flavor)):
            self.assert_shown(run(*words, fleet)[1])

    def test_what_the_log_of_the_scheduler_says_is_shown(self):
        status, text, _ = run('explain', '--scheduler-log', LOG)
        self.assertEqual(1, status)
        refused, mark, compared = text.partition('In shadow mode')
        self.assert_shown(refused.rstrip() + '\n')
        self.assertIn(textwrap.indent(mark + compared, ' ' * 6).rstrip(),
                      SHADOW_PAGE)

    def test_the_document_has_what_is_shown(self):
        text = self.answer('capacity', '--format', 'json')
        document = json.loads(text)
        shown = self.document_shown(r'\n +"flavors"')
        self.assertEqual(shown.keys(), document.keys())
        self.assertIn(*shown['flavors'], document['flavors'])
        self.assertIn(*shown['hosts'], document['hosts'])
        self.assertEqual(shown['classes'], document['classes'])
        self.assertEqual(shown['free'], document['free'])

    def test_the_moves_of_the_example_are_shown(self):
        text = self.answer('make-room', '--flavor', 'hpc.16c1n.2m')
        self.assert_shown(text)
        text = self.answer('make-room', '--flavor', 'hpc.16c1n.2m',
                           '--format', 'json')
        self.assertEqual(self.document_shown(' "fits": true'),
                         json.loads(text))

    def test_the_room_that_is_kept_is_shown(self):
        words = ('make-room', '--standing', 'hpc.16c1n.2m=1',
                 '--standing', 'hpc.8c1n.2m=2')
        text = self.answer(*words)
        self.assert_shown(text)
        text = self.answer(*words, '--format', 'json')
        self.assertEqual(
            self.document_shown(r' "fits": true,\n +"moves": ',
                                'The document of ``--standing``'),
            json.loads(text))

    def test_what_empties_hosts_is_shown(self):
        for words, status in ((('n2',), 0), (('n1', 'n2'), 1),
                              (('n1', 'n3', '--rolling', '1'), 0)):
            self.assert_shown(self.answer('drain', *words, status=status))
        text = self.answer('drain', 'n1', '--format', 'json')
        self.assertEqual(self.document_shown(' "empty": true'),
                         json.loads(text))

    def test_without_a_cloud_nothing_is_applied(self):
        self.enterContext(mock.patch.dict(
            os.environ, OS_CLIENT_CONFIG_FILE=str(self.folder / 'absent')))
        for name in [name for name in os.environ if name.startswith('OS_')
                     and name != 'OS_CLIENT_CONFIG_FILE']:
            del os.environ[name]
        status, text, error = self.ask(
            'make-room', '--flavor', 'hpc.16c1n.2m', '--apply')
        self.assertEqual(2, status)
        self.assert_shown(text)
        self.assertRegex(error, '(?m)^hpcvirt: the cloud is not configured: ')

    def test_moves_are_made_with_the_session_of_a_program_around(self):
        made = make_room.MakeRoom(mock.Mock(), None)
        args = made.get_parser('make-room').parse_args([
            '--flavor', 'hpc.16c1n.2m', '--apply',
            f'--fleet={ETC}/fleets/three-hosts.json'])
        args.connect = mock.Mock(side_effect=exception.Unreachable('its own'))
        with (contextlib.redirect_stdout(io.StringIO()),
              self.assertRaisesRegex(exception.Unreachable, 'its own')):
            made.answer(args)

    def test_a_number_of_instances_is_a_number(self):
        for word in ('0', 'x', '1001'):
            self.assertEqual(2, self.ask('make-room', '--flavor',
                                         'hpc.8c1n.2m', '--count', word)[0])

    def test_standing_is_wrong_in_one_line(self):
        for words, message in (
                (('--standing', 'hpc.8c1n.2m'), 'is not NAME=N, such as'),
                (('--standing', 'hpc.8c1n.2m=0'), 'from 1 to 1000'),
                (('--standing', 'x=1'), "'x' is not a flavor of"),
                ((), '--flavor --standing is required'),
                (('--standing', 'x=1', '--flavor', 'x'),
                 'not allowed with argument'),
                (('--standing', 'x=1', '--count', '2'),
                 '--count: belongs to --flavor')):
            commands.check_refused(self, message,
                                   self.ask('make-room', *words))

    def test_the_explanation_of_the_example_is_shown(self):
        text = self.answer('explain', '--flavor', 'hpc.16c1n.2m', status=1)
        self.assert_shown(text)
        text = self.answer('explain', '--flavor', 'hpc.16c1n.2m',
                           '--format', 'json', status=1)
        document = json.loads(text)
        shown = self.document_shown(' "fits": false')
        self.assertEqual(shown.keys(), document.keys())
        self.assertIn(*shown['hosts'], document['hosts'])
        self.assertIn(*shown['nearest'], document['nearest'])

    def test_a_flavor_that_fits_needs_no_change(self):
        text = self.answer('explain', '--flavor', 'hpc.8c1n.2m')
        self.assertIn('fits on 2 of 3 hosts', text)
        self.assertNotIn('change', text)

    def test_no_moves_are_the_answer_no(self):
        text = self.answer('make-room', '--flavor', 'hpc.16c1n.2m',
                           '--moves', '0', status=1)
        self.assertEqual('hpc.16c1n.2m does not fit, and would not after '
                         '0 moves either.\n', text)

    def test_pages_that_are_missing_come_before_other_warnings(self):
        self.document['instances'] = []
        self.document['classes']['plain']['settings'] = 'current'
        error = commands.check_refused(self, '', self.ask('capacity'))
        self.assertIn('no guest fits: hpc.8c1n.2m: left out, because no '
                      'host takes one: no cell has room', error)

    def test_a_place_that_takes_several_is_named_once(self):
        self.document['instances'] = []
        text = self.answer('make-room', '--flavor', 'hpc.8c1n.2m',
                           '--count', '3')
        self.assertEqual(
            '3 instances of hpc.8c1n.2m fit now, on n1, cell 1 (2 times); n1, '
            'cell 0. Nothing\n  has to move.\n', text)

    def test_a_flavor_that_there_is_not_is_one_line(self):
        error = commands.check_refused(
            self, '', self.ask('make-room', '--flavor', 'x'))
        self.assertRegex(error, r"^hpcvirt: --flavor: 'x' is not a flavor of "
                         r'.*, nor a file; there are hpc.8c1n.2m, .*\n$')

    def test_only_the_hosts_that_are_asked_for_are_explained(self):
        text = self.answer('explain', '--flavor', 'hpc.8c1n.2m',
                           '--hosts', 'n1, n2', '--format', 'json')
        found = {host['name']: host for host in json.loads(text)['hosts']}
        self.assertEqual(['n1', 'n2'], list(found))
        self.assertEqual(8, len(found['n1']['cpus']))
        self.assertEqual([], found['n2']['cpus'])

    def test_what_needs_a_cloud_is_refused_for_files(self):
        for words, said in (
                (['--server', 'x'], '--server: needs a cloud'),
                (['--flavor', 'x', '--image', 'i'], '--image: needs a cloud'),
                (['--flavor', 'x', '--port', 'p'], '--port: needs a cloud'),
                (['--flavor', 'x', '--server', 's'], '--server: has its own'),
                (['--flavor', 'hpc.8c1n.2m', '--hosts', 'n9'],
                 "--hosts: 'n9' is not a host"),
                ([], '--flavor: is missing')):
            commands.check_refused(self, said, self.ask('explain', *words))

    def test_a_flavor_that_nova_refuses_is_left_out(self):
        flavor = self.document['instances'][0]['flavor']
        wrong = {**flavor, 'name': 'wrong', 'extra_specs': {
            **flavor['extra_specs'], 'hw:numa_nodes': '3'}}
        self.document['flavors'] = [flavor, wrong]
        status, text, error = self.ask('capacity')
        self.assertEqual(0, status)
        self.assertIn('hpc.8c1n.2m      8   14    4', text)
        self.assertEqual('hpcvirt: flavor wrong: hw:numa_nodes: 8 vCPUs and '
                         '14336 MiB do not divide into 3 guest cells; it is '
                         'left out',
                         error.splitlines()[-1])

    def test_a_broken_host_does_not_stop_the_rest(self):
        bad = self.folder / 'n4.json'
        bad.write_text('{')
        self.hosts.append(f'n4={bad}')
        text = self.answer('capacity')
        self.assertIn('hpc.8c1n.2m       8   14    4        4', text)
        self.assertRegex(text, r'left out.*:\n  n4: .*n4.json: is not valid')

    def test_a_wrong_fleet_is_one_line(self):
        first = self.hosts[0]
        for extra, message in (
                ('n4=absent', f'{self.folder}/absent: cannot be read (No su'),
                ('n4=absent', "fleet.json: classes['plain'].hosts[3]: "),
                (first, "fleet.json: classes['plain']: 'n1' is the name of")):
            self.hosts[3:] = [extra]
            commands.check_refused(self, message, self.ask('capacity'))

    def test_a_fleet_is_summarized(self):
        self.hosts.append('n5=' + str(self.folder / 'n5.json'))
        (self.folder / 'n5.json').write_text('{')
        self.document['classes']['spare'] = {
            'hosts': [self.hosts[0].replace('n1=', 's=') + '*2'],
            'isolated': True, 'traits': ['CUSTOM_SPARE'],
            'profile': {'smt': 'leave'}}
        self.fleet.write_text(json.dumps(self.document))
        status, text, _ = run('fleet', 'show', self.fleet)
        self.assertEqual(0, status)
        for line in (
                '6 hosts, 6 instances, flavors as the profiles plan them',
                r'plain +4 +96 +\d+ +6  dense', 'Broken records:', '  n5: '):
            self.assertRegex(text, line)
        document = commands.read_document(self, run(
            'fleet', 'show', self.fleet, '-f', 'json'))
        self.assertEqual(['n5'], [
            host['name'] for host in document['broken']])
        self.assertEqual(
            {'name': 'spare', 'hosts': 2, 'broken': 0, 'cpus': 64,
             'instances': 0, 'profile': 'default, changed',
             'aggregate': 'spare', 'traits': ['CUSTOM_SPARE'],
             'isolated': True},
            {key: value for key, value in document['classes'][1].items()
             if key != 'memory_gib'})
        status, text, _ = run('fleet', 'show', self.fleet, '-f', 'value',
                              '-c', 'Name')
        self.assertEqual((0, 'plain\nspare\n'), (status, text))
