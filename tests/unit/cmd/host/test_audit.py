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

"""``hpcvirt host audit``."""

import contextlib
import io
import json
import pathlib
import unittest

from hpcvirt.cmd import main
from tests import audited
from tests.unit.topology import sysfs_files

PROFILE = 'devices: {vendor_id: "15b3", product_id: "101e"}\n'


class AuditTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(sysfs_files.scratch(self), 'n17')
        sysfs_files.lay_out(audited.tree(), self.root)
        self.profile = self.root / 'profile.yaml'
        self.profile.write_text(PROFILE)

    def run_command(self, *words):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main.main(['host', 'audit', '--root', str(self.root),
                                *words])
        return status, out.getvalue(), err.getvalue()

    def test_status_is_0_without_faults(self):
        status, out, err = self.run_command('--profile', str(self.profile))
        self.assertEqual((0, ''), (status, err))
        self.assertTrue(out.startswith('host: no finding; '), out)

    def test_status_is_1_with_one(self):
        (self.root / 'proc/sys/vm/swappiness').write_text('60')
        for words, line in (([], 'WARNING swappiness'),
                            (['--format', 'nhc'], '* || die 1 "hpcvirt'),
                            (['--format', 'json'], '"swappiness"')):
            status, out, err = self.run_command(*words)
            self.assertEqual((1, ''), (status, err))
            self.assertIn(line, out)

    def test_json_can_be_read(self):
        status, out, _ = self.run_command('--format', 'json')
        self.assertEqual(0, status)
        self.assertEqual([], json.loads(out)['findings'])

    def test_status_is_2_without_a_host_or_profile(self):
        for words, where in ((['--root', '/dev/null'], '/dev/null'),
                             (['--profile', '/none'], '/none')):
            status, out, err = self.run_command(*words)
            self.assertEqual((2, ''), (status, out))
            self.assertIn(where, err)
            self.assertEqual(1, err.count('\n'))
