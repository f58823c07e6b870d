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

"""Rules of the project, on a small tree that breaks them."""

import contextlib
import pathlib

import fixtures
import testtools

from tools import check_style


class TestTree(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.tree = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        directory = contextlib.chdir(self.tree)
        directory.__enter__()
        self.addCleanup(directory.__exit__, None, None, None)
        for name in check_style.BROAD_TESTS:
            self.write(f'tests/unit/{name}')

    def write(self, name, text=''):
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def test_a_module_that_decides_needs_a_test_of_its_name(self):
        self.write('hpcvirt/fit/cell.py', 'def fits():\n    return True\n')
        self.write('hpcvirt/fit/nouns.py', 'class Noun:\n'
                   '    def __init__(self):\n        pass\n')
        self.assertEqual(
            ['hpcvirt/fit/cell.py:1: there is no tests/unit/fit/test_cell.py'],
            list(check_style.untested()))
        self.write('tests/unit/fit/test_cell.py')
        self.assertEqual([], list(check_style.untested()))

    def test_a_test_needs_a_module_of_its_name(self):
        self.assertEqual([], list(check_style.mirror()))
        self.write('tests/unit/fit/test_cell.py')
        finding, = check_style.mirror()
        self.assertEqual('tests/unit/fit/test_cell.py:1: there is no module '
                         'fit/cell to test', finding)

    def test_an_exception_that_is_not_needed_is_reported(self):
        broad = min(check_style.BROAD_TESTS)
        (self.tree / 'tests/unit' / broad).unlink()
        finding, = check_style.mirror()
        self.assertIn(f'take {broad} out of BROAD_TESTS', finding)

    def test_unit_tests_start_no_processes(self):
        self.write('hpcvirt/fit/cell.py')
        self.write('tests/unit/fit/test_cell.py', '\nimport subprocess\n')
        finding, = check_style.mirror()
        self.assertIn('tests/unit/fit/test_cell.py:2: subprocess', finding)
