# SPDX-License-Identifier: Apache-2.0

import random
import unittest

from hpcvirt.simulate import causes
from hpcvirt.simulate import host_table
from hpcvirt.simulate import moving
from hpcvirt.simulate import outcome
from hpcvirt.simulate import scheduler
from hpcvirt.simulate import strategy
from tests.unit.simulate import small


class MovingTest(unittest.TestCase):
    def test_a_guest_moves_out_of_the_way(self):
        # Upstream spreads: each host has a guest when the large one comes.
        fleet = [small.host(small.cell(0))] * 2
        flavors = small.flavor(4), small.flavor(8)
        arrivals = (0, 9, 0), (1, 9, 0), (2, 7, 1), (10, 9, 1, 2)
        self.assertEqual(
            (None, None, outcome.Cause.FRAGMENTATION, None),
            small.play(fleet, flavors, *arrivals, name='nova').fates)
        found = small.play(fleet, flavors, *arrivals, name='nova+moves')
        self.assertEqual((None,) * 4, found.fates)
        self.assertEqual(1, found.moves)

    def test_no_guest_moves_if_capacity_lacks_or_moves_are_too_few(self):
        fleet = [small.host(small.cell(0))] * 3
        flavors = small.flavor(3), small.flavor(8)
        start = [(0, 9, 0)] * 3
        found = small.play(fleet, flavors, *start, (1, 9, 1, 2),
                           name='nova+moves')
        self.assertEqual(outcome.Cause.CAPACITY, found.fates[-1])
        found = small.play(fleet, flavors, *start, (0, 9, 0), (0, 9, 0),
                           (1, 9, 1), name='nova+moves')
        self.assertEqual(outcome.Cause.FRAGMENTATION, found.fates[-1])
        self.assertEqual(0, found.moves)

    def test_moved_guests_end_where_they_are(self):
        dice = random.Random(4)
        fleet = [small.host(small.cell(0, 8), small.cell(1, 8))] * 4
        flavors = tuple(small.flavor(*cells) for cells in (
            (2,), (3,), (8,), (4, 4), (8, 8)))
        own = causes.flavors(flavors)
        plan = strategy.parse('nova+moves', 2)[0]
        table = host_table.HostTable(fleet, own)
        chooser = scheduler.Scheduler(table, own, plan)
        running = host_table.Population(flavors)
        mover = moving.Mover(chooser, running, flavors, 2)
        for time in range(300):
            while running.next_end <= time:
                chooser.remove(running.end_next())
            number = dice.randrange(len(flavors))
            guests = chooser.place(number, 1)
            if not guests:
                before = mover.moves
                guests = mover(number, 1)
                self.assertLessEqual(mover.moves, before + 2)
            if guests:
                running.start(guests, time + dice.randrange(1, 40))
            taken = sum(len(guest.holding.cpus) for host in range(4)
                        for guest in running.list_guests(host))
            self.assertEqual(64 - taken, table.free_pcpus.sum())
            self.assertEqual(64 - taken, sum(
                len(cell.free) for supply in table.supplies
                for cell in supply.cells))
        self.assertGreater(mover.moves, 20)
        while len(running):
            chooser.remove(running.end_next())
        self.assertEqual([supply.cells for supply in fleet],
                         [supply.cells for supply in table.supplies])
