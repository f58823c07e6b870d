# SPDX-License-Identifier: Apache-2.0

"""What scrapes get while other programs read a fleet."""

import contextlib
import gzip
import http.client
import io
import os
import signal
import subprocess
import threading
import time
import unittest
from unittest import mock

from prometheus_client import parser

from hpcvirt import exception
from hpcvirt.cmd import command
from hpcvirt.cmd import output
from hpcvirt.cmd.fleet import exporter
from tests.builders import commands
from tests.builders import folders
from tests.builders import ports
from tests.integration.cmd.fleet import test_serve

SOME = '# TYPE figure gauge\nfigure{host="n1"} 3.0\n'

#: Prints what the files of a folder have.
PRINT = 'cat "$0/out"; cat "$0/err" >&2; exit "$(cat "$0/status")"'


class FleetReaderTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)
        self.enterContext(mock.patch.object(output, '_warned', set()))

    def prepare(self, out, err='', status=0):
        for name, content in (('out', out), ('err', err), ('status', status)):
            (self.folder / name).write_text(str(content))

    def reader(self, script=PRINT, interval_s=60):
        return exporter.FleetReader(['sh', '-c', script, self.folder],
                                    interval_s)

    def scrape(self, reader):
        """Scrape; return the samples."""
        return {sample.name: sample.value for family
                in parser.text_string_to_metric_families(
                    reader.answer(packed=False).decode())
                for sample in family.samples}

    def read(self, reader):
        """Read the fleet; return what is said on standard error."""
        with (contextlib.redirect_stderr(io.StringIO()) as said,
              contextlib.suppress(exception.Unreachable)):
            reader.read()
        return said.getvalue()

    def read_again(self, reader, number):
        """Read the fleet some more times; return what is said."""
        readings = iter([reader.read] * number)

        def read():
            try:
                next(readings)()
            except StopIteration:
                raise KeyboardInterrupt from None
        with (mock.patch.object(reader, 'read', read),
              contextlib.redirect_stderr(io.StringIO()) as said,
              contextlib.suppress(KeyboardInterrupt)):
            reader.read_again()
        return said.getvalue()

    def test_a_scrape_gets_the_last_good_answer_and_its_age(self):
        self.prepare(SOME)
        reader = self.reader(interval_s=0)
        begin = time.time()
        self.read(reader)
        good = self.scrape(reader)
        self.assertEqual((3, 1, 0), (
            good['figure'], good['hpcvirt_up'],
            good['hpcvirt_read_failures_total']))
        self.assertLessEqual(begin,
                             good['hpcvirt_last_success_timestamp_seconds'])
        for out, status in (('', 2), ('figure{host="n1"} 4', 2), ('', 0)):
            self.prepare(out, 'a warning\nhpcvirt: why', status)
            self.read_again(reader, 1)
            found = self.scrape(reader)
            if status:
                self.assertEqual((3, 0), (found['figure'],
                                          found['hpcvirt_up']))
                self.assertEqual(
                    good['hpcvirt_last_success_timestamp_seconds'],
                    found['hpcvirt_last_success_timestamp_seconds'])
                self.assertGreater(found['hpcvirt_answer_age_seconds'],
                                   good['hpcvirt_answer_age_seconds'])
            else:
                self.assertNotIn('figure', found)
                self.assertEqual(1, found['hpcvirt_up'])

    def test_a_scrape_during_a_reading_is_answered_at_once(self):
        self.prepare(SOME)
        go = self.folder / 'go'
        reader = self.reader(f'while ! [ -e "$0/go" ]; do sleep 0.1; done; '
                             f'{PRINT}', 1)
        go.touch()
        self.read(reader)
        go.unlink()
        thread = threading.Thread(target=reader.read)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(go.touch)
        time.sleep(1.5)
        begin = time.monotonic()
        found = self.scrape(reader)
        self.assertLess(time.monotonic() - begin, 0.5)
        self.assertEqual((3, 1), (found['figure'], found['hpcvirt_up']))
        self.assertGreater(found['hpcvirt_answer_age_seconds'], 1.4)
        self.prepare(SOME.replace('3', '4'))
        go.touch()
        thread.join(20)
        self.assertEqual(4, self.scrape(reader)['figure'])

    def test_failures_are_counted_and_said_and_warnings_are_said_once(self):
        self.prepare(SOME, 'Warning: x\n')
        reader = self.reader(interval_s=0)
        self.assertEqual('Warning: x\n', self.read(reader))
        self.assertEqual('', self.read(reader))
        self.prepare('', 'Warning: x\nhpcvirt: fleet.json: is not JSON\n', 2)
        self.assertEqual('hpcvirt capacity: fleet.json: is not JSON\n' * 2,
                         self.read_again(reader, 2))
        self.assertEqual(2, self.scrape(reader)[
            'hpcvirt_read_failures_total'])

    def test_the_answer_is_packed_for_who_can_unpack_it(self):
        self.prepare(SOME + '# a comment\n' * 1000)
        reader = self.reader()
        self.read(reader)
        [port] = ports.find_ports(1)
        with (contextlib.redirect_stdout(io.StringIO()),
              exporter.run_server(reader.answer, ('127.0.0.1', port))):
            answers = []
            for headers in ({}, {'Accept-Encoding': 'gzip'}):
                client = http.client.HTTPConnection('127.0.0.1', port, 10)
                self.addCleanup(client.close)
                client.request('GET', '/metrics', headers=headers)
                answer = client.getresponse()
                answers.append((answer.headers['Content-Encoding'],
                                answer.read()))
        (no, plain), (gz, packed) = answers
        self.assertEqual((None, 'gzip'), (no, gz))
        unpacked = gzip.decompress(packed)
        self.assertTrue(unpacked.endswith(reader._text))
        self.assertTrue(plain.endswith(reader._text))
        self.assertLess(len(packed), len(plain) / 5)

    def test_a_failure_has_the_last_line_as_its_reason(self):
        self.prepare('', 'Warning: x\nhpcvirt: --flavor: is no flavor\n', 2)
        for script, reason in (
                (PRINT, '^--flavor: is no flavor$'),
                ('kill -9 $$', 'that reads the fleet ended with -9$')):
            with (contextlib.redirect_stderr(io.StringIO()),
                  self.assertRaisesRegex(exception.Unreachable, reason)):
                self.reader(script).read()

    def test_sigterm_ends_a_reading(self):
        timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM))
        timer.start()
        self.addCleanup(timer.cancel)
        begin = time.monotonic()
        with command.interrupting_signals():
            self.assertRaises(KeyboardInterrupt,
                              self.reader('exec sleep 60').read)
        self.assertLess(time.monotonic() - begin, 20)

    def test_a_reading_that_does_not_end_is_ended(self):
        with (mock.patch.object(exporter, 'MAX_READING_S', 0.5),
              self.assertRaisesRegex(exception.Unreachable,
                                     'did not end within 0.5 s')):
            self.reader('exec sleep 60').read()


class CommandTest(test_serve.ServedFleet):

    def test_what_cannot_be_served_is_said_in_one_line(self):
        for words, expected in (
                (('192.0.2.1:1',), '--serve: 192.0.2.1:1 cannot be used '),
                ((':0', '--flavor=x'), "--flavor: 'x' is not a flavor of ")):
            commands.check_refused(self, expected, commands.run(
                'capacity', '--fleet', self.fleet, '--serve', *words))

    def test_no_module_of_the_current_directory_is_imported(self):
        for name in ('json', 'hpcvirt'):
            (self.folder / f'{name}.py').write_text('raise SystemExit(9)')
        with self.start('--serve=:0', cwd=self.folder) as process:
            self.addCleanup(process.kill)
            self.assertIn('Serving', process.stdout.readline())
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)
        self.assertEqual(0, process.returncode)

    def test_the_metrics_are_a_format_too(self):
        done = subprocess.run(
            [*test_serve.HPCVIRT, 'capacity', f'--fleet={self.fleet}',
             '--format=prometheus'], stdout=subprocess.PIPE, text=True,
            stderr=subprocess.DEVNULL, check=True)
        self.assertIn('\nhpcvirt_hypervisor_pcpus{az_aggregate="",'
                      'hypervisor="n1",project_aggregate=""} 32.0\n',
                      done.stdout)
