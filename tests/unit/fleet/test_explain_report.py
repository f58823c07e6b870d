# SPDX-License-Identifier: Apache-2.0

import re
import unittest

from hpcvirt.fit import reasons
from hpcvirt.fleet import explain_report
from hpcvirt.fleet import verdict


class VerdictReportTest(unittest.TestCase):
    def test_hosts_that_fail_alike_share_a_line(self):
        found = [verdict.HostVerdict(
            f'n{number}', verdict.SchedulingStep.FILTER, reasons.Code.NO_CELL,
            reasons.Code.FREE_PCPUS, f'reason {number}')
            for number in range(400)]
        found.append(verdict.HostVerdict('m', None, cells=(3, 1)))
        text = explain_report.text('x', found, (), 80)
        self.assertIn('x fits on 1 of 401 hosts.', text)
        self.assertRegex(text, r'\n +1  m +- +it fits on cells 3, 1\n'
                         r' +400  n0, n1, \.\.\.  filter +'
                         r'for example n0: reason 0\n')
        self.assertLess(len(text.splitlines()), 9)
        document = explain_report.document(found, ())
        self.assertEqual((True, 401), (document['fits'],
                                       len(document['hosts'])))

    def test_the_nearest_host_of_each_class_and_reason_comes_first(self):
        found = [verdict.HostVerdict(
            f'{own}{number}', verdict.SchedulingStep.PLACEMENT,
            reasons.Code.RESOURCES, reasons.Code.RESOURCES,
            f'{8 - number} missing', resource=resource, fleet_class=own,
            lacks=8 - number)
            for own, resource in (('a', 'PCPU free'), ('b', 'PCPU free'),
                                  ('b', 'PCPU in all'))
            for number in range(3)]
        text = explain_report.text('x', found, (), 80)
        self.assertRegex(text, r'\na +3  a2, a1, a0 +placement +for example '
                         'a2: 6 missing\n')
        self.assertEqual(2, len(re.findall('\nb ', text)))
