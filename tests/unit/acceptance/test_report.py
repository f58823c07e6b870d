# SPDX-License-Identifier: Apache-2.0

"""Verdicts as JUnit."""

import dataclasses
import unittest

import defusedxml.ElementTree

from hpcvirt.acceptance import acceptance
from hpcvirt.acceptance import report
from tests.unit.acceptance import test_acceptance

Word = test_acceptance.Word


def accepted(*checks, unable=(), **more):
    """Return an acceptance whose gate has these checks."""
    return acceptance.decide(dataclasses.replace(
        test_acceptance.BEGUN, gate=acceptance.decide_gate(
            'ssh://n1', checks, test_acceptance.verdict(
                test_acceptance.figure(0.99, 1.0)), ['r'], unable), **more),
        None, '', 'later')


class JUnitTest(unittest.TestCase):
    def parse(self, found):
        suite = defusedxml.ElementTree.fromstring(
            report.make_junit(found))
        self.assertEqual('testsuite', suite.tag)
        words = {case.get('name'): [inner.tag for inner in case]
                 for case in suite}
        for name, tag in (('failures', 'failure'), ('skipped', 'skipped')):
            self.assertEqual(int(suite.get(name)),
                             sum(tag in tags for tags in words.values()))
        self.assertEqual(int(suite.get('tests')), len(words))
        return words, suite

    def test_every_check_and_figure_is_a_case(self):
        words, suite = self.parse(accepted(
            test_acceptance.GOOD, test_acceptance.BAD, test_acceptance.UNKNOWN,
            unable=['fio: no such program']))
        self.assertEqual({
            'acceptance': ['failure'], 'gate: clock': [],
            'gate: PCIe links': ['failure'],
            'gate: disk errors': ['skipped'], 'gate: fio': ['skipped'],
            'gate: hpcc mpi 4x8 HPL_Tflops': []}, words)
        self.assertEqual('n1', suite.get('name'))
        (message,) = [each.get('message') for case in suite for each in case
                      if case.get('name') == 'gate: PCIe links']
        self.assertEqual('FAIL: x8; expected x16', message)

    def test_a_quick_gate_and_a_long_acceptance_are_named(self):
        words, _ = self.parse(accepted(test_acceptance.GOOD, parts=()))
        self.assertEqual([], words['quick gate'])
        words, _ = self.parse(test_acceptance.decided(
            test_acceptance.figure(0.8, 0.85, result=Word.FAIL),
            result=Word.FAIL, reason='slow'))
        self.assertEqual({'acceptance': ['failure'],
                          'hpcc mpi 4x8 HPL_Tflops': ['failure']}, words)

    def test_any_text_is_xml(self):
        self.parse(accepted(dataclasses.replace(
            test_acceptance.BAD, found='\x1b[31m <&">\x00\ud800 \ufffe')))
