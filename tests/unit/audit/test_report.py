# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from hpcvirt.audit import audit
from hpcvirt.audit import finding
from hpcvirt.audit import report
from tests.builders import audited

ITEM = finding.Finding('swap', finding.Severity.WARNING, 'found', 'expected',
                       'why', ())


class NhcTest(unittest.TestCase):
    """Lines for NHC; tests/integration has NHC's own functions read them."""

    def lines(self, **fields):
        item = dataclasses.replace(ITEM, **fields)
        return report.nhc_lines(audit.Audit('n17', (item,), ()))

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
        self.assertRegex(line, r'^\* \|\| die 1 "[A-Za-z0-9 ,.:;/_()=%+@-]*"$')


class TableTest(audited.Case):
    """An audit for people."""

    def setUp(self):
        super().setUp()
        facts = self.but(kernel={'has_kvm': False}, memory={
            'swappiness': 60, 'available_mib': {0: 9, 1: 9}})
        self.audit = audit.audit(facts, audited.PROFILE)
        self.lines = report.text(self.audit, 80).splitlines()

    def test_each_rule_comes_once_the_worst_first(self):
        self.assertEqual(
            ['ERROR kvm', 'WARNING host-memory', 'WARNING swappiness'],
            [line for line in self.lines if line[:1].isupper()])

    def test_a_change_that_findings_share_comes_once(self):
        advice = [line for line in self.lines
                  if line.startswith('    # reserve fewer')]
        self.assertEqual(1, len(advice))

    def change_lines(self, *changes):
        items = tuple(dataclasses.replace(ITEM, change=change)
                      for change in changes)
        return [line.strip() for line in report.text(
            audit.Audit('n17', items, ()), 80).splitlines()
            if line.startswith('    ')]

    def test_shared_lines_stand_where_they_belong(self):
        head, end = ('# nova.conf', '[compute]'), ('systemctl restart x',)
        for changes, lines in (
                ([(*head, 'a'), (*head, 'b')], [*head, 'a', 'b']),
                ([(*head, 'a', *end), (*head, 'b', *end)],
                 [*head, 'a', 'b', *end]),
                ([end, end, end], [*end]), ([(), end, ()], [*end]),
                ([('a', *end), ('b', *end)], ['a', 'b', *end]),
                ([(*head, 'a'), (head[0], '[pci]', 'b')],
                 [*head, 'a', '[pci]', 'b']),
                ([(*head, 'a', *end), end], [*head, 'a', *end])):
            self.assertEqual(lines, self.change_lines(*changes))

    def test_what_is_not_known_costs_nothing(self):
        facts = audited.replace(audited.GOOD, nova=None)
        self.assertEqual([('nova-conf', '')], [
            (item.code, item.cost) for item in audit.audit(facts).findings
            if item.severity is finding.Severity.UNKNOWN])

    def test_lines_fit_the_terminal(self):
        for width in (60, 80, 120):
            for line in report.text(self.audit, width).splitlines():
                self.assertLessEqual(len(line), width)

    def test_the_end_counts(self):
        self.assertIn('host: 1 error, 3 warnings', self.lines[-1])
        clean = report.text(audit.audit(audited.GOOD, audited.PROFILE), None)
        self.assertEqual('host: no finding; '
                         f'{len(audit.RULES)} rules checked\n', clean)

    def test_json_has_all_of_it(self):
        found = report.make_document(self.audit)
        self.assertEqual((1, 'host', False), (
            found['schema_version'], found['host'], found['clean']))
        self.assertEqual({'error': 1, 'unknown': 0, 'warning': 3, 'note': 0},
                         found['counts'])
        self.assertEqual(
            {'code', 'severity', 'found', 'expected', 'why', 'sources',
             'change', 'cost'}, set(found['findings'][0]))
