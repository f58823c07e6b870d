# SPDX-License-Identifier: Apache-2.0

"""How many guests hosts take, and how many a guest displaces."""

import itertools
import random
import unittest
import weakref

from hpcvirt.fit import allocation
from hpcvirt.fit import cell_assignment as cell_assignments
from hpcvirt.fit import claim
from hpcvirt.fit import demand as demands
from hpcvirt.fit import host_room
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape
from tests.builders import tiny
from tests.unit.fit import brute_room


class CountTest(unittest.TestCase):
    def test_guests_of_equal_cells_are_counted_exactly(self):
        dice = random.Random(3)
        kinds = [tiny.guest(*pcpus) for pcpus in (
            (1,), (3,), (8,), (2, 2), (4, 4), (5, 5), (3, 3, 3))]
        rooms = host_room.HostRoom(kinds)
        for _ in range(60):
            supply = tiny.host(*(dice.randrange(9) for _ in range(
                dice.choice((1, 2, 3, 4)))))
            self.assertEqual(
                tuple(brute_room.most(kind, supply) for kind in kinds),
                rooms.count(supply))

    def test_cells_of_a_socket_or_empty_cells_may_be_needed(self):
        kinds = [tiny.guest(4, 4), tiny.guest(
            4, 4, numa_scope=shape.NUMAScope.SOCKET),
            tiny.guest(4, exclusive_cells=True)]
        # The second cell of each package is full.
        self.assertEqual((2, 0, 2), host_room.HostRoom(kinds).count(
            tiny.host(0, 8, 0, 8)))
        self.assertEqual((2, 2, 2), host_room.HostRoom(kinds).count(
            tiny.host(0, 0, 8, 8)))

    def test_a_network_needs_a_cell_near_it(self):
        kind = tiny.guest(4, physnets=frozenset(('fast',)))
        rooms = host_room.HostRoom([kind])
        supply = tiny.host(0, 0)
        self.assertEqual((4,), rooms.count(supply))
        near = type(supply)((supply.cells[0], supply.cells[1]._replace(
            physnets=frozenset(('fast',)))))
        self.assertEqual((2,), rooms.count(near))

    def test_cells_that_share_cores_otherwise_are_told_apart(self):
        kinds = [demands.Demand((tiny.guest_cell(2, threads=threads),))
                 for threads in (shape.ThreadPolicy.REQUIRE,
                                 shape.ThreadPolicy.ISOLATE)]
        pairs = tiny.host_cell(threads=2)
        alike = [pairs._replace(
            dedicated=dedicated, free=dedicated, shared=shared)
            for dedicated, shared in (
                (pairs.dedicated, frozenset(range(100, 108))),
                (pairs.dedicated, pairs.dedicated),
                (frozenset(range(4)), frozenset(range(4, 8))),
                (frozenset(range(0, 8, 2)), frozenset(range(1, 8, 2))))]
        hosts = [supplies.Supply((cell,)) for cell in alike]
        rooms = host_room.HostRoom(kinds)
        self.assertEqual([(4, 0), (4, 2), (2, 0), (0, 0)],
                         list(map(rooms.count, hosts)))

    def test_what_is_forgotten_changes_nothing(self):
        kinds = [tiny.guest(2), tiny.guest(4, 4)]
        usual, forgetful = host_room.HostRoom(kinds), host_room.HostRoom(kinds)
        limit, host_room.MAX_STATES = host_room.MAX_STATES, 0
        try:
            for taken in itertools.product(range(0, 9, 2), repeat=2):
                supply = tiny.host(*taken)
                self.assertEqual(usual.count(supply), forgetful.count(supply))
                placed = claim.predict(kinds[0], supply)
                if isinstance(placed, cell_assignments.CellAssignment):
                    self.assertEqual(
                        usual.displaced(kinds[0], supply, placed),
                        forgetful.displaced(kinds[0], supply, placed))
        finally:
            host_room.MAX_STATES = limit

    def test_devices_that_are_gone_are_forgotten(self):
        kind = tiny.guest(2, requests=(tiny.request(),))
        rooms = host_room.HostRoom([kind])
        limit, host_room.MAX_STATES = host_room.MAX_STATES, 10
        self.addCleanup(setattr, host_room, 'MAX_STATES', limit)
        gone = []
        for number in range(50):
            pool, = tiny.gpus(1)
            tags = Tags(pool.tags, product_id=str(number))
            gone.append(weakref.ref(tags))
            rooms.prospects(tiny.host(0, pools=(pool._replace(tags=tags),)))
        del pool, tags
        self.assertLess(sum(tags() is not None for tags in gone), 20)


class Tags(dict):
    """Tags whose end can be watched."""


class ProspectsTest(unittest.TestCase):
    def test_half_of_what_comes_with_the_free_cpus_is_added(self):
        dice = random.Random(4)
        kinds = [tiny.guest(*pcpus) for pcpus in (
            (1,), (8,), (4, 4), (8, 8), (8, 8, 8, 8))]
        rooms = host_room.HostRoom(kinds)
        for _ in range(60):
            taken = [dice.randrange(9) for _ in range(4)]
            supply, empty = tiny.host(*taken), tiny.host(0, 0, 0, 0)
            for kind, found in zip(kinds, rooms.prospects(supply),
                                   strict=True):
                self.assertAlmostEqual(
                    brute_room.most(kind, supply)
                    + brute_room.most(kind, empty) * (
                        1 - sum(taken) / 32) / 2, found, places=5)

    def test_pages_of_guests_come_free(self):
        rooms = host_room.HostRoom([tiny.guest(8)])
        full = tiny.host(0, 0)
        full = type(full)(tuple(cell._replace(
            memory_used_mib=cell.memory_mib, pages=tuple(
                pool._replace(used=pool.free, free=0)
                for pool in cell.pages)) for cell in full.cells))
        self.assertEqual((1.0,), rooms.prospects(full))

    def test_shared_cpus_come_free_by_themselves(self):
        demand = type(tiny.guest())((tiny.guest_cell(
            0, policy=shape.CPUPolicy.SHARED, vcpus=2),))
        cell = tiny.host(8).cells[0]._replace(
            shared=frozenset(range(100, 104)), cpu_usage=3)
        supply = supplies.Supply((cell,))
        self.assertEqual((0.25,),
                         host_room.HostRoom([demand]).prospects(supply))

    def test_guests_with_devices_count_as_far_as_there_is_room(self):
        rooms = host_room.HostRoom([tiny.guest(8, requests=(tiny.request(),))])
        for taken, expected in ((0, 1.0), (4, 0.0)):
            self.assertEqual((expected,), rooms.prospects(tiny.host(
                taken, 0, pools=tiny.gpus(2, 0))))


class DisplacedTest(unittest.TestCase):
    def test_it_is_the_difference_that_the_claim_makes(self):
        dice = random.Random(6)
        kinds = [tiny.guest(2), tiny.guest(8), tiny.guest(4, 4),
                 tiny.guest(4, requests=(tiny.request(),))]
        rooms = host_room.HostRoom(kinds)
        compared = 0
        while compared < 60:
            supply = tiny.host(
                *(dice.choice((0, 0, 4, 6, 8)) for _ in range(4)),
                pools=tiny.gpus(*(dice.randrange(3) for _ in range(4))))
            demand = dice.choice(kinds)
            placed = claim.predict(demand, supply)
            if not isinstance(placed, cell_assignments.CellAssignment):
                continue
            before, fewer, left = rooms.displaced(demand, supply, placed)
            self.assertEqual((
                sum(len(cell.free) for cell in supply.cells),
                sum(cell.memory_free_mib for cell in supply.cells)), left)
            after = rooms.prospects(
                allocation.allocate(demand, supply, placed))
            self.assertEqual(rooms.prospects(supply), before)
            self.assertEqual(after, tuple(
                each - less for each, less in zip(before, fewer, strict=True)))
            compared += 1

    def test_a_cell_near_devices_is_taken_from_guests_that_need_it(self):
        rooms = host_room.HostRoom([
            tiny.guest(8),
            tiny.guest(8, requests=(tiny.request(),))])
        supply = tiny.host(0, 0, pools=tiny.gpus(0, 2))
        for cell, fewer in ((0, (1.5, 0)), (1, (1.5, 1))):
            self.assertEqual(((3, 1), fewer), rooms.displaced(
                tiny.guest(8), supply, cell_assignments.CellAssignment(
                    (cell,), (tiny.HUGE_KIB,)))[:2])


class LeftTest(unittest.TestCase):
    def test_cpus_of_the_kinds_that_are_needed_count(self):
        supply = tiny.host(3, 8, cpu_ratio=2.0)
        supply = type(supply)(tuple(
            cell._replace(shared=frozenset((100, 101)), cpu_usage=1)
            for cell in supply.cells), cpu_ratio=2.0)
        memory = sum(cell.memory_mib - cell.memory_used_mib
                     for cell in supply.cells)
        for policy, pcpus, vcpus, left in (
                (shape.CPUPolicy.DEDICATED, 1, 0, 5),
                (shape.CPUPolicy.SHARED, 0, 1, 6),
                (shape.CPUPolicy.MIXED, 1, 1, 11)):
            demand = type(tiny.guest())((tiny.guest_cell(
                pcpus, policy=policy, vcpus=vcpus),))
            self.assertEqual((left, memory), host_room.HostRoom(()).displaced(
                demand, supply, cell_assignments.CellAssignment(
                    (0,), (None,))).left)
