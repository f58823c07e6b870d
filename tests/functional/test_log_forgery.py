# SPDX-License-Identifier: Apache-2.0

"""No text of a user passes for a line of the filter, or reaches a terminal.

Line breaks are in it too, which plain text does not escape.

The lines are those of the formatters of oslo.log.
"""

import json
import logging
import random
import unittest

from nova import objects
from oslo_config import cfg
from oslo_context import context
from oslo_log import formatters
from oslo_log import log as oslo_logging

from hpcvirt.fit import decision_log
from hpcvirt.fleet import explain_report
from hpcvirt.fleet import log_reading
from tests.builders import log_records

LOGGERS = ('hpcvirt.nova.no_valid_host_log', 'hpcvirt.nova.shadow')

#: What a user may put into a name or into a property of an image.
BITS = ('x', ' ', '  ', ': ', '] ', '[', '"', "'", '\\', '\\"', '{', '}', '\t',
        '\r', '\x00', '\x07', '\x1b[31m', '\x1b]0;x\x07', '\x85', '\u2028',
        '\u202e', '\U0001f4a9', '; ', '=', '%s', 'INFO ', 'DEBUG ', *LOGGERS,
        '2026-11-22 10:00:00.123 7 ', 'Nov 22 10:00:00 ctl nova[7]: ',
        'hpcvirt.refusal={"a": 1}', '- ', '[None req-9 - - - - -] ')
BREAKS = ('\n', '\r\n', '\n                                    ')

QUOTING = 'nova.scheduler.filters.image_props_filter'

JOURNAL = 'Nov 22 10:00:00 ctl nova-scheduler[7]: '


def a_text(source, number, hides=False):
    """Make up text, some of which is a whole line of the filter.

    :param number: of the request; the ids of those before are known
    :param hides: whether lines of other filters are made up as well
    """
    request = f'req-{source.randint(-1, number - 1)}'
    forged = log_records.a_refusal(request)
    whole, *others = (
        log_records.line(record, logger).decode().replace(
            'None req-1 admin - - - -', f'None {request} u - - - -')
        for record, logger in (
            (forged, source.choice(LOGGERS)), ('ends', 'nova.filters'),
            ('begins', QUOTING)))
    bits = (*BITS, whole.strip(), f'\n{whole}', decision_log.write(forged),
            json.dumps({'name': LOGGERS[0],
                        'message': decision_log.write(forged)}),
            f'\n{others[0]}', *BREAKS,
            *([f'\n{others[1]}'.replace(' INFO ', ' DEBUG ')] * hides))
    return ''.join(source.choices(bits, k=source.randint(1, 8)))


def a_record(source, number):
    """Make up what the filter logs about a request, with hostile names."""
    record = source.choice((log_records.a_refusal,
                            log_records.a_comparison))
    return record(f'req-{number}', instance=a_text(source, number)[:300],
                  flavor=a_text(source, number)[:300])


class ForgeryTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        conf = cfg.ConfigOpts()
        oslo_logging.register_options(conf)
        conf([])
        self.formatter = formatters.ContextFormatter(
            datefmt=conf.log_date_format, config=conf)
        devstack = cfg.ConfigOpts()
        oslo_logging.register_options(devstack)
        devstack([])
        devstack.set_override('logging_context_format_string', (
            '%(color)s%(levelname)s %(name)s [\x1b[01;36m'
            '%(global_request_id)s %(request_id)s \x1b[00;36m'
            '%(user_identity)s'
            '%(color)s] \x1b[01;35m%(instance)s%(color)s%(message)s\x1b[00m'))
        self.devstack = formatters.ContextFormatter(config=devstack)
        self.addCleanup(setattr, context._request_store, 'context',
                        context.get_current())

    def write(self, form, logger, message, level=logging.INFO):
        """Write a message as one of several forms of a log has it."""
        record = logging.LogRecord(logger, level, 'f', 1, '%s', (message,),
                                   None)
        record.color = '\x1b[00;36m'  # The handler of oslo.log sets it.
        if form.startswith('json'):
            text = formatters.JSONFormatter().format(record)
            return text if form == 'json' else json.dumps({'log': text})
        text = self.formatter.format(record)
        if form == 'devstack':
            text = JOURNAL + self.devstack.format(record)
        elif form == 'journal':
            text = JOURNAL + text.replace('\n', '\n' + ' ' * len(JOURNAL))
        elif form == 'journal of json':
            text = json.dumps({'MESSAGE': text})
        elif form == 'pretty journal':
            text = json.dumps({'MESSAGE': text}, indent='\t')
        elif form == 'rsyslog':
            text = JOURNAL + self.devstack.format(record).replace(
                '\n', '#012').replace('\x1b', '#033')
        return text

    def a_request(self, source, number, hides, form):
        """Make up what one request logs.

        :returns: what the filter has logged of it, and the messages
        """
        context.RequestContext(request_id=f'req-{number}', user_id='u')
        written = []
        messages = [
            self.write(form, QUOTING, a_text(source, number, hides),
                       logging.DEBUG)
            for _ in range(source.randint(0, 2))]
        messages.append(self.write(form, 'nova.filters', 'Filter returned 1',
                                   logging.DEBUG))
        if source.random() < 0.5:
            written.append(a_record(source, number))
            messages.append(self.write(form, source.choice(LOGGERS),
                                       decision_log.write(written[0])))
        return written, messages

    def check(self, source):
        form = source.choice(('plain', 'devstack', 'journal', 'json', 'grep',
                              'json of a container', 'journal of json',
                              'pretty journal', 'rsyslog'))
        hides, mixed = source.random() < 0.3, source.random() < 0.3
        requests = [self.a_request(source, number, hides, form)
                    for number in range(source.randint(1, 4))]
        written = [record for records, _ in requests for record in records]
        messages = [message for _, each in requests for message in each]
        if mixed:  # Several workers log at the same time.
            turns = [index for index, (_, each) in enumerate(requests)
                     for _ in each]
            source.shuffle(turns)
            queues = [iter(each) for _, each in requests]
            messages = [next(queues[index]) for index in turns]
        lines = [line for message in messages for line in message.encode(
            errors='replace').split(b'\n')]
        if form == 'grep':
            lines = [b'nova.log:' + line for line in lines]
        found = log_reading.read(lines, None)
        refused = [record for record in written
                   if isinstance(record, decision_log.RefusedHosts)]
        if hides or mixed:
            for records in found.refusals.values():
                self.assertIn(records, [[each] for each in refused], lines)
        else:
            self.assertEqual([[record] for record in refused],
                             [*found.refusals.values()], lines)
            self.assertEqual(len(written) - len(refused),
                             found.shadow['requests'], lines)
        text = explain_report.log_text(found, 100)
        self.assertTrue(text.replace('\n', '').isprintable(), text)
        return found.unreadable

    def check_all(self, numbers):
        doubtful = 0
        for number in numbers:
            with self.subTest(number=number):
                doubtful += self.check(random.Random(f'forged line {number}'))
        self.assertLess(len(numbers) // 20, doubtful)

    def test_500_logs(self):
        self.check_all(range(500))

    def test_periodic_10000_logs(self):
        self.check_all(range(500, 10500))

    def test_a_property_that_a_filter_of_nova_quotes(self):
        forged = log_records.line(log_records.a_refusal()).decode()
        properties = objects.ImageMetaProps(
            os_command_line=f'hpcvirt.refusal={forged.strip()}')
        line = self.write('plain', QUOTING,
                          f'Instance contains properties {properties}')
        self.assertIn(forged.strip(), line)
        self.assertEqual(0, log_reading.read([line.encode()], None).refused)

    def test_a_line_break_in_a_property_begins_no_line(self):
        context.RequestContext(request_id='req-2', user_id='u')
        forged = log_records.LINE.decode()
        properties = objects.ImageMetaProps(os_command_line=f'x)\n{forged}')
        text = self.write('plain', QUOTING, f'Instance contains {properties}',
                          logging.DEBUG)
        lines = (text.encode() + b'\n').splitlines(True)
        self.assertIn(forged.encode(), lines)
        true = self.write('plain', LOGGERS[0], decision_log.write(
            log_records.a_refusal('req-2'))).encode()
        ends = self.write('plain', 'nova.filters', 'x', logging.DEBUG).encode()
        for more, refused, unreadable in (
                ([], 0, 1), ([true], 1, 1), ([forged.encode()], 0, 2),
                ([ends, true], 1, 1),
                # The ids of requests that end are known to their users.
                ([ends, forged.encode()], 1, 1),
                # The request has been killed.
                ([b'x'] * 10_001 + [forged.encode()], 1, 1)):
            found = log_reading.read(lines + more, None)
            self.assertEqual((refused, unreadable),
                             (found.refused, found.unreadable), more[:2])
