# SPDX-License-Identifier: Apache-2.0

"""Compare the count of what hosts in use still take with Nova's claim."""

import random
import unittest

from hpcvirt.fleet import count
from tests.builders import fleets
from tests.functional import planned_nova
from tests.functional import random_capacity

SEED = 20261123


class FleetCapacityTest(unittest.TestCase):
    def test_a_host_in_use_takes_what_nova_takes_until_it_refuses(self):
        dice = random.Random(SEED)
        lost = tried = 0
        # More hosts are tried until sums are wrong often enough for the
        # agreement to mean something.
        while tried < 25 or (lost < 5 and tried < 250):
            tried += 1
            (host,) = fleets.machines(dice, 1)
            document, flavors = fleets.plan_of([host])
            shown = {flavor['name']: flavor for flavor in document['flavors']}
            hosts = planned_nova.compute_hosts([host], document)
            planned_nova.come_and_go(dice, hosts, document['flavors'],
                                     dice.randrange(4, 20))
            fleet = planned_nova.read_fleet([host], document, hosts)
            self.assertEqual({}, fleet.broken)
            (nova,) = hosts.values()
            before = nova.snapshot()
            for item in count.count(fleet, flavors):
                nova.restore(before)
                self.assertEqual(nova.fill(shown[item.flavor.name]),
                                 item.total, item.flavor.name)
                lost += item.by_sums > item.total
        self.assertGreaterEqual(lost, 5)

    def check_random_hosts(self, number, seed):
        """Compare flavors of all policies, with devices, pages and SMT."""
        dice = random.Random(seed)
        found = [figure for _ in range(number)
                 for figure in random_capacity.figures(dice)]
        for figure in found:
            self.assertEqual((figure.taken, figure.promised),
                             (figure.counted, figure.by_sums), figure)
        kinds = {word for figure in found if figure.taken
                 for word in figure.kind.split()}
        self.assertLessEqual({'dedicated', 'shared', 'mixed', 'PCI', 'vGPU',
                              'threads', 'pages'}, kinds)
        # Sums are wrong often enough for the agreement to mean something.
        self.assertGreater(sum(figure.by_sums > figure.taken
                               for figure in found), len(found) / 10)

    def test_all_kinds_of_flavors_are_counted_as_nova_takes_them(self):
        self.check_random_hosts(16, SEED)

    def test_periodic_all_kinds_of_flavors_on_many_hosts(self):
        self.check_random_hosts(300, SEED + 1)
