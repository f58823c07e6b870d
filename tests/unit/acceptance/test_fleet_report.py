# SPDX-License-Identifier: Apache-2.0

"""Who is slow in a fleet, by how much, and what differs."""

import unittest

from hpcvirt.acceptance import class_verdict
from hpcvirt.acceptance import fleet_report
from hpcvirt.acceptance import peers
from hpcvirt.bench.model import judgement
from tests.unit.acceptance import test_class_verdict as runs

Word = judgement.VerdictResult
UUID = '7d8b1b5e-1111-2222-3333-44445555666{}'


def host(number, score, kernel='6.1.0-21', **more):
    return runs.run(f'n{number}', score, launch=None, identity={
        **runs.IDENTITY, 'guest kernel': kernel,
        'guest kernel.cmdline': f'root=UUID={UUID.format(number)} quiet '
                                + ' '.join(f'x{n}=y' for n in range(20)),
        **more})


def make(stored, machines=None):
    classes = peers.find_classes(stored)
    return fleet_report.make(class_verdict.judge_fleet(classes), classes,
                             machines or {})


class FleetReportTest(unittest.TestCase):
    def test_the_slowest_host_is_first_with_its_loss_and_what_differs(self):
        found = make([
            *(host(n, 100 + n / 10) for n in range(8)),
            host(8, 80.0, '6.1.0-18'), host(9, 60.0, '6.1.0-18')], {
                f'n{n}': {'memory modules in MiB':
                          f'{8 if n == 9 else 16} x 32768',
                          'serial number': str(n)}
                for n in range(10)})
        self.assertEqual(['n9', 'n8'], [each.host for each in found[:2]])
        self.assertEqual(
            [Word.FAIL] * 2 + [Word.PASS] * 8,
            [each.result for each in found])
        slowest, other = found[:2]
        # The middle of the others is n4 or n5.
        self.assertAlmostEqual(100 * (100.4 / 60 - 1), slowest.slower, 0)
        self.assertTrue(slowest.low < slowest.slower < slowest.high)
        self.assertIn('hs06', slowest.figure)
        self.assertEqual((
            'kernel is 6.1.0-18, of 8 of 8 others 6.1.0-21',
            ('memory modules in MiB is 8 x 32768, of 8 of 8 others '
             '16 x 32768')), slowest.differs)
        self.assertEqual(1, len(other.differs))
        self.assertEqual({()}, {each.differs for each in found[2:]})

    def test_few_hosts_are_listed_without_a_verdict(self):
        found = make([host(n, 100.0) for n in range(3)])
        self.assertEqual([(Word.INCONCLUSIVE, None)] * 3,
                         [(each.result, each.slower) for each in found])
        self.assertEqual((), make([]))

    def test_of_long_facts_only_the_words_that_differ_are_named(self):
        usual = ' '.join(f'flag{n}' for n in range(40))
        found = list(fleet_report.find_differences(
            {'flags': usual.replace('flag7 ', '') + ' more'},
            [{'flags': usual}] * 3))
        self.assertEqual(['flags is more, of 3 of 3 others flag7'], found)

    def test_what_has_no_usual_value_says_nothing(self):
        self.assertEqual([], list(fleet_report.find_differences(
            {'a': '1'}, [{'a': '2'}, {'a': '3'}])))
        self.assertEqual([], list(fleet_report.find_differences(
            {'a': '1'}, [])))
        self.assertEqual(['a is none, of 2 of 3 others 2'], list(
            fleet_report.find_differences({}, [{'a': '2'}, {'a': '2'}, {}])))
