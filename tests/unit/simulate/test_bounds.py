# SPDX-License-Identifier: Apache-2.0

import random
import unittest

from hpcvirt.model import shape as shape_model
from hpcvirt.simulate import bounds
from hpcvirt.simulate import causes
from hpcvirt.simulate import host_table
from hpcvirt.simulate import outcome
from hpcvirt.simulate import replay
from hpcvirt.simulate import requests
from hpcvirt.simulate import scheduler
from hpcvirt.simulate import strategy
from tests.unit.simulate import small

CAPACITY, FRAGMENTATION, DEVICES, PAGES = outcome.Cause


def asked(flavors, *arrivals):
    return requests.Requests(
        flavors, tuple(requests.Arrival(*each) for each in arrivals))


class PoolTest(unittest.TestCase):
    def fates(self, fleet, flavors, *arrivals):
        return bounds.replay_as_one_host(fleet,
                                         asked(flavors, *arrivals)).fates

    def test_nothing_is_fragmented(self):
        fleet = [small.host(small.cell(0))] * 3
        self.assertEqual((None, None, CAPACITY, None), self.fates(
            fleet, (small.flavor(12), small.flavor(11)), (0, 9, 0),
            (1, 9, 0), (2, 9, 1), (9, 9, 1)))

    def test_memory_devices_and_pages_count(self):
        fleet = [small.host(small.cell(0, huge=512), vfs=((0, 1),))] * 2
        for flavor, cause in (
                (small.flavor(1, memory_mib=5462), CAPACITY),
                (small.flavor(1, memory_mib=682, page_kib=small.HUGE), None),
                (small.flavor(1, memory_mib=684, page_kib=small.HUGE),
                 PAGES),
                (small.flavor(1, vfs=1), DEVICES)):
            found = self.fates(fleet, (flavor,), *[(0, 9, 0)] * 3)
            self.assertEqual((None, None, cause), found)

    def test_progress_is_told(self):
        told = []
        bounds.replay_as_one_host([small.host(small.cell(0))],
                                  asked((small.flavor(2),), (0, 1, 0),
                                        (0, 1, 0)),
                                  lambda *numbers: told.append(numbers))
        self.assertEqual([(1, 2), (2, 2)], told)


class RepackedTest(unittest.TestCase):
    def test_guests_give_way_whenever_they_can(self):
        fleet = [small.host(small.cell(0), small.cell(1))] * 3
        flavors = small.flavor(2), small.flavor(8)
        # Four cells fill up with small guests. Half of these end.
        arrivals = [*((0, 9 + 20 * (number % 2), 0) for number in range(16)),
                    (10, 5, 1, 4), (11, 1, 1), (15, 5, 1, 4)]
        self.assertEqual(
            (None,) * 17 + (CAPACITY, None),
            bounds.replay_repacked(fleet, asked(flavors, *arrivals)).fates)

    def test_devices_and_cells_are_respected(self):
        fleet = [small.host(small.cell(0), small.cell(1), vfs=((0, 2),))]
        vf = small.flavor(4, vfs=1, affinity=shape_model.PCIAffinity.REQUIRED)
        flavors = small.flavor(4), vf, small.flavor(5)
        self.assertEqual(
            (None, None, None), bounds.replay_repacked(fleet, asked(
                flavors, (0, 9, 0), (1, 9, 1), (2, 9, 1))).fates)
        self.assertEqual(
            (None, FRAGMENTATION), bounds.replay_repacked(fleet, asked(
                flavors, (0, 9, 2), (1, 9, 2, 2))).fates)

    def test_every_guest_keeps_what_it_needs(self):
        dice = random.Random(9)
        fleet = [small.host(small.cell(0), small.cell(1), vfs=((0, 4),)),
                 small.host(small.cell(0, 16, 16384))] * 3
        flavors = tuple(small.flavor(*cells, vfs=vfs) for cells, vfs in (
            ((2,), 0), ((3,), 1), ((8,), 0), ((4, 4), 0), ((12,), 0)))
        own = causes.flavors(flavors)
        table = host_table.HostTable(fleet, own)
        chooser = scheduler.Scheduler(table, own, strategy.parse('nova', 0)[0])
        running = host_table.Population(flavors)
        repacker = bounds.Repacker(fleet, chooser, running, flavors)
        helped = []

        def rescue(number, count):
            guests = repacker(number, count)
            helped.append(len(guests))
            for host, empty in enumerate(fleet):
                here = [*running.on(host), *(
                    guest for guest in guests if guest.host == host)]
                taken = [cpu for guest in here for cpu in guest.holding.cpus]
                self.assertEqual(len(taken), len(set(taken)))
                self.assertEqual(
                    sum(sum(flavors[guest.flavor].guest.sums[:2])
                        for guest in here), len(taken))
                self.assertEqual(
                    sum(len(cell.free) for cell in empty.cells) - len(taken),
                    sum(len(cell.free)
                        for cell in table.supplies[host].cells))
            return guests

        replay.run_events(asked(flavors, *(
            (time, dice.randrange(1, 40), dice.randrange(5),
             dice.choice((1, 1, 2))) for time in range(120))),
            chooser, running, rescue)
        self.assertGreater(sum(map(bool, helped)), 5)
        while len(running):
            chooser.remove(running.end_next())
        self.assertEqual([supply.cells for supply in fleet],
                         [supply.cells for supply in table.supplies])
