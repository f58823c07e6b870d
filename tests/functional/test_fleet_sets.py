# SPDX-License-Identifier: Apache-2.0

"""Count the sets of devices of a cloud, with a real Placement."""

import random

from hpcvirt.flavors import compiled_flavor
from hpcvirt.fleet import count
from hpcvirt.fleet import free_resources
from hpcvirt.fleet import make_room
from hpcvirt.fleet import moving
from hpcvirt.fleet import verdict
from hpcvirt.nova_live import view
from tests.functional import test_device_sets


class FleetOfSetsTest(test_device_sets.DeviceSetsNova):
    def setUp(self):
        super().setUp()
        self.add_hosts('one', 'two')

    def count(self, *sizes):
        """Count the instances of each size that each host takes."""
        names = [self.api.get_flavor(self.flavor(size))['name']
                 for size in sizes]
        seen = view.read()
        self.assertEqual({}, seen.fleet.broken)
        flavors = {flavor.name: flavor for flavor in seen.flavors}
        return seen.fleet, [found.per_host for found in count.count(
            seen.fleet, [flavors[name] for name in names])]

    def test_periodic_counts_are_what_nova_takes(self):
        """Boot instances on hosts, and as many more as are counted."""
        hosts = ('one', 'two')
        dice = random.Random(5)
        for _ in range(6):
            servers = [self.boot(self.flavor(dice.choice((1, 1, 2, 4))),
                                 host=dice.choice(hosts))
                       for _ in range(5)]
            _, counts = self.count(*test_device_sets.SIZES)
            for size, per_host in zip(test_device_sets.SIZES, counts,
                                      strict=True):
                for host in hosts:
                    flavor, number = self.flavor(size), per_host[host]
                    more = self.boot_many(
                        flavor, number, host=host) if number else ()
                    self.boot(flavor, host=host, status='ERROR')
                    for server in more:
                        self.delete(server)
            for server in servers:
                self.delete(server)

    def test_sets_are_whole_or_broken(self):
        # The next two GPUs are in no set.
        self.take(0, host='one')
        _, gpus = self.get(2, host='two')
        fleet, (pairs, octets) = self.count(2, 8)
        self.assertEqual(({'one': 3, 'two': 3}, {'one': 0, 'two': 0}),
                         (pairs, octets))
        self.boot(self.flavor(8), status='ERROR')
        one, two = fleet.hosts
        self.assertEqual(
            free_resources.SetCounts(4, 3, 1),
            free_resources.count_sets(one.state.supply.pools)['gpu2'])
        self.assertEqual(
            free_resources.SetCounts(4, 3, 0),
            free_resources.count_sets(two.state.supply.pools)['gpu2'])
        self.assertEqual(2, len(gpus))
        (instance,) = two.instances
        self.assertIn('set of PCI devices', moving.stays(instance, True))
        refused = verdict.judge_host(instance.guest, one)
        self.assertTrue(refused.fits)

    def test_periodic_a_move_that_follows_placement_makes_a_set_whole(self):
        self.flags(moves_follow_placement=True, group='hpcvirt')
        self.get(2, host='one')
        self.get(4, host='two')
        fleet, (octets,) = self.count(8)
        self.assertEqual({'one': 0, 'two': 0}, octets)
        wanted = compiled_flavor.make(next(
            flavor for flavor in view.read().flavors
            if flavor.extra_specs.get('hpcvirt:device_set') == 'gpu8'))
        plan = make_room.search(wanted, fleet.hosts, 1, cold=True)
        (move,) = plan.moves
        self.assertTrue(move.cold)
        self.assertIsNone(make_room.search(wanted, fleet.hosts, 1))
