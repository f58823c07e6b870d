# SPDX-License-Identifier: Apache-2.0

"""What scrapes get while other programs read a fleet."""

import contextlib
import gzip
import io
import signal
import subprocess
import threading
import time
import unittest
from unittest import mock

from prometheus_client import parser

from hpcvirt import exception
from hpcvirt.cmd import output
from hpcvirt.cmd.fleet import exporter
from tests.builders import commands
from tests.builders import folders
from tests.integration.cmd.fleet import test_serve

SOME = '# TYPE figure gauge\nfigure{host="n1"} 3.0\n'

#: Prints what the files of a folder have.
PRINT = 'cat "$0/out"; cat "$0/err" >&2; exit "$(cat "$0/status")"'


class FleetReaderTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)
        self.stop = threading.Event()
        self.enterContext(mock.patch.object(output, '_warned', set()))

    def prepare(self, out, err='', status=0):
        for name, content in (('out', out), ('err', err), ('status', status)):
            (self.folder / name).write_text(str(content))

    def reader(self, script=PRINT, interval_s=60):
        return exporter.FleetReader(['sh', '-c', script, self.folder],
                                    interval_s)

    def scrape(self, reader, **environ):
        """Scrape; return the samples and the answer."""
        headers = {}
        answer = b''.join(reader(environ, lambda status, found: (
            headers.update(found), self.assertEqual('200 OK', status))))
        self.assertEqual(len(answer), int(headers['Content-Length']))
        text = (gzip.decompress(answer)
                if headers.get('Content-Encoding') == 'gzip' else answer)
        return {sample.name: sample.value for family
                in parser.text_string_to_metric_families(text.decode())
                for sample in family.samples}, headers

    def read(self, reader):
        """Read the fleet; return what is said on standard error."""
        with (contextlib.redirect_stderr(io.StringIO()) as said,
              contextlib.suppress(exception.Unreachable)):
            reader.read(self.stop)
        return said.getvalue()

    def test_a_scrape_gets_the_last_good_answer_and_its_age(self):
        self.prepare(SOME)
        reader = self.reader()
        begin = time.time()
        self.read(reader)
        good, _ = self.scrape(reader)
        self.assertEqual((3, 1, 0), (
            good['figure'], good['hpcvirt_up'],
            good['hpcvirt_read_failures_total']))
        self.assertLessEqual(begin,
                             good['hpcvirt_last_success_timestamp_seconds'])
        for out, status in (('', 2), ('figure{host="n1"} 4', 2), ('', 0)):
            self.prepare(out, 'a warning\nhpcvirt: why', status)
            self.read(reader)
            found, _ = self.scrape(reader)
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
        thread = threading.Thread(target=reader.read_again, args=(self.stop,))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.stop.set)
        time.sleep(1.5)
        begin = time.monotonic()
        found, _ = self.scrape(reader)
        self.assertLess(time.monotonic() - begin, 0.5)
        self.assertEqual(3, found['figure'])
        self.assertGreater(found['hpcvirt_answer_age_seconds'], 1.4)
        self.prepare(SOME.replace('3', '4'))
        go.touch()
        deadline = time.monotonic() + 20
        while self.scrape(reader)[0]['figure'] == 3:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def test_failures_are_counted_and_said_and_warnings_are_said_once(self):
        self.prepare(SOME, 'Warning: x\n')
        reader = self.reader(interval_s=0)
        self.assertEqual('Warning: x\n', self.read(reader))
        self.assertEqual('', self.read(reader))
        self.prepare('', 'Warning: x\nhpcvirt: fleet.json: is not JSON\n', 2)

        class Twice(threading.Event):
            left = 3

            def wait(self, *_):
                self.left -= 1
                return not self.left

        with contextlib.redirect_stderr(io.StringIO()) as said:
            reader.read_again(Twice())
        self.assertEqual('hpcvirt capacity: fleet.json: is not JSON\n' * 2,
                         said.getvalue())
        self.assertEqual(2, self.scrape(reader)[0][
            'hpcvirt_read_failures_total'])

    def test_a_failure_has_the_last_line_as_its_reason(self):
        self.prepare('', 'Warning: x\nhpcvirt: --flavor: is no flavor\n', 2)
        for script, reason in (
                (PRINT, '^--flavor: is no flavor$'),
                ('kill -9 $$', 'that reads the fleet ended with -9$')):
            with (contextlib.redirect_stderr(io.StringIO()),
                  self.assertRaisesRegex(exception.Unreachable, reason)):
                self.reader(script).read(self.stop)

    def test_a_reading_ends_with_the_command(self):
        timer = threading.Timer(0.5, self.stop.set)
        timer.start()
        self.addCleanup(timer.cancel)
        begin = time.monotonic()
        self.reader('exec sleep 60').read(self.stop)
        self.assertLess(time.monotonic() - begin, 20)

    def test_a_reading_that_does_not_end_is_ended(self):
        with (mock.patch.object(exporter, 'MAX_READING_S', 0.5),
              self.assertRaisesRegex(exception.Unreachable,
                                     'could not be read in 0.5 s')):
            self.reader('exec sleep 60').read(self.stop)

    def test_the_answer_is_packed_for_who_can_unpack_it(self):
        self.prepare(SOME + '# a comment\n' * 1000)
        reader = self.reader()
        self.read(reader)
        plain, headers = self.scrape(reader)
        packed, small = self.scrape(reader, HTTP_ACCEPT_ENCODING='gzip')
        self.assertEqual(set(plain), set(packed))
        self.assertEqual('gzip', small['Content-Encoding'])
        self.assertLess(int(small['Content-Length']),
                        int(headers['Content-Length']) / 5)


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
