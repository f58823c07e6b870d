# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt explain --history`` as its user sees it."""

import gzip
import os
import unittest
from unittest import mock

from tests.builders import commands
from tests.builders import folders
from tests.builders import log_records

a_refusal = log_records.a_refusal
line = log_records.line
BUILD = log_records.nova_line('nova.scheduler.utils',
                              log_records.BUILD, 'ERROR')


class HistoryFileTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)
        self.history = self.folder / 'history'

    def log(self, *lines, name='nova.log'):
        path = self.folder / name
        content = b''.join(lines)
        path.write_bytes(gzip.compress(content) if name.endswith('.gz')
                         else content)
        return path

    def explain(self, *logs, words=()):
        with mock.patch.dict(os.environ, COLUMNS='100'):
            return commands.run(
                'explain', '--history', self.history,
                *(word for log in logs for word in ('--scheduler-log', log)),
                *words)

    def document(self, *logs, words=()):
        ended = self.explain(*logs, words=[*words, '--format=json'])
        self.assertEqual('', ended.err)
        return commands.read_document(self, ended, status=1)

    def test_what_logs_rotate_away_is_kept_once(self):
        first = a_refusal('req-1')
        second = a_refusal('req-2', time='2026-11-23T10:00:00+00:00')
        logs = [self.log(line(first), name='nova.log.1.gz'),
                self.log(line(second), b'other\n', BUILD)]
        self.assertEqual(3, self.document(*logs)['refused_requests'])
        self.log(b'nothing of interest\n')
        self.log(line(second), line(a_refusal('req-3')), name='nova.log.1.gz')
        self.assertEqual(4, self.document(*logs)['refused_requests'])
        self.assertEqual(4, self.document()['refused_requests'])
        self.assertEqual(5, len(self.history.read_text().splitlines()))

    def test_a_request_of_a_day_and_the_most_frequent_reasons_are_found(self):
        log = self.log(*[line(a_refusal(
            f'req-{number}', instance=f'vm-{number}', flavor='big',
            time=f'2026-11-{20 + number}T10:00:00+00:00'))
            for number in range(4)], line(a_refusal('req-9')), BUILD)
        document = self.document(log)
        self.assertEqual([('big', 'filter', 'free-pcpus', 4),
                          ('-', 'build', 'build', 1),
                          ('hpc', 'filter', 'free-pcpus', 1)], sorted(
            [(kind['flavor'], kind['step'], kind['kind'], kind['requests'])
             for kind in document['kinds']], key=lambda kind: (-kind[3],
                                                               kind)))
        self.assertEqual('vm-3', document['kinds'][0]['last']['instance'])
        day = ['--since=2026-11-22T00:00Z', '--until=2026-11-23T00:00Z']
        status, out, _ = self.explain(words=[*day, '--request-id=vm-2'])
        self.assertEqual(1, status)
        self.assertIn('the request req-2 for the instance vm-2', out)
        self.assertNotIn('other refusal', out)
        commands.check_refused(self, "no refusal and no comparison of 'vm-1'",
                               self.explain(words=[*day,
                                                   '--request-id=vm-1']))

    def test_the_tables_have_the_last_refusal_and_what_is_refused_most(self):
        _, out, _ = self.explain(self.log(
            line(a_refusal('req-1')), line(a_refusal('req-2')), BUILD,
            line(a_refusal('req-3', time='2026-11-23T10:00:00+00:00'))))
        self.assertIn('the request req-3 for', out)
        self.assertIn('3 other refusals in this log:', out)
        self.assertIn('What is refused most:\n', out)
        self.assertIn('       3  hpc     filter  2026-11-23 10:00  too few '
                      'free PCPUs in a cell\n', out)

    def test_refusals_are_in_the_order_of_time(self):
        logs = [self.log(line(a_refusal(
            f'req-{day}', time=f'2026-11-{day}T10:00:00+00:00')),
            name=f'{day}.log') for day in (23, 21, 22)]
        document = self.document(*logs)
        self.assertEqual(['req-21', 'req-22', 'req-23'], [
            records[0]['request_id'] for records in document['refusals']])
        kind, = document['kinds']
        self.assertEqual('req-23', kind['last']['request_id'])

    def test_a_line_that_was_cut_as_the_disk_was_full_is_added_again(self):
        log = self.log(line(a_refusal('req-1')), line(a_refusal('req-2')))
        self.explain(log)
        self.history.write_bytes(self.history.read_bytes()[:-30])
        document = self.document(log)
        self.assertEqual((2, 1), (document['refused_requests'],
                                  document['unreadable']))

    def test_a_file_that_is_no_history_is_not_changed(self):
        log = self.log(line(a_refusal()))
        other = self.folder / 'other'
        for content in (b'root:x:0:0\n', line(a_refusal()), b'\n', b'\0' * 99):
            self.history.write_bytes(content)
            commands.check_refused(self, 'is no history of refusals',
                                   self.explain(log))
            self.assertEqual(content, self.history.read_bytes())
        self.history.unlink()
        other.write_bytes(b'')
        self.history.symlink_to(other)
        commands.check_refused(self, 'cannot be written', self.explain(log))
        self.assertEqual(b'', other.read_bytes())
        self.history.unlink()
        os.mkfifo(self.history)
        commands.check_refused(self, 'is a FIFO, not a file',
                               self.explain(log))

    def test_nothing_is_added_if_a_log_cannot_be_read(self):
        log = self.log(line(a_refusal()))
        self.explain(log)
        before = self.history.read_bytes()
        commands.check_refused(
            self, 'missing.log: cannot be read',
            self.explain(self.log(line(a_refusal('req-2'))),
                         self.folder / 'missing.log'))
        self.assertEqual(before, self.history.read_bytes())

    def test_a_history_that_is_missing_is_named(self):
        commands.check_refused(self, f'{self.history}: cannot be read',
                               self.explain())

    def test_lines_that_cannot_be_read_are_counted_as_they_are_added(self):
        _, _, err = self.explain(self.log(line(a_refusal()),
                                          line(a_refusal())[:-60]))
        self.assertEqual('hpcvirt: 1 line of hpcvirt cannot be read: cut, or '
                         'possibly forged by a user\n', err)

    def test_wrong_times_and_options_without_effect_are_refused(self):
        commands.check_refused(
            self, "--since: must be a time such as 2026-11-24 or 2026-11-24T"
            "09:30, not 'Tuesday'", self.explain(words=['--since=Tuesday']))
        commands.check_refused(
            self, '--until: needs --scheduler-log or --history',
            commands.run('explain', '--flavor=x', '--until=2026-11-24'))
        commands.check_refused(
            self, '--flavor: is not for --scheduler-log or --history',
            self.explain(words=['--flavor=x']))
