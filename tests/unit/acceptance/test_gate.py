# SPDX-License-Identifier: Apache-2.0

"""The decision of a quick gate, and what it measures."""

import unittest

from hpcvirt.acceptance import gate
from hpcvirt.bench.model import judgement
from tests.unit.acceptance import test_acceptance

Word = judgement.VerdictResult

GOOD = gate.GateCheck('clock', True, '8 good', 'fast')
UNKNOWN = gate.GateCheck('disk errors', None, 'not reported', 'none')
BAD = gate.GateCheck('PCIe links', False, 'x8', 'x16')


def decide(checks, word, *unable):
    verdict = None if word is None else test_acceptance.verdict(
        result=word, reason=None if word is Word.PASS else 'because')
    return gate.decide('ssh://n1', checks, verdict, ['r1'], unable)


class DecisionTest(unittest.TestCase):
    def test_the_word_is_that_of_the_worst(self):
        for checks, word, expected in (
                ([GOOD, UNKNOWN], Word.PASS, Word.PASS),
                ([GOOD], Word.FAIL, Word.FAIL),
                ([GOOD], Word.INCONCLUSIVE, Word.INCONCLUSIVE),
                ([GOOD], Word.INVALID, Word.INCONCLUSIVE),
                ([GOOD], None, Word.INCONCLUSIVE),
                ([GOOD, BAD], Word.PASS, Word.FAIL),
                ([BAD], None, Word.FAIL)):
            found = decide(checks, word)
            self.assertIs(expected, found.result)
            self.assertEqual(tuple(checks), found.checks)
        self.assertEqual('PCIe links: x8; expected x16', found.reason)

    def test_what_is_missing_is_inconclusive_unless_the_rest_fails(self):
        for word, expected, reason in (
                (Word.PASS, Word.INCONCLUSIVE, 'fio: no such program'),
                (None, Word.INCONCLUSIVE, 'fio: no such program'),
                (Word.FAIL, Word.FAIL, 'because')):
            found = decide([GOOD], word, 'fio: no such program')
            self.assertEqual((expected, reason), (found.result, found.reason))


class FiguresTest(unittest.TestCase):
    def test_what_operators_check_is_judged(self):
        self.assertEqual({
            'StarSTREAM_Triad', 'StarDGEMM_Gflops', 'HPL_Tflops',
            'StarRandomAccess_GUPs', 'RandomlyOrderedRingLatency_usec',
            'write_mb_s', 'read_latency_us'}, {
                name for benchmark in gate.BENCHMARKS
                for name in gate.list_figures(benchmark)})

    def test_the_matrix_fits_and_is_equal_in_a_class(self):
        for gib in (2, 4, 8, 16, 48, 64, 96, 128, 160, 192, 256, 320, 384, 512,
                    768, 1024, 1536, 2048, 4096):
            # What is reserved for the kernel and the firmware varies.
            orders = {gate.find_order(int(1024 * gib * part))
                      for part in (0.955, 0.965, 0.975, 0.985)}
            self.assertEqual(1, len(orders), gib)
            order = orders.pop()
            self.assertEqual(0, order % 80)
            part = order ** 2 * 8 / (0.97 * gib * 2 ** 30)
            self.assertTrue(0.0145 < part < 0.065, (gib, part))
        self.assertEqual(80, gate.find_order(1))
