# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Means are over time, whenever samples are taken."""

import itertools
import unittest

from hpcvirt.simulate import outcome
from hpcvirt.simulate import over_time


def sample(time, busy, guests=0, across=0):
    return outcome.Sample(time, busy, 2 * busy, 3 * busy, guests, across)


class MeansTest(unittest.TestCase):

    def test_a_value_holds_until_the_next_sample(self):
        found = over_time.means([[sample(0, 10, 4, 1), sample(9, 20, 4, 4),
                                  sample(10, 0)]])
        self.assertEqual((11, 22, 33), (
            found.busy_cpus, found.stranded_cpus, found.stranded_pages_mib))
        self.assertAlmostEqual((9 * 1 + 4) / (10 * 4), found.across_packages)

    def test_replays_are_averaged(self):
        found = over_time.means([[sample(0, 10), sample(5, 10)],
                                 [sample(0, 20), sample(5, 0)]])
        self.assertEqual(15, found.busy_cpus)

    def test_no_time_has_no_mean(self):
        for samples in ([], [sample(0, 10, 1)]):
            self.assertEqual(over_time.Means(0, 0, 0, 0),
                             over_time.means([samples]))


class ThinnedTest(unittest.TestCase):

    def test_samples_remain_evenly_in_time(self):
        samples = [sample(number, number) for number in range(500)]
        found = over_time.thinned(samples, 250)
        self.assertLessEqual(len(found), 250)
        self.assertEqual(samples[0], found[0])
        gaps = {after.time - before.time
                for before, after in itertools.pairwise(found)}
        self.assertLessEqual(gaps, {2, 3})
        self.assertGreaterEqual(found[-1].time, 496)

    def test_few_samples_stay(self):
        samples = [sample(number, number) for number in range(5)]
        self.assertEqual(samples, over_time.thinned(samples, 5))
