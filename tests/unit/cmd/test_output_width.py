# SPDX-License-Identifier: Apache-2.0

import io
import os
import unittest
from unittest import mock

from hpcvirt.cmd import output


class WidthTest(unittest.TestCase):
    def setUp(self):
        self.enterContext(mock.patch.dict(os.environ))
        os.environ.pop('COLUMNS', None)

    def test_a_pipe_has_no_width(self):
        with mock.patch('sys.stdout', io.StringIO()):
            self.assertIsNone(output.width())

    def test_the_variable_has_the_last_word(self):
        os.environ['COLUMNS'] = '72'
        with mock.patch('sys.stdout', io.StringIO()):
            self.assertEqual(72, output.width())

    def test_a_terminal_has_its_own_width(self):
        leader, follower = os.openpty()
        self.addCleanup(os.close, leader)
        with open(follower, 'w') as stream, mock.patch('sys.stdout', stream):
            self.assertIsInstance(output.width(), int)
