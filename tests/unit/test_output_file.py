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
import pathlib
import stat
import tempfile
import unittest

from hpcvirt import output_file


class ReplaceTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(
            self.enterContext(tempfile.TemporaryDirectory()))

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
