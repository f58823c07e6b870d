# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt explain --scheduler-log`` as its user sees it."""

import contextlib
import gzip
import io
import json
import os
import unittest
from unittest import mock

from hpcvirt.cmd import main
from hpcvirt.fit import decision_log
from tests.builders import commands
from tests.builders import folders
from tests.builders import log_records

a_comparison = log_records.a_comparison
a_difference = log_records.a_difference
a_refusal = log_records.a_refusal
line = log_records.line


class ExplainLogTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.log = folders.make(self) / 'nova-scheduler.log'

    def explain(self, *documents, words=()):
        """Write a log and explain it."""
        self.log.write_bytes(b''.join(map(line, documents)))
        return self.run_command(*words)

    def run_command(self, *words):
        with mock.patch.dict(os.environ, COLUMNS='100'):
            return commands.run('explain', '--scheduler-log', self.log, *words)

    def test_a_refusal_is_explained_as_a_fleet_is(self):
        status, text, _ = self.explain(a_refusal(hosts=300))
        self.assertEqual(1, status)
        self.assertIn('hpc fits on 0 of 300 hosts that reached', text)
        self.assertIn('  300  a, b, ...  filter  for example a: '
                      'no cell has room\n', text)

    def test_the_document_is_that_of_explain(self):
        document = commands.read_document(self, self.explain(
            a_refusal(hosts=300), words=['--format', 'json']), status=1)
        self.assertEqual((1, False, []), (
            document['schema_version'], document['fits'],
            document['nearest']))
        self.assertEqual([{
            'name': name, 'fits': False, 'step': 'filter', 'code': 'no-cell',
            'reason': 'no cell has room', 'cells': [], 'cpus': [],
            'weight': 0, 'scores': {}, 'compared': '', 'class': '',
            'lacks': 0.0} for name in 'ab'],
            document['hosts'])
        (group,), = document['refusals']
        self.assertEqual((300, 'free-pcpus', 'a, b'), (
            group['hosts'], group['root'], group['examples']))

    def test_the_last_of_several_is_explained_and_the_others_are_listed(self):
        documents = [a_refusal(f'req-{number}')
                     for number in range(3)]
        _, text, _ = self.explain(*documents)
        self.assertIn('the request req-2 for', text)
        self.assertIn('2 other refusals in this log:', text)
        self.assertIn('req-0', text)
        _, text, _ = self.explain(*documents, words=['--request-id', 'req-1'])
        self.assertIn('the request req-1 for', text)
        self.assertNotIn('req-0', text)

    def test_a_rotated_log_is_read(self):
        self.log.write_bytes(gzip.compress(
            line(a_refusal())))
        self.assertEqual(1, self.run_command()[0])

    def test_a_rotated_log_that_is_cut_is_read_as_far_as_possible(self):
        whole = gzip.compress(line(a_refusal())
                              + os.urandom(200000))
        for broken in (whole[:len(whole) // 2],
                       whole[:5000] + b'?' * 100 + whole[5100:]):
            self.log.write_bytes(broken)
            status, text, err = self.run_command()
            self.assertEqual(1, status)
            self.assertIn('hpc fits on 0', text)
            self.assertIn('can be read only in part', err)

    def test_nothing_that_a_terminal_obeys_is_printed(self):
        _, text, _ = self.explain(a_refusal(
            flavor='\x1b[2J', instance='\N{RIGHT-TO-LEFT OVERRIDE}\n',
            request='\r\x07'))
        self.assertTrue(text.replace('\n', '').isprintable())

    def test_a_file_without_a_summary_is_one_clear_line(self):
        for content in (b'', b'nothing\n', os.urandom(5000)):
            self.log.write_bytes(content)
            commands.check_refused(
                self, f'hpcvirt: {self.log}: has no refused request and no '
                'comparison of HPCTopologyFilter, which logs them at INFO '
                'level\n', self.run_command())

    def test_a_request_that_is_not_in_it_is_named(self):
        commands.check_refused(
            self, "no refusal and no comparison of 'req-9', but 1 line about "
            'other requests',
            self.explain(a_refusal(), words=['--request-id', 'req-9']))

    def test_cut_lines_are_reported(self):
        _, text, _ = self.explain(a_refusal(),
                                  decision_log.write(a_refusal())[:-9])
        self.assertIn('1 line of hpcvirt cannot be read', text)
        commands.check_refused(
            self, '1 line of hpcvirt cannot be read',
            self.explain(decision_log.write(a_refusal())[:-9]))

    def test_shadow_mode_is_summed_up(self):
        documents = [a_comparison('req-1', passed=3),
                     a_comparison('req-2', passed=0, differing=3),
                     a_difference('req-2', 3)]
        status, text, _ = self.explain(*documents)
        self.assertEqual(0, status)
        self.assertIn('judged 6 hosts for 2 requests. They disagree', text)
        self.assertIn("       1      3  hpc     hpcvirt-refuses  fits, but "
                      "Nova's claim would refuse it\n", text)
        self.assertIn('For example req-2: why\n', text)
        _, text, _ = self.explain(*documents, words=['--format', 'json'])
        document = json.loads(text)
        self.assertIsNone(document['fits'])
        self.assertEqual(1, document['shadow']['only_nova_has_a_host'])
        kind, = document['shadow']['differences']
        self.assertEqual(('hpcvirt-refuses', 'claim-refuses', 1, 3), (
            kind['direction'], kind['code'], kind['requests'], kind['hosts']))

    def test_the_end_of_a_long_line_is_no_line(self):
        for size in (64 * 1024, 128 * 1024, 192 * 1024):
            self.log.write_bytes(b'x' * size + line(a_refusal('req-1'))
                                 + line(a_refusal('req-2')))
            status, text, _ = self.run_command()
            self.assertEqual(1, status)
            self.assertIn('the request req-2 for', text)
            self.assertNotIn('other refusal', text)

    def test_options_without_effect_are_refused(self):
        for words in (['--flavor', 'hpc'], ['--hosts', 'a'],
                      ['--fleet', 'a'], ['--server', 'uuid']):
            commands.check_refused(
                self, f'{words[0]}: is not for --scheduler-log',
                self.explain(a_refusal(), words=words))

    def test_a_request_id_needs_a_log(self):
        out = io.StringIO()
        with contextlib.redirect_stderr(out):
            status = main.main(['explain', '--request-id', 'req-1'])
        self.assertEqual(2, status)
        self.assertEqual('hpcvirt: --request-id: needs --scheduler-log or '
                         '--history\n', out.getvalue())
