# SPDX-License-Identifier: Apache-2.0

import itertools
import random
import unittest

from hpcvirt.fit import cell_search
from hpcvirt.fit import reasons
from tests import oracle
from tests.builders import cases
from tests.builders import tiny


class AgainstOracleTest(unittest.TestCase):
    """The matrix of guest cells and host cells, against the oracle."""

    def test_pairs_and_shortages_are_those_of_the_oracle(self):
        short = 0
        for seed in range(2000):
            case = cases.a_case(random.Random(f'matrix {seed}'))
            demand, supply = cases.demand(case), cases.supply(case)
            matrix = cell_search.FitMatrix(demand, supply, supply.cells)
            fitting = [
                tuple(rank for rank, cell in enumerate(case.host)
                      if oracle.fits(case, number, cell))
                for number in range(len(case.guest))]
            with self.subTest(seed=seed):
                self.assertEqual(fitting, matrix.fitting)
                arranged = any(
                    all(rank in ranks for rank, ranks
                        in zip(arrangement, fitting, strict=True))
                    for arrangement in itertools.permutations(
                        range(len(case.host)), len(fitting)))
                shortage = matrix.shortage()
                self.assertEqual(arranged, shortage is None)
                short += not arranged
        self.assertGreater(short, 200)
        self.assertLess(short, 1800)


class ObstaclesTest(unittest.TestCase):
    def matrix(self):
        # Guest cells 1 and 2 are equal; only cell 1 has room for them.
        supply = tiny.host(4, 0, 6)
        return cell_search.FitMatrix(tiny.guest(2, 8, 8), supply, supply.cells)

    def test_equal_obstacles_are_listed_once_in_the_order_of_cells(self):
        obstacles = self.matrix().obstacles()
        self.assertEqual([0, 2], [obstacle.details['cell']
                                  for obstacle in obstacles])

    def test_guest_cells_and_host_cells_can_be_selected(self):
        matrix = self.matrix()
        self.assertEqual((), matrix.obstacles(guests=[0]))
        self.assertEqual([2], [obstacle.details['cell'] for obstacle
                               in matrix.obstacles(ranks=[1, 2])])

    def test_a_shortage_names_the_guest_cells_that_contend(self):
        shortage = self.matrix().shortage()
        self.assertEqual(reasons.Code.CELLS_CONTENDED, shortage.code)
        self.assertEqual({'guest_cells': '1, 2', 'free': 1, 'needed': 2},
                         shortage.details)


class MatchTest(unittest.TestCase):
    """Bipartite matching."""

    def test_every_left_node_gets_a_neighbor_of_its_own(self):
        neighbors = [(0, 1), (0,), (1, 2)]
        partner = cell_search.match(neighbors)
        self.assertEqual({0: 1, 1: 0, 2: 2}, partner)

    def test_too_few_neighbors_make_no_matching(self):
        self.assertIsNone(cell_search.match([(0, 1), (0, 1), (0, 1)]))

    def test_excluded_nodes_are_not_used(self):
        self.assertEqual({1: 0}, cell_search.match([(0, 1)], {0}))
        self.assertIsNone(cell_search.match([(0,)], {0}))

    def test_an_empty_graph_is_matched(self):
        self.assertEqual({}, cell_search.match([]))

    def test_contenders_have_too_few_neighbors_between_them(self):
        self.assertEqual([1, 2], cell_search.contenders([(0, 1), (2,), (2,)]))
        self.assertEqual([], cell_search.contenders([(0, 1), (1,)]))

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
            found = cell_search.match(neighbors)
            self.assertEqual(possible, found is not None)
            contenders = cell_search.contenders(neighbors)
            self.assertEqual(possible, not contenders)
            if contenders:
                adjacent = set().union(*(neighbors[c] for c in contenders))
                self.assertLess(len(adjacent), len(contenders))
