# SPDX-License-Identifier: Apache-2.0

"""Runs that are much slower than the others, or failed."""

import math

import testtools

from hpcvirt.bench.analysis import stragglers


class FailedRunsTest(testtools.TestCase):
    def test_failed_runs_of_both_sides_are_runs(self):
        usual = [0.001 * (-1) ** number for number in range(10)]
        found = stragglers.find(usual, usual, (2, 1))
        self.assertEqual((12, 11), found.runs)
        self.assertEqual((2, 1), (found.native, found.guest))
        # The mean time of a guest is known if it fails less than native.
        self.assertAlmostEqual(0.0, found.mean_loss)
        self.assertEqual(math.inf,
                         stragglers.find(usual, usual, (1, 2)).mean_loss)
