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

"""The operator's page against what the program does."""

import pathlib
import re
import textwrap
import unittest

from hpcvirt.flavors import alternative
from hpcvirt.flavors import diff
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile
from hpcvirt.flavors import table
from hpcvirt.flavors import warning
from tests import hosts

ROOT = pathlib.Path(__file__).parents[3]
PAGE = (ROOT / 'docs/source/flavors.rst').read_text()
LITERALS = frozenset(re.findall(r'``([a-z-]+)``', PAGE))


class DocumentationTest(unittest.TestCase):

    def shown(self, chosen):
        plan = planner.plan([hosts.named('hs06-2s-16c')], chosen)
        return textwrap.indent(
            table.table(plan, alternative.of(plan), 80).rstrip('\n'), '   ')

    def test_plan_of_the_default_profile_is_shown(self):
        self.assertIn(self.shown(profile.DEFAULT), PAGE)

    def test_flavors_of_the_dense_profile_are_shown(self):
        self.assertIn(self.shown(profile.DENSE).split('\n\n   With')[0], PAGE)

    def test_every_warning_is_explained(self):
        for code in warning.Code:
            self.assertIn(code, LITERALS)

    def test_every_finding_is_explained(self):
        for name in ('lint.py', 'lint_hosts.py'):
            source = (ROOT / 'hpcvirt/flavors' / name).read_text()
            codes = re.findall(r"'([a-z]+(?:-[a-z]+)*)',\s+"
                               r'(?:_ERROR|_WARNING|_NOTE|finding\.Severity)',
                               source)
            self.assertGreater(len(codes), 3)
            for code in codes:
                self.assertIn(code, LITERALS)

    def test_every_action_is_explained(self):
        for action in diff.Action:
            self.assertRegex(PAGE, rf'(?m)^``{action}``$')
