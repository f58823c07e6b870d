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

import random
import unittest
from unittest import mock

from hpcvirt.fit import capacity
from hpcvirt.fit import cell_filling
from hpcvirt.fit import devices
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shapes

SEED = 20261122


def a_cell(dice, number, threads, cores):
    """Create a cell of which random CPUs and pages are in use."""
    siblings = [frozenset(core + thread * cores for thread in range(threads))
                for core in range(cores)]
    cpus = frozenset().union(*siblings)
    whole = dice.random() < 0.5
    free = frozenset().union(*(
        core if whole else dice.sample(sorted(core), dice.randint(0, threads))
        for core in siblings if dice.random() < 0.8))
    used = dice.randrange(70)
    return supplies.CellSupply(
        number, 0, cpus, free, frozenset(), siblings, 0, 4096,
        dice.randrange(3000), tuple(
            supplies.PageSupply(size, total, used, total - used)
            for size, total in ((4, 200_000), (2048, dice.randrange(900)))))


def a_shape(dice):
    """Create a shape; most are equal cells with pages of a given size."""
    cell = shapes.GuestCell(dice.choice((1, 2, 3, 4)), 0,
                            dice.choice((64, 128, 131, 300)),
                            page_kib=dice.choice((2048, 2048, 4, None)))
    return shapes.Shape(
        (cell,) * dice.choice((1, 1, 2, 3)), shapes.CPUPolicy.DEDICATED,
        dice.choice((None, *shapes.ThreadPolicy)),
        emulator_threads=dice.choice((
            None, None, shapes.EmulatorThreads.ISOLATE)))


class CellFillingTest(unittest.TestCase):

    def test_it_counts_as_the_claims_one_after_the_other(self):
        dice = random.Random(SEED)
        kinds = cell_filling.CellKinds()
        total = reused = 0
        for _ in range(120):
            shape = a_shape(dice)
            fillings = cell_filling.CellFillings(shape)
            for _ in range(4):
                threads, cores = dice.choice((1, 2)), dice.choice((3, 8))
                supply = supplies.Supply(
                    tuple(a_cell(dice, number, threads, cores)
                          for number in range(dice.randint(1, 5))),
                    (devices.pool(dice.randrange(3), 1),),
                    spares_devices=dice.random() < 0.5)
                packing = dice.random() < 0.3
                limit = dice.choice((0, 1, 3, 100))
                expected = capacity.fill(shape, supply, limit, packing).count
                with mock.patch.object(
                        capacity, 'fill', wraps=capacity.fill) as left:
                    self.assertEqual(expected, fillings.count(
                        supply, kinds.of(supply), limit, packing),
                        (shape, supply, limit, packing))
                reused += not left.called
                total += expected
        self.assertGreater(total, 200)
        self.assertGreater(reused, 150)

    def test_cells_that_differ_in_their_numbers_are_of_one_kind(self):
        kinds = cell_filling.CellKinds()
        cell = supplies.CellSupply(
            0, 0, frozenset(range(4)), frozenset({0, 3}), frozenset(),
            (frozenset({0, 2}), frozenset({1, 3})), 0, 4096, 0, ())
        other = cell._replace(id=5, free=frozenset({1, 2}))
        narrow = cell._replace(siblings=tuple(map(frozenset, '0123')))
        kind, same, differing = kinds.of(supplies.Supply(
            (cell, other, narrow)))
        self.assertIs(kind, same)
        self.assertIsNot(kind, differing)
