# SPDX-License-Identifier: Apache-2.0

import argparse
import io
import os
import unittest
from unittest import mock

from hpcvirt.cmd import command
from hpcvirt.cmd import table_format


class TableFormatterTest(unittest.TestCase):
    def draw(self, rows, **environment):
        out = io.StringIO()
        with mock.patch.dict(os.environ, environment):
            table_format.TableFormatter().emit_list(
                ['Name', 'Count', 'Text'], iter(rows), out,
                argparse.Namespace())
        return out.getvalue()

    def test_numbers_are_aligned_and_lists_are_one_line(self):
        self.assertEqual('Name  Count  Text\n----- ------ ----\n'
                         'a         1  x, y\nb        10  k=v\n'
                         'c         -  -\n', self.draw([
                             ('a', 1, command._Cell(['x', 'y'])),
                             ('b', 10, command._Cell({'k': 'v'})),
                             ('c', None, None)]))

    def test_without_rows_there_are_headings(self):
        self.assertEqual('Name  Count  Text\n----- ------ ----\n',
                         self.draw([]))

    def test_text_is_wrapped_at_the_end_of_the_terminal(self):
        lines = self.draw([('a', 1, 'some words ' * 9)],
                          COLUMNS='40').splitlines()
        self.assertLess(3, len(lines))
        self.assertGreaterEqual(40, max(map(len, lines)))

    def test_characters_of_a_terminal_are_escaped(self):
        self.assertNotIn('\x1b', self.draw([('\x1b[31m', 1, '')]))
