# SPDX-License-Identifier: Apache-2.0

"""Compare plans with Nova: with its validators and its claim."""

import dataclasses
import json
import random
import unittest

from nova.api.validation.extra_specs import validators

from hpcvirt import exception
from hpcvirt.fit import capacity
from hpcvirt.flavors import compiled_flavor
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import host_part
from hpcvirt.flavors import memory
from hpcvirt.flavors import plan_document
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import cpuset
from hpcvirt.model import shape
from tests.builders import hosts
from tests.functional import planned_nova

SEED = 20261120
ROLLS = 12
GPU_ROLLS = 8


def as_read(plan):
    """Read the document of a plan as a program does."""
    return json.loads(json.dumps(plan_document.dump(plan)))


def compute_hosts(plan):
    """Make an empty compute host for each planned host."""
    return planned_nova.compute_hosts(
        [host.host for host in plan.hosts], as_read(plan))


class FlavorPlanTest(unittest.TestCase):
    def assert_claims_agree(self, plan):
        """Fill every host with every flavor, as Nova does."""
        for flavor in as_read(plan)['flavors']:
            for name, host in compute_hosts(plan).items():
                where = f'{flavor["name"]} on {name}'
                self.assertEqual(flavor['per_host'][name],
                                 host.fill(flavor), where)
                self.assertEqual(flavor['unused_pcpus'][name],
                                 host.free_pcpus, where)

    def assert_mixtures_agree(self, plan):
        """Fill every host with the flavors from large to small."""
        flavors = as_read(plan)['flavors']
        for planned in plan.hosts:
            nova = compute_hosts(plan)[planned.host.name]
            left = planned.state
            for row, flavor in zip(reversed(plan.flavors), reversed(flavors),
                                   strict=True):
                # The largest flavor would fill the host: leave room.
                limit = max(1, row.per_host[planned.host.name] // 3)
                filling = capacity.fill(compiled_flavor.make(row.flavor), left,
                                        limit=limit)
                left = filling.host
                self.assertEqual(filling.count, nova.fill(flavor, limit),
                                 flavor['name'])

    def test_every_shipped_host_takes_what_its_plan_says(self):
        for profile in profiles.BUILT_IN.values():
            for host in hosts.shipped():
                self.assert_claims_agree(planner.plan([host], profile))

    def test_periodic_the_shipped_hosts_as_one_fleet(self):
        self.assert_claims_agree(
            planner.plan(hosts.shipped(), profiles.Profile()))

    def test_mixtures_fill_the_shipped_hosts_as_planned(self):
        for host in hosts.shipped():
            self.assert_mixtures_agree(
                planner.plan([host], profiles.Profile(socket_scope=False)))

    def test_any_host_takes_what_its_plan_says(self):
        self.roll(0)

    def test_periodic_five_more_blocks_of_hosts(self):
        for block in range(1, 6):
            self.roll(block)

    def roll(self, block):
        dice = random.Random(SEED + block)
        planned = 0
        for number in range(ROLLS):
            machines = [hosts.any_host(dice, f'h{number}-{each}')
                        for each in range(dice.choice([1, 1, 1, 2]))]
            choices = hosts.any_profile(dice)
            if choices.devices and max(
                    len(host.cells) for host in machines) > 4:
                # Nova tries all arrangements before it refuses: minutes.
                continue
            # The claim does not know hpcvirt's scopes, which can cause a
            # refusal in a mixture.
            free = dataclasses.replace(choices, socket_scope=False)
            try:
                plan = planner.plan(machines, choices)
                mixed = planner.plan(machines, free)
            except exception.InvalidInput:
                continue
            planned += 1
            with self.subTest(number=number):
                self.assert_claims_agree(plan)
                self.assert_mixtures_agree(mixed)
        self.assertGreater(planned, ROLLS // 3)

    def test_hosts_with_gpus_take_what_their_plans_say(self):
        dice = random.Random(SEED)
        full = 0
        for number in range(GPU_ROLLS):
            host, choices = hosts.any_gpus(dice, f'h{number}')
            try:
                plan = planner.plan([host], choices)
            except exception.InvalidInput:
                continue
            with self.subTest(number=number):
                self.assert_claims_agree(plan)
                full += any(not any(row.unused[host.name].devices)
                            for row in plan.flavors)
        self.assertGreater(full, GPU_ROLLS // 2)

    def test_periodic_a_part_of_a_host_takes_what_its_plan_says(self):
        small = profiles.Profile(smallest_cores=1, memory_step_mib=64)
        for host in hosts.shipped():
            # Every third core, and half of the memory of the cells.
            cpus = frozenset[int]().union(*(
                core for cell in host.cells
                for core in cell.siblings[::3]))
            size = '512M' if memory.small_page_kib(host) > 4 else '2M'
            for pages in ((), (f'{size}:50%',), ('4K:25%',)):
                if size == '512M' and pages == ('4K:25%',):
                    continue
                plan = planner.plan([host], small, host_part.build(
                    cpuset.render(cpus), pages))
                self.assertLessEqual(plan.hosts[0].settings.dedicated, cpus)
                self.assert_claims_agree(plan)

    def test_nova_validates_every_flavor(self):
        dice = random.Random(SEED)
        plans = [*(planner.plan([host], profile)
                   for profile in profiles.BUILT_IN.values()
                   for host in hosts.shipped()),
                 planner.plan(hosts.shipped(), profiles.DEFAULT),
                 planner.plan(hosts.shipped(), profiles.DENSE),
                 planner.plan([hosts.build(vfs={0: 8})], profiles.Profile(
                     shared_cores_per_cell=1, name_prefix='x',
                     emulator_threads=shape.EmulatorThreads.SHARE,
                     devices=(device_choice.Devices(
                         vendor_id='15b3', product_id='101e',
                         affinity=shape.PCIAffinity.SOCKET),)))]
        for number in range(60):
            try:
                plans.append(planner.plan([hosts.any_host(dice, f'h{number}')],
                                          hosts.any_profile(dice)))
            except exception.InvalidInput:
                continue
        count = 0
        for plan in plans:
            for row in plan.flavors:
                for key, value in row.flavor.extra_specs.items():
                    validators.validate(key, value)
                    count += 1
        self.assertGreater(count, 500)
