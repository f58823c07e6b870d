# SPDX-License-Identifier: Apache-2.0

"""How many guests the free devices of a host serve."""

import random
import unittest

from hpcvirt.fit import device_room
from hpcvirt.fit import host_room
from tests.builders import tiny
from tests.unit.fit import brute_room


class CountTest(unittest.TestCase):
    def test_a_guest_whose_devices_are_near_needs_room_there(self):
        dice = random.Random(4)
        kinds = [tiny.guest(4, requests=(tiny.request(),)),
                 tiny.guest(2, requests=(tiny.request(count=2),)),
                 tiny.guest(2, requests=(tiny.request(),) * 2)]
        rooms = host_room.HostRoom(kinds)
        found = set()
        for _ in range(60):
            supply = tiny.host(
                *(dice.randrange(9) for _ in range(2)),
                pools=tiny.gpus(dice.randrange(4), dice.randrange(4)))
            counts = rooms.count(supply)
            found.update(counts)
            self.assertEqual(
                tuple(brute_room.most(kind, supply) for kind in kinds), counts)
        self.assertLessEqual({0, 1, 2, 3}, found)

    def test_devices_may_be_near_any_cell_of_a_guest(self):
        dice = random.Random(8)
        kinds = [tiny.guest(*pcpus, requests=requests)
                 for pcpus in ((4, 4), (8, 8), (2, 6)) for requests in (
                     (tiny.request(count=2),),
                     (tiny.request(count=4),),
                     (tiny.request(),) * 2)]
        rooms = host_room.HostRoom(kinds)
        found = exact = 0
        for _ in range(40):
            supply = tiny.host(
                *(dice.choice((0, 0, 2, 4, 8)) for _ in range(3)),
                pools=tiny.gpus(*(dice.randrange(4) for _ in range(3))))
            for kind, count in zip(kinds, rooms.count(supply), strict=True):
                most = brute_room.most(kind, supply)
                self.assertGreaterEqual(count, most)
                found += bool(most)
                exact += bool(most) and count == most
        self.assertGreater(exact, found * 0.9)

    def test_all_devices_of_a_host_serve_a_guest_on_all_of_its_cells(self):
        for affinity, cells in (('required', 2), ('legacy', 2),
                                ('socket', 2), ('required', 4)):
            rooms = host_room.HostRoom([tiny.guest(*[8] * cells, requests=(
                tiny.request(count=8, affinity=affinity),))])
            self.assertEqual((1,), rooms.count(tiny.host(
                *[0] * cells, pools=tiny.gpus(*[8 // cells] * cells))))

    def test_devices_on_more_cells_than_a_guest_has_do_not_serve_it(self):
        rooms = host_room.HostRoom([tiny.guest(8, 8, requests=(
            tiny.request(count=3),))])
        for counts, guests in (((1, 1, 1, 1), 0), ((2, 1, 0, 1), 1)):
            self.assertEqual((guests,), rooms.count(tiny.host(
                0, 0, 0, 0, pools=tiny.gpus(*counts))))

    def test_devices_of_no_cell_complete_those_of_a_cell(self):
        pools = (*tiny.gpus(1), tiny.gpus(1)[0]._replace(cell=None))
        for affinity, guests in (('legacy', 1), ('required', 0)):
            rooms = host_room.HostRoom([tiny.guest(8, requests=(
                tiny.request(count=2, affinity=affinity),))])
            self.assertEqual((guests,), rooms.count(tiny.host(0, pools=pools)))

    def test_preferred_devices_may_be_far(self):
        kinds = [tiny.guest(4, requests=(
            tiny.request(affinity=affinity),))
            for affinity in ('preferred', 'socket', 'required')]
        rooms = host_room.HostRoom(kinds)
        far = tiny.host(0, 8, 0, 8, pools=tiny.gpus(0, 3))
        self.assertEqual((3, 2, 0), rooms.count(far))

    def test_a_host_without_devices_takes_no_guest_that_needs_some(self):
        rooms = host_room.HostRoom([tiny.guest(1, requests=(tiny.request(),))])
        for pools in ((), None, tiny.gpus(9, alias='other')):
            self.assertEqual((0,), rooms.count(tiny.host(0, 0, pools=pools)))


class StateTest(unittest.TestCase):
    def test_what_no_guest_requests_makes_no_kind_of_devices(self):
        rooms = device_room.DeviceRoom()
        pool, = tiny.gpus(4)
        states = {rooms.number([pool._replace(tags={
            **pool.tags, 'count': number, 'rp_uuid': f'provider {number}'})])
            for number in range(5)}
        self.assertEqual(1, len(states))
