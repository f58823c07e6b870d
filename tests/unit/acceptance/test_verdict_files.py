# SPDX-License-Identifier: Apache-2.0

"""Verdicts as JUnit and as JSON lines."""

import dataclasses
import json
import os
import threading
import unittest

import defusedxml.ElementTree

from hpcvirt import exception
from hpcvirt.acceptance import acceptance
from hpcvirt.acceptance import gate
from hpcvirt.acceptance import verdict_files
from tests.builders import folders
from tests.unit.acceptance import test_acceptance
from tests.unit.acceptance import test_gate

Word = test_acceptance.Word


def accepted(*checks, unable=(), **more):
    """Return an acceptance whose gate has these checks."""
    return acceptance.decide(dataclasses.replace(
        test_acceptance.BEGUN, gate=gate.decide(
            'ssh://n1', checks, test_acceptance.verdict(
                test_acceptance.figure(0.99, 1.0)), ['r'], unable), **more),
        None, '', 'later')


class JUnitTest(unittest.TestCase):
    def parse(self, found):
        suite = defusedxml.ElementTree.fromstring(
            verdict_files.make_junit(found))
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
            test_gate.GOOD, test_gate.BAD, test_gate.UNKNOWN,
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
        words, _ = self.parse(accepted(test_gate.GOOD, parts=()))
        self.assertEqual([], words['quick gate'])
        words, _ = self.parse(test_acceptance.decided(
            test_acceptance.figure(0.8, 0.85, result=Word.FAIL),
            result=Word.FAIL, reason='slow'))
        self.assertEqual({'acceptance': ['failure'],
                          'hpcc mpi 4x8 HPL_Tflops': ['failure']}, words)

    def test_any_text_is_xml(self):
        self.parse(accepted(dataclasses.replace(
            test_gate.BAD, found='\x1b[31m <&">\x00\ud800 \ufffe')))


class LinesTest(unittest.TestCase):
    def setUp(self):
        self.folder = folders.make(self)
        self.path = self.folder / 'verdicts.jsonl'

    def read(self):
        return [json.loads(line)
                for line in self.path.read_text().splitlines()]

    def test_many_writers_lose_nothing(self):
        def append(number):
            for count in range(20):
                verdict_files.append_line(str(self.path), {
                    'host': number, 'n': count, 'text': 'x' * 9000})
        threads = [threading.Thread(target=append, args=(number,))
                   for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = [(each['host'], each['n']) for each in self.read()]
        self.assertEqual([(host, n) for host in range(8) for n in range(20)],
                         sorted(found))

    def test_an_unfinished_line_is_closed(self):
        self.path.write_text('{"host": "n1"}\n{"host": "n')
        verdict_files.append_line(str(self.path), {'host': 'n3'})
        first, cut, last = self.path.read_text().splitlines()
        self.assertEqual(['n1', 'n3'], [
            json.loads(line)['host'] for line in (first, last)])
        self.assertEqual('{"host": "n', cut)

    def test_a_check_changes_nothing(self):
        verdict_files.append_line(str(self.path), None)
        self.assertEqual('', self.path.read_text())
        verdict_files.append_line(str(self.path), {'a': 1})
        verdict_files.append_line(str(self.path), None)
        self.assertEqual([{'a': 1}], self.read())

    def test_only_a_file_is_written(self):
        os.mkfifo(self.path)
        other = self.folder / 'link'
        other.symlink_to('/dev/null')
        for path in (self.path, other, self.folder, '/dev/full',
                     self.folder / 'none' / 'x'):
            with self.assertRaises(exception.InvalidInput, msg=path):
                verdict_files.append_line(str(path), {})
