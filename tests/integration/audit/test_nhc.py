# SPDX-License-Identifier: Apache-2.0

"""The lines for NHC, evaluated by bash as NHC 1.4.3 does."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from hpcvirt.audit import audit
from hpcvirt.audit import finding
from hpcvirt.audit import report
from tests import pages

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

#: How NHC loads and runs the checks of a configuration.
RUN = """\
hpcvirt() { cat audit; return "$STATUS"; }
die() { shift; echo "died: $*"; }
nhc_load_conf() {
    while read LINE; do
        CHECKS+=("${LINE#*||}")
    done < "$1"
}
nhc_load_conf conf
for ((CNUM = 0; CNUM < ${#CHECKS[*]}; CNUM++)); do
    eval ${CHECKS[$CNUM]} || echo "failed: $?"
done
"""

PAGE = pages.path('admin/audit-hosts')

EVIL = (
    '[ab]* is $(touch touched) `touch touched` "quoted\' \\ ; touch touched'
    ' || die 2 gone & > touched \n* || touch touched\n# {1,2} !! ~')


class NhcTest(unittest.TestCase):
    def evaluate(self, *items):
        lines = report.nhc_lines(audit.Audit('n17; touch touched', items, ()))
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


class PageTest(unittest.TestCase):
    """The lines for table.conf that the page shows."""

    def run_with(self, status, *lines):
        shown = re.findall(r'^   (\* \|\| .*)$', PAGE.read_text(),
                           re.MULTILINE)
        self.assertEqual(2, len(shown))
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, 'conf').write_text(''.join(
                line.replace('/run/', './') + '\n' for line in shown))
            pathlib.Path(folder, 'audit').write_text(''.join(
                f'{line}\n' for line in lines))
            return subprocess.run(
                ['bash', '-c', RUN], cwd=folder, capture_output=True,
                env={**os.environ, 'STATUS': str(status)}, text=True,
                check=True).stdout

    def test_a_clean_audit_passes(self):
        self.assertEqual('', self.run_with(0))

    def test_a_fault_fails(self):
        self.assertEqual('died: hpcvirt swap\n', self.run_with(
            1, '* || die 1 "hpcvirt swap"'))

    def test_an_audit_that_cannot_be_made_fails(self):
        self.assertEqual('failed: 1\n', self.run_with(2))
