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

"""The script that hpcvirt study prints is a program of sh."""

import contextlib
import io
import shutil
import subprocess
import unittest

from hpcvirt.cmd import main
from tests import hosts

TOPOLOGY = hosts.TOPOLOGIES / 'hs06-2s-16c.json'


class ScriptTest(unittest.TestCase):

    def test_a_shell_can_read_the_script(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = main.main(['study', 'script', 'S4', '4x8-tuned',
                                f'n7={TOPOLOGY}'])
        self.assertEqual(0, status)
        done = subprocess.run([shutil.which('sh'), '-n'],
                              input=out.getvalue().encode(), check=False)
        self.assertEqual(0, done.returncode)
