# SPDX-License-Identifier: Apache-2.0

"""The pages on audits against what the program does."""

import dataclasses

from hpcvirt.audit import audit
from hpcvirt.audit import fact
from hpcvirt.audit import finding
from hpcvirt.audit import report
from hpcvirt.audit import summary
from hpcvirt.audit.reading import nova
from tests import pages
from tests.builders import audited

PAGE = pages.read('admin/audit-hosts', 'reference/audit-rules')


class DocumentationTest(audited.Case):
    def test_an_audit_is_shown(self):
        pools = [dataclasses.replace(pool, total=14336)
                 if (pool.cell, pool.size_kib) == (1, 2048) else pool
                 for pool in audited.GOOD.memory.huge_pages]
        facts = audited.replace(self.but(memory={
            'swappiness': 60, 'huge_pages': tuple(pools)}), name='n17')
        shown = report.text(audit.audit(facts, audited.PROFILE), None)
        pages.check_shown(self, 'admin/audit-hosts', shown)

    def test_a_summary_is_shown(self):
        slow = {'swappiness': 60}
        parts = {'n2': {'memory': slow},
                 'n3': {'memory': slow, 'kernel': {
                     'tuned_profile': 'balanced'}},
                 'n4': {'cpu': {'microcode': {
                     '0x2b000461': audited.HOST.cpus}}},
                 'n9': {'cpu': {
                     'idle_states': {('C1', 133): audited.HOST.cpus},
                     'wake_limit_us': fact.UnknownFact(
                         '/dev/cpu_dma_latency',
                         'could not be read when it was captured')}}}
        hosts = [audited.replace(
            facts, name=name, host=dataclasses.replace(facts.host, name=name))
            for name in (f'n{number}' for number in range(1, 10))
            for facts in [self.but(**parts.get(name, {}))]]
        found = [audit.audit(facts, audited.PROFILE) for facts in hosts]
        # The line is wider than a page.
        shown = summary.text(summary.make_document(
            found, list(map(summary.describe, hosts)))).replace(
            ' could not be read when it was captured:', ' ...:')
        pages.check_shown(self, 'admin/audit-hosts', shown)

    def test_severities_are_described(self):
        described = PAGE.partition('Severity and exit status')[2]
        for severity in finding.Severity:
            self.assertIn(f'   * - {severity}\n', described)
        self.assertIn(f'``{audit.UNKNOWN}``', described)

    def test_places_of_configuration_are_described(self):
        for name in (nova._KOLLA, nova._DEVSTACK, *nova._ETC):
            self.assertIn(f'``/{name}``', PAGE)
        self.assertIn(f'``/{nova._TRIPLEO.removesuffix(nova._ETC[1])}'
                      .rstrip('/') + '``', PAGE)
        for folder in (nova._EDPM, *nova._ETC_DIRECTORIES):
            self.assertIn(f'``/{folder}/*.conf``', PAGE)

    def test_rules_are_listed_from_the_code(self):
        self.assertIn('.. audit-rules::', PAGE)
