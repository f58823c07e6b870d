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

"""Bipartite matching."""

import itertools
import random
import unittest

from hpcvirt.fit import matching


class MatchTest(unittest.TestCase):

    def test_every_left_node_gets_a_neighbor_of_its_own(self):
        neighbors = [(0, 1), (0,), (1, 2)]
        partner = matching.match(neighbors)
        self.assertEqual({0: 1, 1: 0, 2: 2}, partner)

    def test_too_few_neighbors_make_no_matching(self):
        self.assertIsNone(matching.match([(0, 1), (0, 1), (0, 1)]))

    def test_excluded_nodes_are_not_used(self):
        self.assertEqual({1: 0}, matching.match([(0, 1)], {0}))
        self.assertIsNone(matching.match([(0,)], {0}))

    def test_an_empty_graph_is_matched(self):
        self.assertEqual({}, matching.match([]))

    def test_contenders_have_too_few_neighbors_between_them(self):
        self.assertEqual([1, 2], matching.contenders([(0, 1), (2,), (2,)]))
        self.assertEqual([], matching.contenders([(0, 1), (1,)]))

    def test_it_agrees_with_trying_all_assignments(self):
        dice = random.Random(1)
        for _ in range(2000):
            size = dice.randint(1, 4)
            neighbors = [tuple(right for right in range(dice.randint(1, 5))
                            if dice.random() < 0.5) for _ in range(size)]
            possible = any(
                all(right in nodes for right, nodes in
                    zip(choice, neighbors, strict=True))
                for choice in itertools.permutations(range(5), size))
            self.assertEqual(possible, matching.match(neighbors) is not None)
            contenders = matching.contenders(neighbors)
            self.assertEqual(possible, not contenders)
            if contenders:
                adjacent = set().union(*(neighbors[c] for c in contenders))
                self.assertLess(len(adjacent), len(contenders))
