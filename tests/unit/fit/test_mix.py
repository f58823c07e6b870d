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

"""The mix of requests that a scheduler has seen."""

import dataclasses
import unittest

from hpcvirt.fit import mix
from tests.unit.fit import builders


class MixTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.mix = mix.Mix()

    def observe(self, *pcpus, times=1):
        for _ in range(times):
            self.mix.observe(builders.guest(*pcpus))

    def test_a_kind_weighs_as_many_cpus_as_were_requested(self):
        self.observe(4, times=3)
        self.observe(8, 8)
        self.assertEqual((builders.guest(4), builders.guest(8, 8)),
                         self.mix.kinds)
        self.assertEqual((12 / 28, 16 / 28), self.mix.weights())

    def test_names_of_devices_make_no_kinds(self):
        wanted = builders.request()
        for request in (wanted, dataclasses.replace(wanted, name='other')):
            self.mix.observe(builders.guest(4, requests=(request,)))
        self.mix.observe(builders.guest(4, requests=(
            builders.request(count=2),)))
        self.assertEqual((2 / 3, 1 / 3), self.mix.weights())

    def test_old_requests_are_forgotten(self):
        self.observe(4, times=mix.MEMORY)
        self.observe(8, times=8 * mix.MEMORY)
        self.assertLess(self.mix.weights()[0], 0.01)

    def test_the_kinds_stay_the_same_object_until_they_change(self):
        self.observe(4)
        before = self.mix.kinds
        self.observe(4, times=3 * mix.MEMORY)
        self.assertIs(before, self.mix.kinds)

    def test_the_kinds_with_the_most_cpus_matter(self):
        for pcpus in range(1, 2 * mix.MOST_KINDS + 1):
            self.observe(pcpus)
        self.observe(1, times=mix.REVIEW)
        kinds = [kind.cells[0].pcpus for kind in self.mix.kinds]
        self.assertEqual(mix.MOST_KINDS, len(kinds))
        self.assertEqual([1, *range(mix.MOST_KINDS + 2,
                                    2 * mix.MOST_KINDS + 1)], kinds)
        self.assertAlmostEqual(1.0, sum(self.mix.weights()))

    def test_what_it_remembers_is_bounded(self):
        for pcpus in range(1, 5 * mix.MOST_COUNTED):
            self.observe(pcpus)
        self.assertLessEqual(len(self.mix._counts),
                             mix.MOST_COUNTED + mix.REVIEW)

    def test_equal_histories_give_equal_mixes(self):
        other = mix.Mix()
        for number in range(500):
            demand = builders.guest(1 + number * 7 % 40)
            self.mix.observe(demand)
            other.observe(demand)
        self.assertEqual(other.kinds, self.mix.kinds)
        self.assertEqual(other.weights(), self.mix.weights())
