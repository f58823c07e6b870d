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

"""How many guests the free devices of a host serve."""

import random
import unittest

from hpcvirt.fit import device_room
from hpcvirt.fit import room
from tests.unit.fit import brute_room
from tests.unit.fit import builders


class CountTest(unittest.TestCase):

    def test_a_guest_whose_devices_are_near_needs_room_there(self):
        dice = random.Random(4)
        kinds = [builders.guest(4, requests=(builders.request(),)),
                 builders.guest(2, requests=(builders.request(count=2),)),
                 builders.guest(2, requests=(builders.request(),) * 2)]
        rooms = room.Room(kinds)
        found = set()
        for _ in range(60):
            supply = builders.host(
                *(dice.randrange(9) for _ in range(2)),
                pools=builders.gpus(dice.randrange(4), dice.randrange(4)))
            counts = rooms.count(supply)
            found.update(counts)
            self.assertEqual(
                tuple(brute_room.most(kind, supply) for kind in kinds),
                counts)
        self.assertLessEqual({0, 1, 2, 3}, found)

    def test_devices_may_be_near_any_cell_of_a_guest(self):
        dice = random.Random(8)
        kinds = [builders.guest(*pcpus, requests=requests)
                 for pcpus in ((4, 4), (8, 8), (2, 6)) for requests in (
                     (builders.request(count=2),),
                     (builders.request(count=4),),
                     (builders.request(),) * 2)]
        rooms = room.Room(kinds)
        found = exact = 0
        for _ in range(40):
            supply = builders.host(
                *(dice.choice((0, 0, 2, 4, 8)) for _ in range(3)),
                pools=builders.gpus(*(dice.randrange(4) for _ in range(3))))
            for kind, count in zip(kinds, rooms.count(supply), strict=True):
                most = brute_room.most(kind, supply)
                self.assertGreaterEqual(count, most)
                found += bool(most)
                exact += bool(most) and count == most
        self.assertGreater(exact, found * 0.9)

    def test_all_devices_of_a_host_serve_a_guest_on_all_of_its_cells(self):
        for affinity, cells in (('required', 2), ('legacy', 2),
                                ('socket', 2), ('required', 4)):
            rooms = room.Room([builders.guest(*[8] * cells, requests=(
                builders.request(count=8, affinity=affinity),))])
            self.assertEqual((1,), rooms.count(builders.host(
                *[0] * cells, pools=builders.gpus(*[8 // cells] * cells))))

    def test_devices_on_more_cells_than_a_guest_has_do_not_serve_it(self):
        rooms = room.Room([builders.guest(8, 8, requests=(
            builders.request(count=3),))])
        for counts, guests in (((1, 1, 1, 1), 0), ((2, 1, 0, 1), 1)):
            self.assertEqual((guests,), rooms.count(builders.host(
                0, 0, 0, 0, pools=builders.gpus(*counts))))

    def test_devices_of_no_cell_complete_those_of_a_cell(self):
        pools = (*builders.gpus(1), builders.gpus(1)[0]._replace(cell=None))
        for affinity, guests in (('legacy', 1), ('required', 0)):
            rooms = room.Room([builders.guest(8, requests=(
                builders.request(count=2, affinity=affinity),))])
            self.assertEqual((guests,), rooms.count(
                builders.host(0, pools=pools)))

    def test_preferred_devices_may_be_far(self):
        kinds = [builders.guest(4, requests=(
            builders.request(affinity=affinity),))
            for affinity in ('preferred', 'socket', 'required')]
        rooms = room.Room(kinds)
        far = builders.host(0, 8, 0, 8, pools=builders.gpus(0, 3))
        self.assertEqual((3, 2, 0), rooms.count(far))

    def test_a_host_without_devices_takes_no_guest_that_needs_some(self):
        rooms = room.Room([builders.guest(1, requests=(builders.request(),))])
        for pools in ((), None, builders.gpus(9, alias='other')):
            self.assertEqual((0,), rooms.count(
                builders.host(0, 0, pools=pools)))


class StateTest(unittest.TestCase):

    def test_what_no_guest_requests_makes_no_kind_of_devices(self):
        rooms = device_room.DeviceRoom([
            builders.guest(1, requests=(builders.request(),))])
        pool, = builders.gpus(4)
        states = {rooms.state([pool._replace(tags={
            **pool.tags, 'count': number, 'rp_uuid': f'provider {number}'})])
            for number in range(5)}
        self.assertEqual(1, len(states))
