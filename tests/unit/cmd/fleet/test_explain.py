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


#: What begins a line of nova-scheduler, and its ids.
REQUEST = 'req-00000000-0000-4000-8000-000000000001'
IDS = f'[{REQUEST} u p - - -]'
SERVER = '00000000-0000-4000-8000-000000000002'
GONE = ("Filtering removed all hosts for the request with instance ID "
        f"'{SERVER}'. Filter results: ")

#: Logs as strangers quote them, by the numbers of tests/data/public-cases.csv:
#: the log, and what the command says of it.
PUBLIC_LOGS = {
    'L1': (f"""\
25547:2018-08-09 09:19:08.040 7 DEBUG nova.filters {IDS} Starting with 0 \
host(s) get_filtered_objects /usr/lib/nova/filters.py:70
25549:2018-08-09 09:19:08.041 7 DEBUG nova.filters {IDS} {GONE}\
[('AvailabilityZoneFilter', None)] get_filtered_objects /usr/nova/filters.py:1
""", f'{SERVER} failed at the step filter: no host came to the filters'),
    'L2': (f"""\
{GONE}['ComputeFilter: (start: 2, end: 2)', \
'FailureDomainFilter: (start: 2, end: 0)']
""", 'has 1 line about refusals, but not as nova-scheduler'),
    'L3': (f"""\
> 2014-10-09 09:09:20 5395 INFO oslo.messaging [-] Connected to AMQP server on
192.168.2.166:5672 2014-10-09 11:13:15.011 19829 INFO nova.filters {IDS} Filter
Imag ePropertiesFilter returned 0 hosts 2014-10-10 08:52:17 5076 WARNING x [-]
""", 'has 1 line about refusals, but not as nova-scheduler'),
    'L4': (f"""\
2018-02-21 09:16:53.310 DEBUG nova.scheduler.filters.ram_filter {IDS} (n, n) \
does not have 512 MB usable ram. from (pid=11395) host_passes /opt/ram.py:61
2018-02-21 09:16:53.310 DEBUG nova.filters {IDS} Filter RamFilter returned 1 \
host(s) from (pid=11395) get_filtered_objects /opt/stack/nova/filters.py:104
2018-02-21 09:16:53.311 DEBUG nova.scheduler.filters.affinity_filter {IDS} \
aggregate-affinity: check if set([1]) is a subset of set([]) from (pid=11395) \
host_passes /opt/stack/nova/nova/scheduler/filters/affinity_filter.py:213
2018-02-21 09:16:53.312 INFO nova.filters {IDS} Filter \
ServerGroupAggregateAffinityFilter returned 0 hosts
2018-02-21 09:16:53.312 DEBUG nova.filters {IDS} {GONE}[('RamFilter', [('n', \
'n')]), ('ServerGroupAggregateAffinityFilter', None)] from (pid=11395) \
get_filtered_objects /opt/stack/nova/nova/filters.py:129
""", ('AffinityFilter leaves none of the hosts: aggregate-affinity: check if '
      'set([1]) is a subset of set([]).')),
    'L5': (f"""\
2021-09-24 14:16:45.101 2690 WARNING nova.scheduler.filters.compute_filter \
{IDS} (n, n) ram: 3258MB has not been heard from in a while
2021-09-24 14:16:45.102 2690 INFO nova.filters {IDS} {GONE}\
['AvailabilityZoneFilter: (start: 1, end: 1)', 'ComputeFilter: (start: 1, \
end: 0)']
""", '(n, n) ram: 3258MB has not been heard from in a while'),
    'L6': (f"""\
2021-07-30 16:31:39.909 4638 INFO placement.requestlog {IDS} 10.0.0.1 \
"GET /allocation_candidates" status: 200 len: 53 microversion: 1.36
""", 'is a log of Placement: refusals are in the log of nova-scheduler'),
    'L7': (f"""\
2018-07-06 10:00:00.000 7 ERROR nova.scheduler.client.report {IDS} Failed to \
retrieve allocation candidates from placement API for filters {{'VCPU': 2}}. \
Got 500: <!DOCTYPE HTML PUBLIC "-//IETF//DTD HTML 2.0//EN">
<html><head>
2018-07-06 10:00:00.001 7 DEBUG nova.scheduler.manager {IDS} Got no \
allocation candidates from the Placement API. This may be a temporary \
occurrence as compute nodes start up and begin reporting inventory
""", 'the step placement: Placement answers with the error 500.'),
    'L8': (f"""\
{{"message"=>"2016-10-12 00:57:55.276 1604 WARNING nova.scheduler.utils {IDS} \
Failed to compute_task_build_instances: No valid host was found. There are \
not enough hosts available.", "@version"=>"1", "loglevel"=>"WARNING"}}
""", 'has 1 line about refusals, but not as nova-scheduler'),
    'L9': (f"""\
2016-12-05 15:56:49.900 20691 INFO nova.filters {IDS} Filter \
ComputeCapabilitiesFilter returned 0 hosts
2016-12-05 15:56:49.901 20691 INFO nova.filters {IDS} {GONE}['RetryFilter: \
(start: 9, end: 9)', 'ComputeCapabilitiesFilter: (start: 1, end: 0)']
""", 'ComputeCapabilitiesFilter leaves none of the hosts.'),
    'L10': ("""\
WARNING nova.scheduler.manager [req-...] Got no allocation candidates from \
the placement API. This could be due to insufficient resources
""", 'the step placement: Placement has no allocation candidates.'),
}


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

    def test_logs_of_the_public_are_explained_or_refused_in_a_line(self):
        for case, (log, expected) in PUBLIC_LOGS.items():
            with self.subTest(case):
                self.log.write_text(log)
                ended = self.run_command()
                text = ' '.join(ended.out.split()) or ended.err
                self.assertIn(expected.strip(), text)
                self.assertLessEqual(ended.err.count('\n'), 1)

    def test_a_log_in_another_form_says_what_to_give_instead(self):
        text = f'2026-11-22 10:00:00.123 7 INFO nova.filters {IDS} {GONE}[]'
        for content, expected in (
                (text.encode('utf-16'), 'is in UTF-16, as PowerShell'),
                (f'__CURSOR=s=7\nMESSAGE={text}\n'.encode(),
                 'with --output short-iso or json'),
                (f'Sun 2026-11-22 [s=7]\n    MESSAGE={text}\n'.encode(),
                 'with --output short-iso or json'),
                (b'Nov 22 10:00:00 ctl nova-scheduler[7]: [234B blob data]\n',
                 'has 1 line of blob data: give the output of journalctl'),
                (json.dumps({'labels': {}, 'line': text}).encode(),
                 'not an export of Loki or OpenSearch'),
                (text.replace('O n', 'O\nn').encode(), 'with broken lines'),
                (text.replace(' u ', '\nu ').encode(), 'with broken lines'),
                (text.replace('nova.filters', 'nova.compute.manager').encode(),
                 'is a log of nova-compute: refusals are in the log of'),
                (text.replace('nova.filters', 'nova.api.openstack.x').encode(),
                 'is a log of nova-api: refusals'),
                (text.replace(f'filters {IDS} {GONE}', 'conductor.x [-] ')
                 .encode(), 'and no build in it has failed: refusals are in'),
                (f'{text}\n{text[:26]}INFO nova.conductor.x [-] y'.encode(),
                 'has no refused request')):
            with self.subTest(expected):
                self.log.write_bytes(content)
                commands.check_refused(self, expected, self.run_command())

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
