# SPDX-License-Identifier: Apache-2.0

import dataclasses
import itertools
import random
import unittest

from hpcvirt.model import shape as shape_model
from hpcvirt.simulate import bounds
from hpcvirt.simulate import outcome
from hpcvirt.simulate import replay
from hpcvirt.simulate import requests
from hpcvirt.simulate import strategy
from tests import optimum
from tests.unit.simulate import small

CAPACITY = outcome.Cause.CAPACITY
STAYING = 'nova', 'packing', 'best-fit', 'hpcvirt', 'hpcvirt+fullest'


def asked(flavors, *arrivals):
    return requests.Requests(
        flavors, tuple(requests.Arrival(*each) for each in arrivals))


def lost(requested, fates):
    return sum(arrival.duration * arrival.count
               * requested.flavors[arrival.flavor].cpus
               for arrival, fate in zip(requested.arrivals, fates,
                                        strict=True) if fate)


class OptimumTest(unittest.TestCase):
    def test_a_later_request_may_be_worth_more(self):
        fleet = [small.host(small.cell(0))]
        wanted = asked((small.flavor(5), small.flavor(8)),
                       (0, 9, 0), (1, 9, 1), (8, 9, 0), (17, 1, 1))
        self.assertEqual(
            (None, CAPACITY, CAPACITY, None),
            replay.replay(fleet, wanted, strategy.parse('nova', 0)[0]).fates)
        self.assertEqual(
            (CAPACITY, None, CAPACITY, None),
            optimum.find_fates(fleet, wanted, optimum.Freedom.STAY))

    def test_freedom_gains(self):
        fleet = [small.host(small.cell(0), small.cell(1))]
        flavors = small.flavor(4), small.flavor(8), small.flavor(12)
        # The first two must share a cell to let the third in. Then the
        # fourth is not with the second when the fifth comes.
        wanted = asked(flavors, (0, 5, 0), (0, 20, 0), (1, 2, 1), (4, 16, 0),
                       (6, 3, 1), (20, 1, 2))
        self.assertEqual(
            [8 * 2 + 12, 12, 0],
            [lost(wanted, optimum.find_fates(fleet, wanted, freedom))
             for freedom in optimum.Freedom])

    def test_pages_and_devices_are_those_of_the_cell(self):
        fleet = [small.host(small.cell(0, huge=1024), small.cell(1),
                            vfs=((1, 2),))]
        near = small.flavor(2, vfs=1,
                            affinity=shape_model.PCIAffinity.REQUIRED)
        paged = small.flavor(2, memory_mib=1024, page_kib=small.HUGE)
        far = small.flavor(2, vfs=1,
                           affinity=shape_model.PCIAffinity.PREFERRED)
        for flavor, count in ((near, 2), (paged, 2), (far, 2)):
            for number, fate in ((count, None), (count + 1, CAPACITY)):
                self.assertEqual((fate,), optimum.find_fates(
                    fleet, asked((flavor,), (0, 1, 0, number)),
                    optimum.Freedom.STAY))
        both = asked((dataclasses.replace(near), small.flavor(7)),
                     (0, 1, 1, 2), (0, 1, 0))
        self.assertEqual((None, CAPACITY), optimum.find_fates(
            fleet, both, optimum.Freedom.STAY))

    def test_a_large_case_is_none(self):
        one = [small.host(small.cell(0))]
        many = [small.host(*map(small.cell, range(8)))] * 40
        for fleet, flavor, number, known in (
                (one, small.flavor(1), 30, True),
                (one, small.flavor(1), 31, False),
                (many, small.flavor(1, 1, 1, 1), 4, False)):
            found = optimum.find_fates(fleet, asked(
                (flavor,), *[(0, 1, 0)] * number), optimum.Freedom.STAY)
            self.assertEqual(known, found is not None)

    def test_nothing_beats_the_optimum(self):
        dice = random.Random(3)
        gains = 0
        for _ in range(12):
            gains += self.check(*self.case(dice))
        self.assertGreater(gains, 2)

    def case(self, dice):
        fleet = [small.host(*(
            small.cell(number, dice.choice((4, 8)), huge=512,
                       threads=dice.choice((1, 2)), shared=2)
            for number in range(dice.choice((1, 2)))),
            vfs=((0, 2),) * dice.choice((0, 1)), cpu_ratio=2.0)
            for _ in range(2)]
        flavors = tuple(small.flavor(
            *dice.choice(((2,), (3,), (4,), (6,), (2, 2))),
            memory_mib=dice.choice((512, 1024)),
            page_kib=dice.choice((None, small.HUGE)),
            vfs=dice.choice((0, 0, 1)),
            affinity=dice.choice(tuple(shape_model.PCIAffinity)))
            for _ in range(3))
        return fleet, asked((*flavors, small.flavor(2, shared=True)), *(
            (time, dice.randrange(1, 8), dice.randrange(4),
             dice.choice((1, 1, 2))) for time in range(9)))

    def check(self, fleet, wanted):
        pool, repack, stay = (
            lost(wanted, optimum.find_fates(fleet, wanted, freedom))
            for freedom in (optimum.Freedom.POOL, optimum.Freedom.REPACK,
                            optimum.Freedom.STAY))
        self.assertLessEqual(pool, repack)
        self.assertLessEqual(repack, stay)
        self.assertLessEqual(pool, lost(
            wanted, bounds.replay_as_one_host(fleet, wanted).fates))
        least = float('inf')
        for name in STAYING:
            found = lost(wanted, replay.replay(
                fleet, wanted, strategy.parse(name, 0)[0]).fates)
            self.assertLessEqual(stay, found)
            self.assertLessEqual(repack, lost(wanted, replay.replay(
                fleet, wanted, strategy.parse(f'{name}+moves', 2)[0]).fates)
                if '+' not in name else found)
            least = min(least, found)
        return least > stay


class BruteForceTest(unittest.TestCase):
    """The optimum is that of trying everything, on a host of two cells."""

    def test_the_optimum_is_found(self):
        dice = random.Random(2)
        fleet = [small.host(small.cell(0, 4), small.cell(1, 4))]
        flavors = tuple(map(small.flavor, (1, 2, 3, 4)))
        for _ in range(30):
            wanted = asked(flavors, *(
                (time, dice.randrange(1, 6), dice.randrange(4))
                for time in range(6)))
            best = optimum.find_fates(fleet, wanted, optimum.Freedom.STAY)
            self.assertEqual(self.least(wanted), lost(wanted, best))

    def least(self, wanted):
        """Try to refuse each request, or to place it on each cell."""
        least = float('inf')
        for where in itertools.product((None, 0, 1), repeat=6):
            if all(self.taken(wanted, where, cell, arrival.time) <= 4
                   for cell in (0, 1) for arrival in wanted.arrivals):
                least = min(least, lost(
                    wanted, [None if cell is not None else CAPACITY
                             for cell in where]))
        return least

    def taken(self, wanted, where, cell, time):
        return sum(wanted.flavors[arrival.flavor].cpus
                   for arrival, its in zip(wanted.arrivals, where, strict=True)
                   if its == cell
                   and arrival.time <= time < arrival.time
                   + arrival.duration)
