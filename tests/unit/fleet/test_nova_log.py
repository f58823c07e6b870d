# SPDX-License-Identifier: Apache-2.0

"""What is read from the lines of Nova itself."""

import datetime
import os
import time
import unittest
from unittest import mock

from hpcvirt.fleet import log_reading
from hpcvirt.fleet import nova_log

INSTANCE = '2f9ab1f0-6a0b-4f6d-9d2c-8f3b6a0c1e55'

#: As the services of Nova 34 write them.
PLACEMENT = (
    'Got no allocation candidates from the Placement API. This could be due '
    'to insufficient resources or a temporary occurrence as compute nodes '
    'start up.')
FILTERS = (
    'Filtering removed all hosts for the request with instance ID '
    f"'{INSTANCE}'. Filter results: ['ComputeFilter: (start: 9, end: 7)', "
    "'ImagePropertiesFilter: (start: 7, end: 0)']")
BUILD = (
    f'[instance: {INSTANCE}] Error from last host: node1 (node node1): '
    "['Traceback (most recent call last):\\n', '  File \"manager.py\", line "
    "2649, in _build_and_run_instance\\n', 'nova.exception."
    'ComputeResourcesUnavailable: Insufficient compute resources: Claim pci '
    "failed.\\n', '\\nDuring handling of the above exception, another "
    "exception occurred:\\n\\n', 'nova.exception.RescheduledException: Build "
    f'of instance {INSTANCE} was re-scheduled: Insufficient compute resources:'
    " Claim pci failed.\\n']")
RESIZE = (
    f'[instance: {INSTANCE}] Error from last host: node1 (node node1): '
    '["nova.exception.ResizeError: It can\'t be resized\\n"]')


def line(logger, message, level='INFO', context='None req-1 u p - - -'):
    return (f'2026-11-22 10:00:00.123 7 {level} {logger} [{context}] '
            f'{message}\n').encode()


class ReadTest(unittest.TestCase):

    def read(self, *lines):
        found = log_reading.read(lines, None)
        self.assertEqual(0, found.unreadable)
        return [record for records in found.refusals.values()
                for record in records]

    def test_the_failures_of_each_step_are_read(self):
        for logger, message, expected in (
                ('nova.scheduler.manager', PLACEMENT, (
                    None, 'placement', 'placement', 0, '',
                    'Placement has no allocation candidates')),
                ('nova.filters', FILTERS, (
                    INSTANCE, 'filter', 'ImagePropertiesFilter', 7, '',
                    'ImagePropertiesFilter leaves none of the hosts')),
                ('nova.scheduler.utils', BUILD, (
                    INSTANCE, 'build', 'build', 1, 'node1',
                    'Insufficient compute resources: Claim pci failed.')),
                ('nova.scheduler.utils', RESIZE, (
                    INSTANCE, 'build', 'build', 1, 'node1',
                    "nova.exception.ResizeError: It can't be resized"))):
            record, = self.read(line(logger, message))
            self.assertEqual(expected, (
                record.instance, record.step, record.kind, record.hosts,
                record.examples, record.reason))
            self.assertEqual('req-1', record.request_id)

    def test_what_is_no_failure_is_left_out(self):
        self.assertEqual([], self.read(
            line('nova.filters', FILTERS.replace('ImageProperties',
                                                 'HPCTopology')),
            line('nova.filters', 'Filter ComputeFilter returned 0 hosts'),
            line('nova.filters', "Filtering removed all hosts for the request "
                 f"with instance ID '{INSTANCE}'. Filter results: "
                 "[('ComputeFilter', None)]", 'DEBUG'),
            line('nova.scheduler.utils', 'Attempting to claim resources'),
            line('nova.x', PLACEMENT), line('nova.x', BUILD)))

    def test_the_id_is_that_of_the_request_and_not_the_global_one(self):
        for context, expected in (
                ('None req-1 u p - - -', 'req-1'),
                ('req-g req-1 u p', 'req-1'), ('req-1 u p', 'req-1'),
                ('None req-1 req-user p', 'req-1'), ('None None - -', None),
                ('-', None)):
            record, = self.read(line('nova.scheduler.manager', PLACEMENT,
                                     context=context))
            self.assertEqual(expected, record.request_id, context)

    def test_a_line_without_a_time_cannot_be_read(self):
        found = log_reading.read(
            [b'INFO nova.scheduler.manager [None req-1 u] '
             + PLACEMENT.encode()], None)
        self.assertEqual((0, 1), (found.refused, found.unreadable))

    def test_times_without_a_zone_are_those_of_this_machine(self):
        self.addCleanup(time.tzset)
        for zone, expected in (('UTC', '10'), ('EST+5', '15')):
            with mock.patch.dict(os.environ, TZ=zone):
                time.tzset()
                self.assertEqual(
                    f'2026-11-22T{expected}:00:00.123+00:00',
                    nova_log.normalize_time('2026-11-22 10:00:00,123'))
        self.assertEqual(
            '2026-11-22T08:00:00.000+00:00',
            nova_log.normalize_time('2026-11-22T10:00+02:00'))

    def test_hostile_lines_take_no_time(self):
        begin = time.process_time()
        for message in (
                FILTERS[:-20] + "'x: (start: 9, end: 0)'" * 2000,
                FILTERS.replace("['", "['" + "x'" * 30000),
                BUILD[:-2] + "\\n', '" * 20000 + "']",
                '[instance: ' * 5000 + BUILD):
            for logger in nova_log.LOGGERS:
                log_reading.read([line(logger, message)], None)
        self.assertLess(time.process_time() - begin, 3)

    def test_the_reason_is_of_bounded_length(self):
        record, = self.read(line('nova.scheduler.utils', BUILD.replace(
            'Claim pci', 'Claim ' + 'x' * 9999)))
        self.assertEqual(300, len(record.reason))

    def test_only_a_part_of_the_time_is_read(self):
        when = datetime.datetime.fromisoformat(
            '2026-11-22 10:00:00.123').astimezone(datetime.UTC)
        second = datetime.timedelta(seconds=1)
        for since, until, expected in (
                (when - second, when + second, 1),
                (when - second, when - second / 2, 0),
                (when + second / 2, when + second, 0)):
            found = log_reading.read(
                [line('nova.scheduler.manager', PLACEMENT)], None,
                since.isoformat(timespec='milliseconds'),
                until.isoformat(timespec='milliseconds'))
            self.assertEqual(expected, found.refused)
