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

"""Which process measures: seen by another one."""

import os
import subprocess
import sys
import tempfile
import unittest

from hpcvirt import exception
from hpcvirt.bench.results import activity

HOLD = """
import sys
from hpcvirt.bench.results import activity
with activity.measuring(sys.argv[1], 'e1'):
    print('held', flush=True)
    sys.stdin.read()
"""


class ActivityTest(unittest.TestCase):

    def setUp(self):
        self.data = self.enterContext(tempfile.TemporaryDirectory())

    def hold(self):
        other = subprocess.Popen(
            [sys.executable, '-c', HOLD, self.data], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE)
        self.addCleanup(other.communicate)
        self.addCleanup(other.kill)
        self.assertEqual(b'held\n', other.stdout.readline())
        return other

    def test_without_a_process_there_is_none(self):
        self.assertIsNone(activity.process(self.data, 'e1'))

    def test_it_is_named_as_long_as_it_lives(self):
        other = self.hold()
        self.assertEqual(
            activity.Process(other.pid, os.uname().nodename),
            activity.process(self.data, 'e1'))
        self.assertIsNone(activity.process(self.data, 'e2'))
        other.kill()
        other.wait()
        self.assertIsNone(activity.process(self.data, 'e1'))
        with activity.measuring(self.data, 'e1'):
            self.assertEqual(os.getpid(),
                             activity.process(self.data, 'e1').pid)
        self.assertEqual([], os.listdir(self.data))

    def test_a_second_process_is_refused(self):
        other = self.hold()
        with (self.assertRaisesRegex(
                exception.Unreachable,
                f'result e1 is being measured by process {other.pid} on '),
              activity.measuring(self.data, 'e1')):
            self.fail('it is measured twice')
        self.assertIsNotNone(activity.process(self.data, 'e1'))
