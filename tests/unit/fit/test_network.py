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

"""Networks with affinity to host cells."""

import unittest

from hpcvirt.fit import network
from tests.unit.fit import builders


class AffinityTest(unittest.TestCase):

    CELLS = (
        builders.host_cell(0, physnets=frozenset({'a'})),
        builders.host_cell(1, physnets=frozenset({'a', 'b'})),
        builders.host_cell(2, tunneled=True))

    def met(self, cells, **networks):
        affinities = network.affinities(builders.guest(1, **networks),
                                    self.CELLS)
        return network.satisfied(affinities, cells)

    def test_one_of_the_cells_of_a_network_is_enough(self):
        networks = {'physnets': frozenset({'a'})}
        self.assertTrue(self.met({0}, **networks))
        self.assertTrue(self.met({1, 2}, **networks))
        self.assertFalse(self.met({2}, **networks))

    def test_each_network_needs_one_of_its_cells(self):
        networks = {'physnets': frozenset({'a', 'b'})}
        self.assertTrue(self.met({1}, **networks))
        self.assertFalse(self.met({0}, **networks))

    def test_affinitieswithout_affinity_accept_any_cells(self):
        self.assertTrue(self.met({2}, physnets=frozenset({'c'})))

    def test_tunnelled_affinitieshave_cells_of_their_own(self):
        self.assertTrue(self.met({2}, tunneled=True))
        self.assertFalse(self.met({0, 1}, tunneled=True))

    def test_a_guest_without_affinitiessets_no_condition(self):
        self.assertEqual((), network.affinities(builders.guest(1),
                                                self.CELLS))
