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

import dataclasses
import random
import unittest

from hpcvirt.fit import capacity
from hpcvirt.flavors import catalogue
from hpcvirt.fleet import capacity_report
from hpcvirt.fleet import count
from hpcvirt.fleet import free_room
from hpcvirt.fleet import guest as guests
from tests import fleets


def filled(host, flavor):
    """Fill a host claim by claim; return the PCPUs and pages left."""
    guest = guests.of_flavor(flavor)
    left = capacity.fill(guest.shape, host.state.supply,
                         host.state.free.times(guest.sums), host.packing)
    return left.free_pcpus, {
        size: sum(pool.free for cell in left.supply.cells
                  for pool in cell.pages if pool.size_kib == size)
        for size in (4, 2048)}


class FreeRoomTest(unittest.TestCase):

    def test_stranded_is_what_no_flavor_alone_takes(self):
        dice = random.Random(4)
        stranded = 0
        for _ in range(15):
            fleet, flavors = fleets.a_fleet(dice, 2)
            flavors = [item for item in flavors if item.vcpus > 1][:2]
            flavors.append(catalogue.Flavor('any', 3, 64, 0, {
                'hw:cpu_policy': 'dedicated',
                'hw:mem_page_size': dice.choice(('any', 'large', '2048'))}))
            rooms = free_room.of_hosts(fleet, count.count(fleet, flavors))
            for host in fleet.hosts:
                room = rooms[host.name]
                left = [filled(host, flavor) for flavor in flavors]
                self.assertEqual(min(pcpus for pcpus, _ in left),
                                 room.pcpus.stranded)
                for size, amount in room.pages.items():
                    if size in (4, 2048):
                        self.assertEqual(
                            min(pages[size] for _, pages in left),
                            amount.stranded)
                stranded += room.pcpus.stranded
        self.assertGreater(stranded, 4)

    def test_only_what_no_instance_is_on_is_whole(self):
        fleet, _ = fleets.a_fleet(random.Random(1), 2)
        host = max(fleet.hosts, key=lambda host: len(host.instances))
        for instances in ((), host.instances[:1]):
            now = fleets.rebuilt(host, instances)
            used = {cell for item in instances for cell in item.cells}
            cells = {cell.id: cell.package
                     for cell in now.state.supply.cells}
            room = free_room.of_hosts(
                dataclasses.replace(fleet, hosts=(now,)), ())[host.name]
            self.assertEqual(
                (len(cells), len(cells) - len(used),
                 len(set(cells.values()) - {cells[one] for one in used}),
                 not instances),
                (room.cells.total, room.cells.free, room.packages.free,
                 room.hosts.free))

    def test_nothing_is_free_on_a_closed_host(self):
        fleet, flavors = fleets.a_fleet(random.Random(1), 1)
        (host,) = fleet.hosts
        empty = fleets.rebuilt(host, ())
        closed = dataclasses.replace(fleet, hosts=(dataclasses.replace(
            empty, state=dataclasses.replace(
                empty.state, closed='it is disabled',
                free=guests.Sums(0, 0, 0))),))
        room = free_room.of_hosts(
            closed, count.count(closed, flavors))[host.name]
        self.assertEqual([0] * 5, [part.free for part in (
            room.pcpus, room.pages[2048], room.cells, room.packages,
            room.hosts)])
        self.assertEqual((0, 0), (room.pcpus.stranded,
                                  room.pages[2048].stranded))

    def test_the_fleet_is_the_sum_of_its_hosts(self):
        fleet, flavors = fleets.a_fleet(random.Random(9), 3)
        document = capacity_report.document(fleet,
                                            count.count(fleet, flavors))
        for key in ('total', 'free', 'stranded'):
            self.assertEqual(
                sum(host['pcpus'][key] for host in document['hosts']),
                document['free']['pcpus'][key])
        for key in ('cells', 'packages', 'hosts'):
            self.assertEqual(
                sum(host[key]['free'] for host in document['hosts']),
                document['free'][key]['free'])

    def test_what_is_left_of_a_share_is_drawn(self):
        room = free_room.Room(
            free_room.Amount(1000, 7, 1), {},
            *[free_room.Whole(3, 3), free_room.Whole(0, 0),
              free_room.Whole(2, 1)])
        bars = [row[-1] for row in capacity_report._room_rows(room)]
        self.assertEqual(['#' * 22 + '-!', '-' * 24, '',
                          '#' * 12 + '-' * 12], bars)
