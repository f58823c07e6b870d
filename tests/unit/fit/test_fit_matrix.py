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

"""The matrix of guest cells and host cells, against the oracle."""

import itertools
import random
import unittest

from hpcvirt.fit import fit_matrix
from hpcvirt.fit import reasons
from tests import cases
from tests import oracle
from tests.unit.fit import builders


class AgainstOracleTest(unittest.TestCase):

    def test_pairs_and_shortages_are_those_of_the_oracle(self):
        short = 0
        for seed in range(2000):
            case = cases.a_case(random.Random(f'matrix {seed}'))
            demand, supply = cases.demand(case), cases.supply(case)
            matrix = fit_matrix.FitMatrix(demand, supply, supply.cells)
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
        supply = builders.host(4, 0, 6)
        return fit_matrix.FitMatrix(builders.guest(2, 8, 8), supply,
                                    supply.cells)

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
