# SPDX-License-Identifier: Apache-2.0

"""All commands give one answer about a fleet, and it is that of Nova."""

import json
import random
import unittest

from hpcvirt.fit import capacity
from hpcvirt.flavors import compiled_flavor
from hpcvirt.flavors import plan_document
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile
from hpcvirt.model import flavor as flavor_model
from tests.builders import hosts
from tests.functional import mixed_fleets
from tests.functional import planned_nova


class OneAnswerTest(unittest.TestCase):
    def check(self, seed, load):
        """Compare the answers about a random fleet.

        :returns: how many instances were counted
        """
        dice = random.Random(seed)
        found = mixed_fleets.answers(dice, load)
        flavors = list(found.flavors)
        if load:
            flavors = dice.sample(flavors, min(6, len(flavors)))
        counted = 0
        for flavor in flavors:
            where = f'seed {seed}: {flavor.name}'
            nova = found.of_nova(flavor)
            counted += sum(nova.values())
            self.assertEqual(nova, found.of_capacity(flavor), where)
            self.assertEqual(nova, found.of_placing(flavor), where)
            fits = {name: number > 0 for name, number in nova.items()}
            self.assertEqual(fits, found.of_explain(flavor), where)
            self.assertEqual(fits, found.of_simulator(flavor), where)
            if not load:
                self.assertEqual(nova, found.of_plan(flavor), where)
            total = sum(nova.values())
            if 0 < total <= mixed_fleets.MOST_GUESTS:
                self.assertTrue(found.has_room(flavor, total), where)
                self.assertFalse(found.has_room(flavor, total + 1), where)
        if not load:
            self.assertEqual([], list(found.lint()), f'seed {seed}')
        return counted

    def check_fleets(self, seeds):
        counted = 0
        for seed in seeds:
            counted += self.check(seed, 0.0)
            counted += self.check(seed, 0.7)
        return counted

    def test_random_fleets(self):
        self.assertGreater(self.check_fleets(range(4)), 100)

    def test_periodic_many_random_fleets(self):
        self.assertGreater(self.check_fleets(range(4, 504)), 15_000)


class FarSetsTest(unittest.TestCase):
    """Pairs of GPUs of different sockets, on the shipped host with eight."""

    def test_the_plan_counts_what_the_claim_takes(self):
        host = hosts.named('xeon-2s-20c-smt-8gpu')
        gpus = [device for device in host.devices
                if device.product_id == '1db1']
        near, far = [[device.address for device in gpus
                      if device.cell == cell] for cell in (0, 1)]
        pairs = [list(pair) for pair in zip(near, far, strict=True)]
        for affinity in ('preferred', 'required'):
            content = {'devices': [{
                'kind': 'whole', 'sets': pairs, 'alias': 'pair',
                'affinity': affinity, 'vendor_id': '10de',
                'product_id': '1db1'}]}
            plan = planner.plan_hosts([host], profile.build(content, 'p'))
            (planned,) = plan.hosts
            document = plan_document.dump(plan)
            nova = planned_nova.compute_hosts([host], json.loads(
                json.dumps(document)))[host.name]
            one_cell = [
                flavor for flavor in self.flavors(planned, plan)
                if len(compiled_flavor.make(flavor).demand.cells) == 1]
            self.assertTrue(one_cell)
            for flavor in one_cell:
                guest = compiled_flavor.make(flavor)
                self.assertEqual(
                    nova.fill(mixed_fleets.plain(flavor)),
                    capacity.fill(guest, planned.state).count, affinity)

    def flavors(self, planned, plan):
        """Make a flavor of one cell with each pair, and those of the plan."""
        aliases = [alias['name'] for alias in planned.settings.pci_alias]
        yield flavor_model.Flavor('one', 8, 4096, 0, {
            'hw:cpu_policy': 'dedicated', 'hw:numa_nodes': '1',
            'hw:mem_page_size': str(planned.page_kib),
            'hpcvirt:device_set': 'pair2',
            'hw:pci_numa_affinity_policy':
                planned.settings.pci_alias[0]['numa_policy'],
            'pci_passthrough:alias': ','.join(
                f'{name}:1' for name in aliases)})
        for row in plan.flavors:
            yield row.flavor
