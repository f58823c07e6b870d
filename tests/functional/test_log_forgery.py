# SPDX-License-Identifier: Apache-2.0

"""No text of a user passes for a line of the filter, or reaches a terminal.

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
from hpcvirt.fleet import log_reading
from hpcvirt.fleet import log_report
from tests.unit.fleet import test_log_reading

LOGGERS = ('hpcvirt.nova.no_valid_host_log', 'hpcvirt.nova.shadow')

#: What a user may put into a name or into a property of an image.
BITS = ('x', ' ', '  ', ': ', '] ', '[', '"', "'", '\\', '\\"', '{', '}', '\t',
        '\r', '\x00', '\x07', '\x1b[31m', '\x1b]0;x\x07', '\x85', '\u2028',
        '\u202e', '\U0001f4a9', '; ', '=', '%s', 'INFO ', 'DEBUG ', *LOGGERS,
        '2026-11-22 10:00:00.123 7 ', 'Nov 22 10:00:00 ctl nova[7]: ',
        'hpcvirt.refusal={"a": 1}', '- ', '[None req-9 - - - - -] ')
#: Text in which each message stays in its line can have more.
BREAKS = ('\n', '\r\n', '\n                                    ')

JOURNAL = 'Nov 22 10:00:00 ctl nova-scheduler[7]: '


def a_text(source, breaks):
    """Make up text, some of which is a whole line of the filter."""
    forged = test_log_reading.a_refusal('req-forged')
    whole = test_log_reading.line(forged, source.choice(LOGGERS)).decode()
    bits = (*BITS, whole.strip(), decision_log.write(forged), json.dumps(
        {'name': LOGGERS[0], 'message': decision_log.write(forged)}),
        *(BREAKS if breaks else ()))
    return ''.join(source.choices(bits, k=source.randint(1, 8)))


def a_record(source, number):
    """Make up what the filter logs about a request, with hostile names."""
    record = source.choice((test_log_reading.a_refusal,
                            test_log_reading.a_comparison))
    return record(f'req-{number}', instance=a_text(source, True)[:300],
                  flavor=a_text(source, True)[:300])


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

    def write(self, form, logger, message):
        """Write a message as one of several forms of a log has it."""
        record = logging.LogRecord(logger, logging.INFO, 'f', 1,
                                   '%s', (message,), None)
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
        return text

    def check(self, source):
        form = source.choice(('plain', 'devstack', 'journal', 'json',
                              'json of a container', 'journal of json'))
        breaks = form not in ('plain', 'devstack')
        context.RequestContext(request_id='req-1', user_id='u')
        written, lines = [], []
        for number in range(source.randint(1, 4)):
            if source.random() < 0.5:
                written.append(a_record(source, number))
                logger, text = (source.choice(LOGGERS),
                                decision_log.write(written[-1]))
            else:
                logger, text = 'nova.filters', a_text(source, breaks)
            lines += self.write(form, logger, text).encode(
                errors='replace').split(b'\n')
        found = log_reading.read(lines, None)
        refused = [record for record in written
                   if isinstance(record, decision_log.RefusedHosts)]
        self.assertEqual([[record] for record in refused],
                         [*found.refusals.values()], lines)
        self.assertEqual(len(written) - len(refused),
                         found.shadow['requests'], lines)
        self.assertEqual(0, found.unreadable, lines)
        text = log_report.text(found, 100)
        self.assertTrue(text.replace('\n', '').isprintable(), text)

    def check_all(self, numbers):
        for number in numbers:
            with self.subTest(number=number):
                self.check(random.Random(f'forged line {number}'))

    def test_500_logs(self):
        self.check_all(range(500))

    def test_periodic_10000_logs(self):
        self.check_all(range(500, 10500))

    def test_a_property_that_a_filter_of_nova_quotes(self):
        forged = test_log_reading.line(test_log_reading.a_refusal()).decode()
        properties = objects.ImageMetaProps(
            os_command_line=f'hpcvirt.refusal={forged.strip()}')
        line = self.write('plain', 'nova.scheduler.filters.image_props_filter',
                          f'Instance contains properties {properties}')
        self.assertIn(forged.strip(), line)
        self.assertEqual(0, log_reading.read([line.encode()], None).refused)
