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

import threading
import unittest

from hpcvirt import exception
from hpcvirt.bench.execute import ssh
from tests.integration.bench import ssh_server


class SSHExecutorTest(unittest.TestCase):

    def setUp(self):
        self.server = self.enterContext(ssh_server.running())
        self.place = ssh.SSHExecutor.from_url(self.server.url)
        self.addCleanup(self.place.close)

    def test_status_output_and_errors_come_back(self):
        done = self.place.run(['sh', '-c', 'echo out; echo err >&2; exit 3'])
        self.assertEqual((3, b'out\n', b'err\n'),
                         (done.status, done.stdout, done.stderr))

    def test_what_comes_after_the_status_is_not_lost(self):
        self.server.status_first = True
        done = self.place.run(['sh', '-c', 'echo out; echo err >&2; exit 3'])
        self.assertEqual((3, b'out\n', b'err\n'),
                         (done.status, done.stdout, done.stderr))

    def test_a_process_left_behind_is_not_waited_for(self):
        self.server.status_first = True
        done = self.place.run(['sh', '-c', 'echo out; sleep 30 &'],
                              timeout_s=15)
        self.assertEqual((0, b'out\n'), (done.status, done.stdout))

    def test_arguments_are_not_split(self):
        done = self.place.run(['printf', '%s|', 'a b', "c'd", '$HOME'])
        self.assertEqual(b"a b|c'd|$HOME|", done.stdout)

    def test_large_input_and_output_pass(self):
        data = bytes(range(256)) * 4096
        done = self.place.run(['cat'], data)
        self.assertEqual(data, done.stdout)

    def test_a_broken_connection_is_made_again(self):
        self.place.run(['true'])
        self.server.cut()
        self.assertEqual(b'x\n', self.place.run(['echo', 'x']).stdout)

    def test_a_connection_that_breaks_during_a_command_is_lost(self):
        threading.Timer(0.5, self.server.cut).start()
        self.assertRaises(exception.ConnectionLost, self.place.run,
                          ['sleep', '5'])

    def test_a_program_that_does_not_end_times_out(self):
        self.assertRaisesRegex(exception.TimedOut, 'within 0.5 s',
                               self.place.run, ['sleep', '5'], b'', 0.5)

    def test_a_server_that_has_ended_is_reported_in_one_line(self):
        self.server.close()
        self.place.close()
        with self.assertRaises(exception.ConnectionLost) as caught:
            self.place.run(['true'])
        self.assertNotIn('\n', str(caught.exception))

    def test_a_wrong_user_is_refused(self):
        url = self.server.url.replace('hpc@', 'other@')
        place = ssh.SSHExecutor.from_url(url)
        self.addCleanup(place.close)
        self.assertRaises(exception.Unreachable, place.run, ['true'])
