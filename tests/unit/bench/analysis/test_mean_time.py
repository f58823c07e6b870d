# SPDX-License-Identifier: Apache-2.0

import math

import testtools
from scipy import stats as reference

from hpcvirt.bench.analysis import mean_time


class TestMeanTime(testtools.TestCase):
    def test_the_mean_is_students_without_skewness(self):
        mean = mean_time.MeanTime(0.01, 0.02, 0.0, 10)
        expected = reference.t.interval(0.9, 9, 0.01, 0.02 / math.sqrt(10))
        for end, other in zip(mean.ends(0.95), expected, strict=True):
            self.assertAlmostEqual(end, other)

    def test_the_ends_of_the_mean_are_where_its_test_rejects(self):
        for skewness in (-2.0, -0.5, 0.5, 2.0):
            mean = mean_time.MeanTime(0.01, 0.02, skewness, 10)
            low, high = mean.ends(0.95)
            self.assertLess(low, high)
            self.assertAlmostEqual(0.05, mean.p_within(low))
            self.assertAlmostEqual(0.05, mean.p_beyond(high))

    def test_slow_runs_move_the_upper_end_of_the_mean_further(self):
        ends = [mean_time.MeanTime(0.0, 0.02, skewness, 10).ends()
                for skewness in (0.0, 1.0)]
        self.assertGreater(ends[1][1], ends[0][1])
