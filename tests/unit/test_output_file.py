# SPDX-License-Identifier: Apache-2.0

import os
import stat
import unittest

from hpcvirt import output_file
from tests.builders import folders


class ReplaceTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)

    def test_a_file_is_replaced_with_its_permissions(self):
        path = self.folder / ('x' * 255)
        for content, mode in ((b'old', 0o644), (b'new', 0o600)):
            output_file.replace(path, content, mode)
            self.assertEqual(content, path.read_bytes())
            self.assertEqual(mode, stat.S_IMODE(path.stat().st_mode))
        self.assertEqual([path.name], os.listdir(self.folder))

    def test_a_failure_leaves_what_was_there_and_no_draft(self):
        path = self.folder / 'taken'
        path.mkdir()
        self.assertRaises(OSError, output_file.replace, path, b'new')
        self.assertEqual(['taken'], os.listdir(self.folder))
