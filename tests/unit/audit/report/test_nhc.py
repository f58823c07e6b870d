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

"""Lines for NHC; tests/integration has NHC's own functions read them."""

import dataclasses
import unittest

from hpcvirt.audit import audit
from hpcvirt.audit import finding
from hpcvirt.audit.report import nhc

ITEM = finding.Finding('swap', finding.Severity.WARNING, 'found', 'expected',
                       'why', ())


class NhcTest(unittest.TestCase):

    def lines(self, **fields):
        item = dataclasses.replace(ITEM, **fields)
        return nhc.lines(audit.Audit('n17', (item,), ()))

    def test_a_fault_is_a_check_that_fails(self):
        for severity in ('error', 'unknown', 'warning'):
            self.assertEqual(
                [(f'* || die 1 "hpcvirt swap ({severity}): found; expected: '
                 'expected"')],
                self.lines(severity=finding.Severity(severity))[1:])

    def test_a_note_is_a_comment(self):
        _, line = self.lines(severity=finding.Severity.NOTE)
        self.assertTrue(line.startswith('# '), line)

    def test_nothing_that_a_shell_obeys_is_left(self):
        evil = 'a"; touch x; $(touch x) `touch x` \'; [ab]* ? \\ \n|| die {a}'
        _, line = self.lines(found=evil)
        self.assertRegex(
            line, r'^\* \|\| die 1 "[A-Za-z0-9 ,.:;/_()=%+@-]*"$')
