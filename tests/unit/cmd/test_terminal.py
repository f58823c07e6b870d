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

import io
import os
import unittest
from unittest import mock

from hpcvirt.cmd import terminal


class WidthTest(unittest.TestCase):

    def setUp(self):
        self.enterContext(mock.patch.dict(os.environ))
        os.environ.pop('COLUMNS', None)

    def test_a_pipe_has_no_width(self):
        with mock.patch('sys.stdout', io.StringIO()):
            self.assertIsNone(terminal.width())

    def test_the_variable_has_the_last_word(self):
        os.environ['COLUMNS'] = '72'
        with mock.patch('sys.stdout', io.StringIO()):
            self.assertEqual(72, terminal.width())

    def test_a_terminal_has_its_own_width(self):
        leader, follower = os.openpty()
        self.addCleanup(os.close, leader)
        with open(follower, 'w') as stream, mock.patch('sys.stdout', stream):
            self.assertIsInstance(terminal.width(), int)
