# SPDX-License-Identifier: Apache-2.0

"""The engine against an oracle that tries all arrangements."""

import random
import unittest

from hpcvirt.fit import claim
from hpcvirt.fit import demand as demands
from hpcvirt.fit import engine
from hpcvirt.fit import reasons
from tests import oracle
from tests.builders import cases

CASES = 2000


class OracleTest(unittest.TestCase):
    """Each test has its own random cases, so that tests run in parallel."""

    def roll(self, block):
        fitting = 0
        for number in range(CASES):
            seed = f'oracle {block * CASES + number}'
            case = cases.a_case(random.Random(seed))
            for mapping in case.mappings:
                with self.subTest(seed=seed, case=case, mapping=mapping):
                    fitting += self.compare(case, mapping)
        # Both answers must occur.
        self.assertGreater(fitting, CASES // 5)
        self.assertLess(fitting, CASES)

    def compare(self, case, mapping):
        truth = oracle.first(case, mapping)
        demand, supply = cases.demand(case), cases.supply(case)
        arguments = (demand, supply, cases.providers(case, mapping))
        placed = engine.place(*arguments)
        misfit = engine.check(*arguments)
        if truth is None:
            self.assertIsInstance(placed, reasons.Misfit)
            self.assertEqual(placed.code, misfit.code)
            self.assertTrue(placed.message)
            self.assertIsNotNone(claim.check(*arguments))
        else:
            self.assertIsInstance(placed, demands.CellAssignment,
                                  placed)
            self.assertEqual(truth, placed.cells)
            self.assertIsNone(misfit)
        return truth is not None

    def test_first_block_of_cases(self):
        self.roll(0)

    def test_periodic_nine_more_blocks_of_cases(self):
        for block in range(1, 10):
            self.roll(block)
