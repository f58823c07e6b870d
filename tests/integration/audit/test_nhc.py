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

"""The lines for NHC, evaluated by bash as NHC 1.4.3 does."""

import pathlib
import subprocess
import tempfile
import unittest

from hpcvirt.audit import audit
from hpcvirt.audit import finding
from hpcvirt.audit.report import nhc

#: NHC splits a line at its first bars, and evaluates the check without
#: quotes, so that its words are expanded twice.
EVALUATE = """\
die() { shift; echo "died: $*"; }
while read LINE; do
    TARGET="${LINE%%||*}"
    CHECK="${LINE#*||}"
    [[ "${TARGET###}" != "$TARGET" ]] && continue
    eval $CHECK
done
"""

EVIL = (
    '[ab]* is $(touch touched) `touch touched` "quoted\' \\ ; touch touched'
    ' || die 2 gone & > touched \n* || touch touched\n# {1,2} !! ~')


class NhcTest(unittest.TestCase):

    def evaluate(self, *items):
        lines = nhc.lines(audit.Audit('n17; touch touched', items, ()))
        with tempfile.TemporaryDirectory() as folder:
            for name in ('a', 'b', 'abc', 'found'):
                pathlib.Path(folder, name).touch()
            result = subprocess.run(
                ['bash', '-c', EVALUATE], input='\n'.join(lines) + '\n',
                cwd=folder, capture_output=True, text=True, check=True)
            self.assertFalse(pathlib.Path(folder, 'touched').exists())
        self.assertEqual('', result.stderr)
        return result.stdout.splitlines()

    def item(self, severity, found):
        return finding.Finding('swap', finding.Severity(severity), found,
                               'less', 'why', ())

    def test_each_fault_dies_once_with_its_words(self):
        found = self.evaluate(self.item('error', 'cell 0 (2M): 7'),
                              self.item('unknown', 'a/b is missing'),
                              self.item('note', 'a choice'),
                              self.item('warning', 'more'))
        self.assertEqual(
            ['died: hpcvirt swap (error): cell 0 (2M): 7; expected: less',
             'died: hpcvirt swap (unknown): a/b is missing; expected: less',
             'died: hpcvirt swap (warning): more; expected: less'], found)

    def test_names_and_values_of_any_text_do_nothing(self):
        line, = self.evaluate(self.item('warning', EVIL))
        self.assertIn('(ab)', line)

    def test_no_fault_is_no_check(self):
        self.assertEqual([], self.evaluate())
