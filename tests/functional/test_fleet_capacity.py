# SPDX-License-Identifier: Apache-2.0

"""Compare the count of what hosts in use still take with Nova's claim."""

import random
import unittest

from hpcvirt.flavors import plan_document
from hpcvirt.fleet import assemble
from hpcvirt.fleet import count
from tests.builders import fleets
from tests.functional import planned_nova
from tests.functional import random_capacity

SEED = 20261123


def record(name, host, flavor, placed):
    """Write an instance as a fleet has it, from Nova's own objects."""
    return {
        'id': name, 'host': host,
        'flavor': {key: flavor[key] for key in (
            'name', 'vcpus', 'ram_mib', 'disk_gib', 'extra_specs')},
        'cells': planned_nova.list_cells(placed),
        'cpus': sorted(cpu for cell in placed.cells
                       for cpu in (cell.cpu_pinning or {}).values())}


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
            config = document['host_config'][host.name]
            nova = planned_nova.ComputeHost(host, config)
            running = {}
            for number in range(dice.randrange(4, 20)):
                flavor = dice.choice(document['flavors'])
                placed = nova.place(flavor)
                if placed is not None:
                    running[f'i{number}'] = flavor, placed
                elif running:
                    name = dice.choice(list(running))
                    nova.delete(running.pop(name)[1])
            instances = fleets.read_instances(
                record(name, host.name, *each)
                for name, each in running.items())
            fleet = assemble.fleet(
                {host.name: host},
                plan_document.load(document, 'plan').host_config,
                instances)
            self.assertEqual({}, fleet.broken)
            before = nova.topology
            for item in count.count(fleet, flavors):
                nova.topology = before
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
