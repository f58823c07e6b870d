# SPDX-License-Identifier: Apache-2.0

import testtools
from scipy import stats as reference

from hpcvirt.bench.analysis import mean_time

#: Losses of which two are much larger.
SKEWED = (0.0, 0.001, -0.001, 0.002, -0.002, 0.0, 0.05, 0.001, 0.06, -0.001)


class TestMeanTime(testtools.TestCase):
    def test_skewed_losses_have_the_mean_of_student(self):
        mean = mean_time.estimate(SKEWED, 0.011, mean_time.SKEWED)
        expected = reference.ttest_1samp(SKEWED, 0.0).confidence_interval(0.9)
        centre = sum(SKEWED) / len(SKEWED)
        for end, other in zip(mean.ends(0.95), expected, strict=True):
            self.assertAlmostEqual(end - 0.011, other - centre)

    def test_the_ends_of_the_mean_are_where_its_test_rejects(self):
        mean = mean_time.estimate(SKEWED, 0.011, mean_time.SKEWED)
        low, high = mean.ends(0.95)
        self.assertAlmostEqual(0.05, mean.p_within(low))
        self.assertAlmostEqual(0.05, mean.p_beyond(high))

    def test_losses_that_are_not_skewed_have_none(self):
        for found in ((0.01,) * 10, (0.01, 0.02),
                      (-0.02, -0.01, 0.0, 0.01, 0.02)):
            self.assertIsNone(mean_time.estimate(found, 0.0,
                                                 mean_time.SKEWED))
