# SPDX-License-Identifier: Apache-2.0

"""How many guests of several kinds hosts take, now and later."""

import itertools
import random
import unittest
from unittest import mock

from hpcvirt.fit import demand as demands
from hpcvirt.fit import device_sets
from hpcvirt.fit import room
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape
from tests.builders import tiny
from tests.unit.fit import brute_room


def prospects(counter, supply, guests=0):
    return counter.prospects(supply, counter.count_if_empty(supply), guests)


class CountingTestCase(unittest.TestCase):
    def assert_counted_closely(self, kinds, hosts):
        """Check that counts are upper bounds, and most of them exact."""
        counter = room.RoomCounter(kinds)
        found = exact = 0
        for supply in hosts:
            for kind, count in zip(kinds, counter.count(supply), strict=True):
                most = brute_room.most(kind, supply)
                self.assertGreaterEqual(count, most)
                found += bool(most)
                exact += bool(most) and count == most
        self.assertGreater(exact, found * 0.9)


class CountTest(CountingTestCase):
    def test_guests_of_equal_cells_are_counted_exactly(self):
        dice = random.Random(3)
        kinds = [tiny.guest(*pcpus) for pcpus in (
            (1,), (3,), (8,), (2, 2), (4, 4), (5, 5), (3, 3, 3))]
        counter = room.RoomCounter(kinds)
        for _ in range(60):
            supply = tiny.host(*(dice.randrange(9) for _ in range(
                dice.choice((1, 2, 3, 4)))))
            self.assertEqual(
                [brute_room.most(kind, supply) for kind in kinds],
                counter.count(supply))

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
        counter = room.RoomCounter(kinds)
        self.assertEqual([[4, 0], [4, 2], [2, 0], [0, 0]],
                         list(map(counter.count, hosts)))

    def test_what_is_forgotten_changes_nothing(self):
        kinds = [tiny.guest(2), tiny.guest(4, 4)]
        usual, forgetful = room.RoomCounter(kinds), room.RoomCounter(kinds)
        for taken in itertools.product(range(0, 9, 2), repeat=2):
            supply = tiny.host(*taken)
            with mock.patch.object(room, 'MAX_STATES', 1):
                found = prospects(forgetful, supply)
            self.assertEqual(prospects(usual, supply), found)
        self.assertLess(len(forgetful._rooms), len(usual._rooms))

    def test_guests_of_unequal_cells_are_counted_closely(self):
        dice = random.Random(9)
        kinds = [tiny.guest(2, 6), tiny.guest(1, 1, 7),
                 demands.Demand((tiny.guest_cell(4, emulator_pcpus=1),
                                 *[tiny.guest_cell(4)] * 2))]
        hosts = [tiny.host(*(dice.choice((0, 0, 2, 4, 8)) for _ in range(4)))
                 for _ in range(40)]
        self.assert_counted_closely(kinds, hosts)

    def test_three_free_cells_are_no_room_for_a_guest_of_four(self):
        # Its emulator threads make the first cell of the guest larger.
        kind = demands.Demand((tiny.guest_cell(4, emulator_pcpus=1),
                               *[tiny.guest_cell(4)] * 3))
        counter = room.RoomCounter([kind])
        self.assertEqual([0], counter.count(tiny.host(0, 0, 0, 8)))
        self.assertEqual([1], counter.count(tiny.host(0, 0, 0, 0)))


class DevicesTest(CountingTestCase):
    def test_a_guest_whose_devices_are_near_needs_room_there(self):
        dice = random.Random(4)
        kinds = [tiny.guest(4, requests=(tiny.request(),)),
                 tiny.guest(2, requests=(tiny.request(count=2),)),
                 tiny.guest(2, requests=(tiny.request(),) * 2)]
        counter = room.RoomCounter(kinds)
        found = set()
        for _ in range(60):
            supply = tiny.host(
                *(dice.randrange(9) for _ in range(2)),
                pools=tiny.gpus(dice.randrange(4), dice.randrange(4)))
            counts = counter.count(supply)
            found.update(counts)
            self.assertEqual(
                [brute_room.most(kind, supply) for kind in kinds], counts)
        self.assertLessEqual({0, 1, 2, 3}, found)

    def test_devices_may_be_near_any_cell_of_a_guest(self):
        dice = random.Random(8)
        kinds = [tiny.guest(*pcpus, requests=requests)
                 for pcpus in ((4, 4), (8, 8), (2, 6)) for requests in (
                     (tiny.request(count=2),),
                     (tiny.request(count=4),),
                     (tiny.request(),) * 2)]
        hosts = [tiny.host(
            *(dice.choice((0, 0, 2, 4, 8)) for _ in range(3)),
            pools=tiny.gpus(*(dice.randrange(4) for _ in range(3))))
                 for _ in range(40)]
        self.assert_counted_closely(kinds, hosts)

    def test_all_devices_of_a_host_serve_a_guest_on_all_of_its_cells(self):
        for affinity, cells in (('required', 2), ('legacy', 2),
                                ('socket', 2), ('required', 4)):
            counter = room.RoomCounter([tiny.guest(*[8] * cells, requests=(
                tiny.request(count=8, affinity=affinity),))])
            self.assertEqual([1], counter.count(tiny.host(
                *[0] * cells, pools=tiny.gpus(*[8 // cells] * cells))))

    def test_devices_on_more_cells_than_a_guest_has_do_not_serve_it(self):
        counter = room.RoomCounter([tiny.guest(8, 8, requests=(
            tiny.request(count=3),))])
        for counts, guests in (((1, 1, 1, 1), 0), ((2, 1, 0, 1), 1)):
            self.assertEqual([guests], counter.count(tiny.host(
                0, 0, 0, 0, pools=tiny.gpus(*counts))))

    def test_devices_of_no_cell_complete_those_of_a_cell(self):
        pools = (*tiny.gpus(1), tiny.gpus(1)[0]._replace(cell=None))
        for affinity, guests in (('legacy', 1), ('required', 0)):
            counter = room.RoomCounter([tiny.guest(8, requests=(
                tiny.request(count=2, affinity=affinity),))])
            self.assertEqual([guests], counter.count(
                tiny.host(0, pools=pools)))

    def test_devices_of_no_cell_are_counted_once(self):
        counter = room.RoomCounter([tiny.guest(4, requests=(
            tiny.request(count=2, affinity='legacy'),))])
        self.assertEqual([0], counter.count(
            tiny.host(0, pools=tiny.gpus(1))))

    def test_requests_for_no_devices_are_left_out(self):
        for count in (0, -1):
            counter = room.RoomCounter([tiny.guest(
                4, requests=(tiny.request(count=count), tiny.request()))])
            self.assertEqual([2], counter.count(
                tiny.host(0, pools=tiny.gpus(3))))

    def test_preferred_devices_may_be_far(self):
        kinds = [tiny.guest(4, requests=(
            tiny.request(affinity=affinity),))
            for affinity in ('preferred', 'socket', 'required')]
        counter = room.RoomCounter(kinds)
        far = tiny.host(0, 8, 0, 8, pools=tiny.gpus(0, 3))
        self.assertEqual([3, 2, 0], counter.count(far))

    def test_a_host_without_devices_takes_no_guest_that_needs_some(self):
        counter = room.RoomCounter([tiny.guest(1, requests=(tiny.request(),))])
        for pools in ((), None, tiny.gpus(9, alias='other')):
            self.assertEqual([0], counter.count(tiny.host(0, 0, pools=pools)))


class ProspectsTest(unittest.TestCase):
    def test_what_fits_after_guests_have_left_is_added(self):
        dice = random.Random(4)
        kinds = [tiny.guest(*pcpus) for pcpus in (
            (1,), (8,), (4, 4), (8, 8), (8, 8, 8, 8))]
        counter = room.RoomCounter(kinds)
        when_empty = [brute_room.most(kind, tiny.host(0, 0, 0, 0))
                      for kind in kinds]
        for _ in range(60):
            taken = [dice.randrange(9) for _ in range(4)]
            guests = dice.randrange(9)
            supply = tiny.host(*taken)
            share = 1 - sum(taken) / 32
            # The mean of p ** guests over all chances p from 0 to 1.
            all_left = sum((step / 1000) ** guests
                           for step in range(1000)) / 1000
            for kind, empty, found in zip(
                    kinds, when_empty, prospects(counter, supply, guests),
                    strict=True):
                self.assertAlmostEqual(
                    brute_room.most(kind, supply)
                    + empty * (share + all_left), found, delta=0.05)

    def test_pages_of_guests_come_free(self):
        counter = room.RoomCounter([tiny.guest(8)])
        full = tiny.host(0, 0)
        full = type(full)(tuple(cell._replace(
            memory_used_mib=cell.memory_mib, pages=tuple(
                pool._replace(used=pool.free, free=0)
                for pool in cell.pages)) for cell in full.cells))
        self.assertEqual((4.0,), prospects(counter, full))

    def test_shared_cpus_come_free_like_others(self):
        demand = type(tiny.guest())((tiny.guest_cell(
            0, policy=shape.CPUPolicy.SHARED, vcpus=2),))
        cell = tiny.host(8).cells[0]._replace(
            shared=frozenset(range(100, 104)), cpu_usage=3)
        supply = supplies.Supply((cell,))
        found, = prospects(room.RoomCounter([demand]), supply, 3)
        self.assertAlmostEqual(2 * (1 / 12 + 1 / 4), found, places=5)

    def test_shared_cpus_count_as_often_as_they_are_overcommitted(self):
        demand = demands.Demand((tiny.guest_cell(
            0, policy=shape.CPUPolicy.SHARED, vcpus=2),))
        cell = tiny.host(8).cells[0]._replace(
            shared=frozenset(range(100, 104)), cpu_usage=3)
        supply = supplies.Supply((cell,), cpu_ratio=2.0)
        found, = prospects(room.RoomCounter([demand]), supply, 3)
        self.assertAlmostEqual(2 + 4 * (5 / 16 + 1 / 4), found, places=5)

    def test_a_host_with_more_guests_than_cpus_has_none_free(self):
        demand = demands.Demand((tiny.guest_cell(
            0, policy=shape.CPUPolicy.SHARED, vcpus=1),))
        cell = tiny.host(8).cells[0]._replace(
            dedicated=frozenset(), free=frozenset(), cpu_usage=5,
            shared=frozenset(range(100, 104)))
        for cells, expected in (((cell,), 4 * 1 / 8), ((), 0.0)):
            found, = prospects(room.RoomCounter([demand]),
                               supplies.Supply(cells), 7)
            self.assertAlmostEqual(expected, found, places=5)

    def test_later_guests_with_devices_count_by_cpus(self):
        counter = room.RoomCounter([
            tiny.guest(8, requests=(tiny.request(),))])
        for taken, guests, expected in (
                (0, 0, 1 + 2 * 2), (4, 1, 0 + 2 * (3 / 4 + 1 / 2))):
            self.assertEqual((expected,), prospects(
                counter, tiny.host(taken, 0, pools=tiny.gpus(2, 0)), guests))

    def test_later_guests_share_the_devices_that_are_free(self):
        counter = room.RoomCounter([
            tiny.guest(8, requests=(tiny.request(count=2),))])
        self.assertEqual((1 + 1 * 2.0,), prospects(
            counter, tiny.host(0, 0, pools=tiny.gpus(3, 0))))


class EmptyTest(unittest.TestCase):
    def test_an_empty_host_has_its_memory_and_no_more(self):
        cell = tiny.host_cell(taken=4, memory_used_mib=5000, pages=())
        guests = [demands.Demand((tiny.guest_cell(
            1, memory_mib=memory_mib, page_kib=None),))
            for memory_mib in (16384, 16385, 8192)]
        self.assertEqual([1, 0, 2], room.RoomCounter(guests).count_if_empty(
            supplies.Supply((cell,))))

    def test_an_empty_host_has_its_shared_cpus_and_no_more(self):
        cell = tiny.host_cell(shared=frozenset(range(100, 104)), cpu_usage=3)
        guest = demands.Demand((tiny.guest_cell(
            0, vcpus=1, policy=shape.CPUPolicy.SHARED),))
        self.assertEqual([4], room.RoomCounter([guest]).count_if_empty(
            supplies.Supply((cell,))))


class MemoryTest(unittest.TestCase):
    """What the counter remembers of host cells."""

    def test_cells_whose_free_threads_lie_otherwise_are_told_apart(self):
        guest = demands.Demand((tiny.guest_cell(
            2, threads=shape.ThreadPolicy.REQUIRE),))
        counter = room.RoomCounter([guest])
        for free, expected in (((0, 1, 2, 3), 2), ((0, 2, 4, 6), 0),
                               ((0, 1, 2, 4), 1)):
            cell = tiny.host_cell(threads=2, free=frozenset(free))
            self.assertEqual([expected],
                             counter.count(supplies.Supply((cell,))))

    def test_cells_of_many_parts_are_not_remembered(self):
        counter = room.RoomCounter([
            demands.Demand((tiny.guest_cell(1, memory_mib=2),))])
        for pcpus, known in ((room.MAX_PARTS, 0), (room.MAX_PARTS - 2, 1)):
            cell = tiny.host_cell(pcpus=pcpus)
            self.assertEqual([pcpus], counter.count(
                supplies.Supply((cell,))))
            self.assertEqual(known, len(counter._rooms))


class SetsTest(unittest.TestCase):
    """Guests whose devices are those of a set."""

    def test_each_guest_needs_a_set(self):
        pools = [pool._replace(provider=f'gpu {number}', tags={
            **pool.tags, device_sets.TAG: f'pair:{number // 2}:2'})
            for number, pool in enumerate(tiny.gpus(1) * 6)]
        wanted = (tiny.request(count=2),)
        for requests, taken, expected in (
                (wanted, 0, 3), (wanted, 1, 2), ((), 0, 0)):
            kind = tiny.guest(1, requests=requests, device_set='pair')
            pools[0] = pools[0]._replace(free=1 - taken)
            self.assertEqual([expected], room.RoomCounter([kind]).count(
                tiny.host(0, pools=tuple(pools))))
