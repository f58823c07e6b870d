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

"""An audit for people."""

from hpcvirt.audit import audit
from hpcvirt.audit.report import json_document
from hpcvirt.audit.report import table
from tests import audited


class TableTest(audited.Case):

    def setUp(self):
        super().setUp()
        facts = self.but(kernel={'has_kvm': False}, memory={
            'swappiness': 60, 'available_mib': {0: 9, 1: 9}})
        self.audit = audit.audit(facts, audited.PROFILE)
        self.lines = table.text(self.audit, 80).splitlines()

    def test_each_rule_comes_once_the_worst_first(self):
        self.assertEqual(
            ['ERROR kvm', 'WARNING host-memory', 'WARNING swappiness'],
            [line for line in self.lines if line[:1].isupper()])

    def test_a_change_that_findings_share_comes_once(self):
        advice = [line for line in self.lines
                  if line.startswith('    # reserve fewer')]
        self.assertEqual(1, len(advice))

    def test_lines_fit_the_terminal(self):
        for width in (60, 80, 120):
            for line in table.text(self.audit, width).splitlines():
                self.assertLessEqual(len(line), width)

    def test_the_end_counts(self):
        self.assertIn('host: 1 error, 3 warning', self.lines[-1])
        clean = table.text(audit.audit(audited.GOOD, audited.PROFILE), None)
        self.assertEqual('host: no finding; '
                         f'{len(audit.RULES)} rules have an answer\n', clean)

    def test_json_has_all_of_it(self):
        found = json_document.document(self.audit)
        self.assertEqual((1, 'host', False), (
            found['schema_version'], found['host'], found['clean']))
        self.assertEqual({'error': 1, 'unknown': 0, 'warning': 3, 'note': 0},
                         found['counts'])
        self.assertEqual(
            {'code', 'severity', 'found', 'expected', 'why', 'sources',
             'change'}, set(found['findings'][0]))
