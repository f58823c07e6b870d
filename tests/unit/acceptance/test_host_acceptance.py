# SPDX-License-Identifier: Apache-2.0

"""What a quick gate measures."""

import unittest

from hpcvirt.acceptance import class_verdict
from hpcvirt.acceptance import host_acceptance


class FiguresTest(unittest.TestCase):
    def test_what_operators_check_is_judged(self):
        self.assertEqual({
            'StarSTREAM_Triad', 'StarDGEMM_Gflops', 'HPL_Tflops',
            'StarRandomAccess_GUPs', 'RandomlyOrderedRingLatency_usec',
            'write_mb_s', 'read_latency_us'}, {
                name for benchmark in host_acceptance.GATE_BENCHMARKS
                for name in class_verdict.list_figures(benchmark)})

    def test_the_matrix_fits_and_is_equal_in_a_class(self):
        for gib in (2, 4, 8, 16, 48, 64, 96, 128, 160, 192, 256, 320, 384, 512,
                    768, 1024, 1536, 2048, 4096):
            # What is reserved for the kernel and the firmware varies.
            orders = {host_acceptance.find_order(int(1024 * gib * part))
                      for part in (0.955, 0.965, 0.975, 0.985)}
            self.assertEqual(1, len(orders), gib)
            order = orders.pop()
            self.assertEqual(0, order % 80)
            part = order ** 2 * 8 / (0.97 * gib * 2 ** 30)
            self.assertTrue(0.0145 < part < 0.065, (gib, part))
        self.assertEqual(80, host_acceptance.find_order(1))
