# SPDX-License-Identifier: Apache-2.0

import math
import random
import unittest

from hpcvirt import exception
from hpcvirt.simulate import host_table
from hpcvirt.simulate import moving
from hpcvirt.simulate import outcome
from hpcvirt.simulate import replay
from hpcvirt.simulate import requests
from hpcvirt.simulate import scheduler
from hpcvirt.simulate import strategy
from tests.unit.simulate import small


def free(table):
    """Count the free CPUs of a table twice."""
    return table.free_pcpus.sum(), sum(
        len(cell.free) for supply in table.supplies for cell in supply.cells)


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
        own = replay.relax_flavors(flavors)
        plan = strategy.parse('nova+moves', 2)[0]
        table = host_table.HostTable(small.states(fleet), own)
        chooser = scheduler.Scheduler(table, own, plan)
        running = host_table.Population(flavors)
        mover = moving.Mover(chooser, running, flavors)
        for time in range(300):
            while running.next_end <= time:
                chooser.remove(running.end_next())
            number = dice.randrange(len(flavors))
            guests = chooser.place(number, 1)
            if not guests:
                before = mover.moves
                guests = mover.rescue(number, 1)
                self.assertLessEqual(mover.moves, before + 2)
            if guests:
                running.start(guests, time + dice.randrange(1, 40))
            taken = sum(len(guest.holding.cpus) for host in range(4)
                        for guest in running.list_guests(host))
            self.assertEqual((64 - taken,) * 2, free(table))
        self.assertGreater(mover.moves, 20)
        while len(running):
            chooser.remove(running.end_next())
        self.assertEqual([supply.cells for supply in fleet],
                         [supply.cells for supply in table.supplies])


class StandingRoomTest(unittest.TestCase):
    """A guest of 8 CPUs needs a whole host; upstream spreads those of 4."""

    FLEET = (small.host(small.cell(0)),) * 2
    FLAVORS = small.flavor(4, memory_mib=1024), small.flavor(8)
    #: The large kind is usual after the first request.
    ARRIVALS = (0, 1, 1), (1, 99, 0), (2, 99, 0)

    def play(self, *arrivals, name='nova+standing', copy_mib_per_s=1024):
        found = replay.replay(
            strategy.parse(name, 1, copy_mib_per_s)[0],
            small.states(self.FLEET),
            small.asked(self.FLAVORS, *self.ARRIVALS, *arrivals))
        return [fate is None for fate in found.fates[3:]], found.moves

    def test_room_is_there_when_the_copy_has_ended(self):
        # The move begins at 2, and takes a second.
        self.assertEqual(([False], 1), self.play((2.9, 9, 1)))
        self.assertEqual(([True], 1), self.play((3, 9, 1)))
        self.assertEqual(([False], 0), self.play((3, 9, 1), name='nova'))
        self.assertEqual(([False], 1), self.play(
            (5, 9, 1), copy_mib_per_s=300))
        self.assertEqual(([True], 1), self.play(
            (5.5, 9, 1), copy_mib_per_s=300))

    def test_meanwhile_the_guest_is_on_both_hosts(self):
        # 4 of 16 CPUs are free during the move, and 8 afterwards.
        self.assertEqual(([True, False], 1),
                         self.play((2.5, 9, 0), (2.6, 9, 0)))
        self.assertEqual(([True, True, False], 1),
                         self.play((3, 9, 0), (3, 9, 0), (3, 9, 0)))

    def test_every_nth_request_is_counted(self):
        for every, moves in ((1, 1), (3, 1), (4, 1), (5, 0)):
            self.assertEqual(moves, self.play(
                (3, 1, 1), name=f'nova+standing:{every}')[1])

    def test_a_strategy_says_after_how_many_requests(self):
        for name, every, moves in (
                ('nova', 0, 0), ('nova+standing', 1, 0),
                ('nova+moves', 0, 2), ('nova+standing:25+moves', 25, 2)):
            (found,) = strategy.parse(name, 2)
            self.assertEqual((every, moves), (found.standing, found.moves))
        for name in ('nova+standing:0', 'nova+standing:x', 'nova+moves:2',
                     'nova+standing+standing:2', 'nova+standing:'):
            with self.assertRaisesRegex(exception.InvalidInput, 'standing:N'):
                strategy.parse(name, 2)

    def test_a_guest_that_ends_frees_both_hosts(self):
        fleet = self.FLEET
        arrivals = (0, 1, 1), (1, 1.5, 0), (2, 0.5, 0), (2.5, 9, 1), (
            2.5, 9, 1)
        found = replay.replay(
            strategy.parse('nova+standing', 1, 1024)[0], small.states(fleet),
            small.asked(self.FLAVORS, *arrivals))
        self.assertEqual((None,) * 5, found.fates)
        self.assertEqual(1, found.moves)

    def test_moved_guests_end_where_they_are(self):
        dice = random.Random(4)
        fleet = [small.host(small.cell(0, 8), small.cell(1, 8))] * 4
        flavors = tuple(small.flavor(*cells) for cells in (
            (2,), (3,), (8,), (4, 4), (8, 8)))
        own = replay.relax_flavors(flavors)
        plan = strategy.parse('nova+standing', 2, 300)[0]
        table = host_table.HostTable(small.states(fleet), own)
        chooser = scheduler.Scheduler(table, own, plan)
        running = host_table.Population(flavors)
        room = moving.Mover(chooser, running, flavors)
        fits = replay.Causes(chooser, flavors).fits
        doubled = 0
        for time in range(400):
            while min(running.next_end, room.next_end) <= time:
                if room.next_end <= running.next_end:
                    room.end_move(room.next_end)
                else:
                    end = running.next_end
                    ended = running.end_next()
                    chooser.remove(ended)
                    if room.moved in ended:
                        room.end_move(end)
            arrival = requests.Arrival(time, dice.randrange(1, 40),
                                       dice.randrange(len(flavors)))
            guests = chooser.place(arrival.flavor, 1)
            if guests:
                running.start(guests, time + arrival.duration)
            room.observe(arrival, fits)
            taken = sum(len(guest.holding.cpus) for host in range(4)
                        for guest in running.list_guests(host))
            cpus, cells = free(table)
            self.assertEqual(cpus, cells)
            # Only a guest whose memory is copied counts twice.
            self.assertLessEqual(cpus, 64 - taken)
            if room.next_end == math.inf:
                self.assertEqual(cpus, 64 - taken)
            doubled += cpus < 64 - taken
        self.assertGreater(room.moves, 20)
        self.assertGreater(doubled, 20)
        while len(running):
            end = running.next_end
            ended = running.end_next()
            chooser.remove(ended)
            if room.moved in ended:
                room.end_move(end)
        self.assertEqual([supply.cells for supply in fleet],
                         [supply.cells for supply in table.supplies])

    def test_periodic_room_beforehand_gains_most_of_what_moves_gain(self):
        dice = random.Random(7)
        fleet = [small.host(small.cell(0, 8), small.cell(1, 8))] * 6
        flavors = tuple(map(small.flavor, (2, 4, 8)))
        arrivals = [(time, dice.randrange(20, 100), dice.randrange(3))
                    for time in range(0, 3000, 3)]
        lost = {name: sum(
            duration * (2, 4, 8)[flavor] for (_, duration, flavor), fate
            in zip(arrivals, small.play(
                fleet, flavors, *arrivals, name=name, moves=2).fates,
                strict=True) if fate) for name in (
                    'nova', 'nova+moves', 'nova+standing')}
        self.assertLess(lost['nova+standing'], lost['nova'])
        self.assertGreater(
            2 * (lost['nova'] - lost['nova+standing']),
            lost['nova'] - lost['nova+moves'])
