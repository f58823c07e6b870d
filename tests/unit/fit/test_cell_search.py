# SPDX-License-Identifier: Apache-2.0

"""The search for cells with devices, held against all arrangements."""

import itertools
import random
import time
import unittest

from hpcvirt.fit import cell
from hpcvirt.fit import cell_search
from hpcvirt.fit import engine
from hpcvirt.fit import reasons
from tests.builders import tiny

USUAL, PERIODIC = 500, 10_000


def by_brute_force(guest, host):
    """Try all arrangements in order; None if none fits."""
    ordered = engine.claim_order(guest, host)
    affinity = cell_search.AffinityCheck(guest, host)
    for chosen in itertools.permutations(ordered, len(guest.cells)):
        if all(cell.obstacle(own, place) is None for own, place
               in zip(guest.cells, chosen, strict=True)) and affinity.met(
                   place.id for place in chosen):
            return tuple(place.id for place in chosen)
    return None


class SearchTest(unittest.TestCase):
    def test_the_first_of_all_arrangements_is_found(self):
        self.compare(USUAL, 'usual')

    def test_periodic_the_first_of_all_arrangements_is_found(self):
        self.compare(PERIODIC, 'periodic')

    def compare(self, count, name):
        """Compare random guests on random hosts.

        :param name: of this series of random numbers
        """
        dice = random.Random(f'search {name}')
        fits = 0
        for number in range(count):
            cells = dice.randint(2, 6)
            guest = tiny.guest(
                *(dice.randint(1, 6) for _ in range(
                    dice.randint(1, min(cells, 4)))),
                requests=tuple(tiny.request(
                    dice.choice('ab'), dice.choice((1, 1, 2)),
                    dice.choice(('socket', 'socket', 'required', 'legacy',
                                 'preferred')))
                               for _ in range(dice.randint(1, 5))))
            host = tiny.host(
                *(dice.randint(0, 6) for _ in range(cells)), pools=sum((
                    tiny.gpus(*(dice.choice((0, 0, 1, 2))
                                for _ in range(cells)), alias=alias)
                    for alias in 'ab'), ()))
            found = engine.place(guest, host)
            expected = by_brute_force(guest, host)
            with self.subTest(number=number):
                if expected is None:
                    self.assertIsInstance(found, reasons.Misfit)
                    self.assertIsNot(reasons.Code.UNDECIDED, found.code)
                else:
                    self.assertEqual(expected, found.cells)
                    fits += 1
        self.assertGreater(fits, count // 10)

    def test_devices_that_sockets_lack_are_counted_at_once(self):
        guest = tiny.guest(*range(1, 8), requests=(
            tiny.request(affinity='socket'),) * 12)
        host = tiny.host(*[0] * 12, *[8] * 4, pools=tiny.gpus(
            *[0] * 12, *[3] * 4))
        before = time.process_time()
        self.assertIs(reasons.Code.DEVICE_AFFINITY,
                      engine.place(guest, host).code)
        self.assertLess(time.process_time() - before, 0.1)

    def test_the_effort_is_bounded(self):
        # Three kinds everywhere, the fourth only where there is no room.
        pools = sum((tiny.gpus(*[1] * 16, alias=alias)
                     for alias in 'abc'), ()) + tiny.gpus(
                         *[0] * 16, 1, 1, alias='d')
        guest = tiny.guest(*range(1, 8), requests=(
            *map(tiny.request, 'abc'), tiny.request('d', affinity='legacy')))
        before = time.process_time()
        misfit = engine.place(guest, tiny.host(*[0] * 16, 8, 8,
                                               pools=pools))
        self.assertIs(reasons.Code.UNDECIDED, misfit.code)
        self.assertIn('first 4096 sets of cells', misfit.message)
        spent = time.process_time() - before
        self.assertLess(spent, 2)


class EffortTest(unittest.TestCase):
    def test_as_many_sets_are_tried_as_allowed(self):
        effort = cell_search.Effort()
        for _ in range(cell_search.MAX_SETS):
            self.assertTrue(effort.spend())
        self.assertFalse(effort.spent)
        self.assertFalse(effort.spend())
        self.assertTrue(effort.spent)
