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

"""hpcvirt topology as a program."""

import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).parents[4]


class ProgramTest(unittest.TestCase):
    def test_a_closed_pipe_is_no_error(self) -> None:
        path = str(ROOT / 'etc/hpcvirt/topologies/epyc-2s-64c-nps4.json')
        command = ('"$0" -m hpcvirt.cmd.main topology show "$1" | head -1; '
                   'echo ${PIPESTATUS[0]}')
        done = subprocess.run(
            ['bash', '-c', command, sys.executable, path],
            capture_output=True, text=True, check=False, cwd=ROOT)
        self.assertEqual(('epyc-2s-64c-nps4\n0\n', ''),
                         (done.stdout, done.stderr))
