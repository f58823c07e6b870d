# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

import os
import signal
import tempfile
import threading
import time
import unittest

from hpcvirt import exception
from hpcvirt.bench.execute import local


class LocalExecutorTest(unittest.TestCase):

    def setUp(self):
        self.place = local.LocalExecutor()

    def test_status_output_and_errors_come_back(self):
        done = self.place.run(['sh', '-c', 'cat; echo err >&2; exit 3'],
                              b'in')
        self.assertEqual((3, b'in', b'err\n'),
                         (done.status, done.stdout, done.stderr))

    def test_a_program_that_does_not_end_times_out(self):
        with self.assertRaisesRegex(exception.TimedOut, 'within 0.1 s'):
            self.place.run(['sleep', '5'], timeout_s=0.1)

    def test_a_program_that_timed_out_runs_on_nowhere(self):
        with tempfile.TemporaryDirectory() as scratch:
            trace = os.path.join(scratch, 'trace')
            with self.assertRaises(exception.TimedOut):
                self.place.run(['sh', '-c', 'sleep 0.5; echo >> "$1"', 'sh',
                                trace], timeout_s=0.1)
            with self.assertRaises(exception.TimedOut):
                self.place.run(['sh', '-c', '(sleep 0.5; echo >> "$1") & wait',
                                'sh', trace], timeout_s=0.1)
            time.sleep(0.7)
            self.assertFalse(os.path.exists(trace))

    def test_an_interrupt_of_a_program_that_ends_is_an_interrupt(self):
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(
            signal.SIGINT, signal.default_int_handler))
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            self.place.run(['sleep', '0.2'])

    def test_a_missing_program_is_not_installed(self):
        with self.assertRaisesRegex(exception.NotInstalled, 'no-such'):
            self.place.run(['no-such-program'])

    def test_a_file_that_cannot_be_run_is_installed_all_the_same(self):
        with tempfile.TemporaryDirectory() as scratch:
            path = os.path.join(scratch, 'program')
            with open(path, 'w', encoding='ascii'):
                pass
            with self.assertRaises(exception.Unreachable) as caught:
                self.place.run([path])
        self.assertNotIsInstance(caught.exception, exception.NotInstalled)
