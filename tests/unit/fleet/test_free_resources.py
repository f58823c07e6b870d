# SPDX-License-Identifier: Apache-2.0

"""The sets of devices that hosts have free; other tests have the rest."""

import dataclasses
import random
import unittest

from hpcvirt.fit import capacity
from hpcvirt.fit import guest as guests
from hpcvirt.flavors import compiled_flavor
from hpcvirt.fleet import capacity_report
from hpcvirt.fleet import count
from hpcvirt.fleet import free_resources
from tests.builders import fleets
from tests.builders import pool_sets


class CountSetsTest(unittest.TestCase):
    def test_sets_are_whole_broken_or_in_use(self):
        left = pool_sets.pools([
            (number not in (0, 6, 7), sets) for number, (_, sets)
            in enumerate(pool_sets.OCTET)])
        self.assertEqual(
            {'gpu2': (4, 2, 1), 'gpu4': (2, 0, 2), 'gpu8': (1, 0, 1)},
            free_resources.count_sets(left))

    def test_a_pool_that_is_not_reported_breaks_a_set(self):
        self.assertEqual((2, 1, 1), free_resources.count_sets(
            pool_sets.pools(
                pool_sets.OCTET)[1:])['gpu4'])

    def test_pools_without_provider_are_in_no_set(self):
        self.assertEqual({}, free_resources.count_sets(
            pool._replace(provider=None) for pool in pool_sets.pools(
                pool_sets.OCTET)))


def filled(host, flavor):
    """Fill a host claim by claim; return the PCPUs and pages left."""
    guest = compiled_flavor.make(flavor)
    left = capacity.fill(guest, host.state,
                         host.state.free.times(guest.sums))
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
            flavors.append(fleets.flavor(
                3, 64, page_size=dice.choice(('any', 'large', '2048')),
                name='any'))
            rooms = free_resources.describe_hosts(fleet,
                                                  count.count(fleet, flavors))
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
            cells = {cell.id: cell.socket for cell in now.state.supply.cells}
            room = free_resources.describe_hosts(
                dataclasses.replace(fleet, hosts=(now,)), ())[host.name]
            self.assertEqual(
                (len(cells), len(cells) - len(used),
                 len(set(cells.values()) - {cells[one] for one in used}),
                 not instances),
                (room.cells.total, room.cells.free, room.sockets.free,
                 room.hosts.free))

    def test_nothing_is_free_on_a_closed_host(self):
        fleet, flavors = fleets.a_fleet(random.Random(1), 1)
        (host,) = fleet.hosts
        empty = fleets.rebuilt(host, ())
        closed = dataclasses.replace(fleet, hosts=(fleets.changed(
            empty, closed='it is disabled', free=guests.Resources(0, 0, 0)),))
        room = free_resources.describe_hosts(
            closed, count.count(closed, flavors))[host.name]
        self.assertEqual([0] * 5, [part.free for part in (
            room.pcpus, room.pages[2048], room.cells, room.sockets,
            room.hosts)])
        self.assertEqual((0, 0), (room.pcpus.stranded,
                                  room.pages[2048].stranded))

    def test_the_fleet_is_the_sum_of_its_hosts(self):
        fleet, flavors = fleets.a_fleet(random.Random(9), 3)
        document = capacity_report.document(fleet, count.count(fleet, flavors))
        for key in ('total', 'free', 'stranded'):
            self.assertEqual(
                sum(host['pcpus'][key] for host in document['hosts']),
                document['free']['pcpus'][key])
        for key in ('cells', 'sockets', 'hosts'):
            self.assertEqual(
                sum(host[key]['free'] for host in document['hosts']),
                document['free'][key]['free'])

    def test_what_is_left_of_a_share_is_drawn(self):
        room = free_resources.FreeResources(
            free_resources.Amount(1000, 7, 1), {},
            *[free_resources.Whole(3, 3), free_resources.Whole(0, 0),
              free_resources.Whole(2, 1)])
        bars = [capacity_report._bar(total, free, stranded or 0)
                for _, total, free, stranded
                in capacity_report.list_amounts(room)]
        self.assertEqual(['#' * 22 + '-!', '-' * 24, '',
                          '#' * 12 + '-' * 12], bars)
