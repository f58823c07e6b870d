# SPDX-License-Identifier: Apache-2.0

import dataclasses
import random
import unittest

from hpcvirt.fit import cell_assignment as cell_assignments
from hpcvirt.fit import claim
from hpcvirt.simulate import causes
from hpcvirt.simulate import host_table
from hpcvirt.simulate import moving
from hpcvirt.simulate import outcome
from hpcvirt.simulate import replay
from hpcvirt.simulate import requests
from hpcvirt.simulate import scheduler
from hpcvirt.simulate import strategy
from tests.unit.simulate import small


def play(fleet, flavors, *arrivals, moves=1):
    return replay.replay(fleet, requests.Requests(
        flavors, tuple(requests.Arrival(*each) for each in arrivals)),
        strategy.parse('nova+moves' if moves else 'nova', moves)[0])


class MovingTest(unittest.TestCase):
    def test_a_guest_moves_out_of_the_way(self):
        # Upstream spreads: each host has a guest when the large one comes.
        fleet = [small.host(small.cell(0))] * 2
        flavors = small.flavor(4), small.flavor(8)
        arrivals = (0, 9, 0), (1, 9, 0), (2, 7, 1), (10, 9, 1, 2)
        self.assertEqual(
            (None, None, outcome.Cause.FRAGMENTATION, None),
            play(fleet, flavors, *arrivals, moves=0).fates)
        found = play(fleet, flavors, *arrivals)
        self.assertEqual((None,) * 4, found.fates)
        self.assertEqual(1, found.moves)

    def test_no_guest_moves_if_capacity_lacks_or_moves_are_too_few(self):
        fleet = [small.host(small.cell(0))] * 3
        flavors = small.flavor(3), small.flavor(8)
        start = [(0, 9, 0)] * 3
        found = play(fleet, flavors, *start, (1, 9, 1, 2))
        self.assertEqual(outcome.Cause.CAPACITY, found.fates[-1])
        found = play(fleet, flavors, *start, (0, 9, 0), (0, 9, 0), (1, 9, 1))
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
                        for guest in running.on(host))
            self.assertEqual(64 - taken, table.free_pcpus.sum())
            self.assertEqual(64 - taken, sum(
                len(cell.free) for supply in table.supplies
                for cell in supply.cells))
        self.assertGreater(mover.moves, 20)
        while len(running):
            chooser.remove(running.end_next())
        self.assertEqual([supply.cells for supply in fleet],
                         [supply.cells for supply in table.supplies])

    def test_one_move_is_found_wherever_brute_force_finds_one(self):
        dice = random.Random(5)
        found = 0
        for _ in range(60):
            fleet = [small.host(small.cell(0), small.cell(1))] * 3
            flavors = tuple(small.flavor(cpus) for cpus in (2, 3, 4, 8))
            arrivals = [(0, 9, dice.choice((0, 0, 1, 2)))
                        for _ in range(dice.randrange(6, 13))]
            last = (1, 9, 3)
            still = play(fleet, flavors, *arrivals, last, moves=0)
            if still.fates[-1] is not outcome.Cause.FRAGMENTATION or any(
                    still.fates[:-1]):
                continue
            moved = play(fleet, flavors, *arrivals, last)
            self.assertEqual(
                self.one_is_enough(fleet, flavors, arrivals, last),
                moved.fates[-1] is None)
            found += moved.moves
        self.assertGreater(found, 3)

    def one_is_enough(self, fleet, flavors, arrivals, last):
        """Try each guest on each other host."""
        plan = strategy.parse('nova', 0)[0]
        table = host_table.HostTable(fleet, flavors)
        chooser = scheduler.Scheduler(table, flavors, plan)
        guests = [chooser.place(number, 1)[0] for *_, number in arrivals]
        wanted = flavors[last[2]].guest.demand
        for own in guests:
            guest = own
            demand = flavors[guest.flavor].guest.demand
            for target in range(3):
                if target == guest.host:
                    continue
                placed = claim.predict(demand, table.supplies[target])
                if not isinstance(placed, cell_assignments.CellAssignment):
                    continue
                new = table.place(target, guest.flavor, placed)
                table.remove(guest)
                if any(isinstance(claim.predict(wanted, supply),
                                  cell_assignments.CellAssignment)
                       for supply in table.supplies):
                    return True
                table.remove(new)
                guest = table.place(guest.host, guest.flavor,
                                    guest.holding.placement)
        return False


class DeterminismTest(unittest.TestCase):
    def test_the_same_requests_have_the_same_outcome(self):
        dice = random.Random(6)
        fleet = [small.host(small.cell(0), small.cell(1), vfs=((0, 4),))] * 3
        flavors = (small.flavor(2), small.flavor(8), small.flavor(4, 4),
                   small.flavor(2, vfs=1))
        arrivals = [(time, dice.randrange(1, 30), dice.randrange(4))
                    for time in range(100)]
        first, second = (dataclasses.replace(
            play(fleet, flavors, *arrivals, moves=2), seconds=0)
            for _ in range(2))
        self.assertEqual(first, second)
        self.assertGreater(first.moves, 0)
