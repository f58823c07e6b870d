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

import contextlib
import io
import json
import pathlib
import tempfile
import unittest

from hpcvirt.cmd import main

BOX = str(pathlib.Path(__file__).parents[4]
          / 'etc/hpcvirt/topologies/single-1s-8c-smt.json')
PATHS = [f'n{number}={BOX}' for number in range(3)]


def run(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main.main(['topology', 'group', *words])
    return status, out.getvalue(), err.getvalue()


class GroupTest(unittest.TestCase):
    def odd(self) -> str:
        """Write the topology of a host with less memory."""
        plain = json.loads(pathlib.Path(BOX).read_text())
        plain['cells'][0]['memory_mib'] //= 2
        plain['cells'][0]['pages'] = {'4': 1024}
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        path = pathlib.Path(directory.name, 'odd.json')
        path.write_text(json.dumps(plain))
        return f'odd={path}'

    def test_alike_hosts_are_no_finding(self) -> None:
        status, out, err = run(*PATHS)
        self.assertEqual((0, ''), (status, err))
        self.assertRegex(out, '(?s)^Class 1: 3 hosts, .*n0, n1, n2')
        self.assertNotIn('Odd', out)

    def test_an_odd_host_is_a_finding(self) -> None:
        status, out, _ = run(*PATHS, self.odd())
        self.assertEqual(1, status)
        self.assertIn('odd: cell 0 has', out)

    def test_programs_get_a_document(self) -> None:
        status, out, _ = run('--format', 'json', *PATHS, self.odd())
        self.assertEqual(1, status)
        (group,) = json.loads(out)
        self.assertEqual(['n0', 'n1', 'n2'], group['hosts'])
        self.assertEqual('memory',
                         group['odd'][0]['differences'][0]['subject'])

    def test_an_unreadable_host_is_an_error_of_one_line(self) -> None:
        status, out, err = run(*PATHS, '/nowhere')
        self.assertEqual((2, ''), (status, out))
        self.assertEqual(1, err.count('\n'))
