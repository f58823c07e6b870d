# SPDX-License-Identifier: Apache-2.0

"""A line of oslo.log is found, with its time, in whatever log it is."""

import datetime
import json
import os
import time
import unittest
from unittest import mock

from hpcvirt.fleet import log_line

NOW = datetime.datetime(2026, 11, 22, 12, tzinfo=datetime.UTC)

#: As DevStack and other services write it whose log has times of its own.
SHORT = ('INFO nova.filters [None req-1 admin admin] Filter ComputeFilter '
         'returned 0 hosts')
COLORED = ('\x1b[00;36mINFO nova.filters [\x1b[01;36mNone req-1 \x1b[00;36m'
           'admin admin\x1b[00;36m] \x1b[01;35m\x1b[00;36mFilter '
           'ComputeFilter returned 0 hosts\x1b[00m')
TEN = '2026-11-22T10:00:00.000+00:00'
PRECISE = '2026-11-22T10:00:00.123+00:00'

#: What precedes the line, and its time.
PREFIXES = (
    # journalctl: short, short-precise, short-iso, short-iso-precise,
    # short-full, short-unix, short-monotonic, short-delta, with-unit, cat
    ('Nov 22 10:00:00 ctl nova-scheduler[7]: ', TEN),
    ('Nov 22 10:00:00.123456 ctl nova-scheduler[7]: ', PRECISE),
    ('2026-11-22T10:00:00+0000 ctl nova-scheduler[7]: ', TEN),
    ('2026-11-22T11:00:00+01:00 ctl nova-scheduler[7]: ', TEN),
    ('2026-11-22T10:00:00.123456+0000 ctl nova-scheduler[7]: ', PRECISE),
    ('Sun 2026-11-22 10:00:00 UTC ctl nova-scheduler[7]: ', TEN),
    ('Sun 2026-11-22 13:00:00 +03 ctl nova-scheduler[7]: ', TEN),
    ('1795341600.123456 ctl nova-scheduler[7]: ', PRECISE),
    ('[  123.456789] ctl nova-scheduler[7]: ', ''),
    ('[  123.456789 <    0.000123 >] ctl nova-scheduler[7]: ', ''),
    ('Sun 2026-11-22 10:00:00 UTC ctl devstack@n-sch.service[7]: ', TEN),
    ('Nov 22 10:00:00 nova-scheduler[7]: ', TEN),  # --no-hostname
    ('', ''),
    # rsyslog: TraditionalFileFormat, FileFormat, ForwardFormat,
    # TraditionalForwardFormat, SyslogProtocol23Format
    ('Nov 22 10:00:00 ctl nova-scheduler: ', TEN),
    ('2026-11-22T10:00:00.123456+00:00 ctl nova-scheduler[7]: ', PRECISE),
    ('2026-11-22T10:00:00.123456Z ctl nova-scheduler[7]: ', PRECISE),
    ('<134>2026-11-22T10:00:00.123456+00:00 ctl nova-scheduler[7]: ', PRECISE),
    ('<134>Nov 22 10:00:00 ctl nova-scheduler[7]: ', TEN),
    ('<134>1 2026-11-22T10:00:00.123456+00:00 ctl nova-scheduler 7 - -  ',
     PRECISE),
    ('<134>1 2026-11-22T10:00:00.123+00:00 ctl nova-scheduler - - [a b="c"] ',
     PRECISE),
    ('<134>1 2026-11-22T10:00:00.123+00:00 ctl nova 7 - [a b="c"][d e="f"] ',
     PRECISE),
    # containers
    ('2026-11-22T10:00:00.123456789+00:00 stderr F ', PRECISE),
    ('2026-11-22T10:00:00.123456789Z ', PRECISE),
    # the mark of UTF-8 at the beginning of a file, and of a text in syslog
    ('\ufeff', ''),
    ('<134>1 2026-11-22T10:00:00.123456Z ctl nova-scheduler 7 - - \ufeff',
     PRECISE),
    # a mail that quotes another
    ('> > Nov 22 10:00:00 ctl nova-scheduler[7]: ', TEN),
)


class LogLineTest(unittest.TestCase):
    def setUp(self):
        patch = mock.patch.dict(os.environ, TZ='UTC')
        patch.start()
        time.tzset()
        self.addCleanup(time.tzset)
        self.addCleanup(patch.stop)

    def assert_found(self, text, expected):
        found = log_line.find(text)
        self.assertIsNotNone(found, text)
        self.assertEqual(
            ('nova.filters', 'None req-1 admin admin', 'INFO',
             'Filter ComputeFilter returned 0 hosts', expected),
            (found.logger, found.context, found.level, found.message,
             log_line.read_time(found.time, NOW)), text)

    def test_the_time_is_that_of_the_prefix(self):
        for prefix, expected in PREFIXES:
            for text in (SHORT, COLORED, COLORED.replace('\x1b', '#033'),
                         COLORED.replace('\x1b', '^['),
                         COLORED.replace('\x1b', '')):
                self.assert_found(prefix + text, expected)

    def test_the_time_of_oslo_log_comes_first(self):
        for prefix, _ in PREFIXES:
            # log_date_format may have a T.
            for between in ' T':
                self.assert_found(
                    f'{prefix}2026-11-22{between}10:00:00.123 7 {SHORT}',
                    PRECISE)

    def test_the_objects_of_journald_and_docker_have_a_time(self):
        journal = {'__REALTIME_TIMESTAMP': '1795341600123456',
                   'MESSAGE': SHORT}
        for plain in (
                journal,
                # Text with colors is a list of bytes.
                {**journal, 'MESSAGE': list(COLORED.encode())},
                {'_SOURCE_REALTIME_TIMESTAMP': '1795341600123456',
                 'MESSAGE': SHORT},
                {'log': f'{SHORT}\n', 'stream': 'stderr',
                 'time': '2026-11-22T10:00:00.123456789Z'}):
            for before in ('', 'data: ', '\x1e'):
                self.assert_found(before + json.dumps(plain), PRECISE)
        for wrong in ([300], [None], ['a'], {}, None):
            self.assertIsNone(log_line.find(json.dumps({'MESSAGE': wrong})))

    def test_an_object_of_several_lines_is_joined(self):
        for message in (SHORT, list(COLORED.encode())):
            pretty = json.dumps({'__REALTIME_TIMESTAMP': '1795341600123456',
                                 'MESSAGE': message}, indent='\t')
            lines = pretty.encode().splitlines()
            whole, = log_line.join_objects(lines)
            self.assert_found(whole.decode(), PRECISE)

    def test_lines_that_are_no_object_stay_as_they_are(self):
        for lines in ([b'{', b'x', b'}'], [b'{', b' x', b'}'], [b'{'],
                      [b'a', b'{', b' "b": 1,', b'c'], [b'}'],
                      [b'{', *[b' 1'] * 100_000]):
            self.assertEqual(lines, [*log_line.join_objects(lines)])

    def test_a_time_without_a_year_is_the_last_one(self):
        for text, expected in (
                ('Nov 22 11:59:59', '2026-11-22T11:59:59.000+00:00'),
                # The clock of another machine may be ahead.
                ('Nov 23 11:00:00', '2026-11-23T11:00:00.000+00:00'),
                ('Dec  1 00:00:00', '2025-12-01T00:00:00.000+00:00'),
                ('Feb 29 00:00:00', '2024-02-29T00:00:00.000+00:00')):
            self.assertEqual(expected, log_line.read_time(text, NOW))

    def test_what_is_no_time_is_refused(self):
        for text in ('Nox 22 10:00:00', 'Feb 30 10:00:00', '9' * 12 + '.0',
                     'Nov 22 25:00:00', '2026-13-01 10:00:00'):
            with self.assertRaises(ValueError):
                log_line.read_time(text, NOW)

    def test_times_without_a_zone_are_those_of_this_machine(self):
        for zone, expected in (('UTC', '10'), ('EST+5', '15')):
            with mock.patch.dict(os.environ, TZ=zone):
                time.tzset()
                self.assertEqual(
                    f'2026-11-22T{expected}:00:00.123+00:00',
                    log_line.normalize_time('2026-11-22 10:00:00,123'))
        self.assertEqual(
            '2026-11-22T08:00:00.000+00:00',
            log_line.normalize_time('2026-11-22T10:00+02:00'))

    def test_what_is_no_line_of_oslo_log_is_none(self):
        for text in ('', 'x', 'Nov 22 10:00:00 ctl sshd[7]: Failed password',
                     f'Nov 22 10:00:00 ctl sshd[7]: user {SHORT}', '{', '{}'):
            self.assertIsNone(log_line.find(text))
