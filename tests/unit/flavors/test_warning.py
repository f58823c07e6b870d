# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.flavors import lint
from hpcvirt.flavors import warning


def found(*hosts, code='does-not-fit'):
    return lint.LintFinding(code, lint.LintSeverity.ERROR, 'm1', 'vcpus',
                            'no instance fits', 'make it smaller', hosts)


class FindingTest(unittest.TestCase):
    def test_the_message_names_the_hosts(self):
        self.assertEqual('no instance fits', found().message)
        self.assertEqual('a, b: no instance fits', found('a', 'b').message)

    def test_equal_findings_become_one_with_all_hosts(self):
        self.assertEqual(
            (found('a', 'b', 'c'), found('a', code='other')),
            warning.gather([found('a'), found('a', code='other'),
                            found('b', 'c')], 'hosts'))


CODE = warning.WarningCode.NO_PARTS


class GatherTest(unittest.TestCase):
    def test_equal_warnings_become_one_with_all_subjects_once(self):
        found = warning.gather([
            warning.PlanWarning(CODE, 'x', ('b',)),
            warning.PlanWarning(CODE, 'y', ('b',)),
            warning.PlanWarning(CODE, 'x', ('a', 'b'))])
        self.assertEqual([('x', ('b', 'a')), ('y', ('b',))],
                         [(item.what, item.subjects) for item in found])
