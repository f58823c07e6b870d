# SPDX-License-Identifier: Apache-2.0

import dataclasses
import itertools
import unittest

from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.flavors import plan_warnings
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from tests.builders import hosts
from tests.builders import planned_sets
from tests.builders import wired

PLAIN = dataclasses.replace(planned_sets.GPUS, sizes=(1, 2, 4, 8, 16))


def count(plan):
    """Count the candidates of each kind by listing them."""
    pools = plan.hosts[0].state.supply.pools
    return {row.guest.device_set: len(list(itertools.product(*(
        [pool for pool in pools if devices.is_offered(pool, request)]
        for request in demands.compile_shape(row.guest).requests))))
        for row in plan.flavors}


class CandidatesTest(unittest.TestCase):
    def test_the_numbers_are_those_that_were_measured(self):
        # One and two kinds, 8 and 16 GPUs: candidates of Placement 16.
        for host, entries, expected in (
                (wired.tree(nics=0), (planned_sets.GPUS,), (8, 16, 16, 1)),
                (wired.tree(gpus=4, nics=0), (PLAIN,),
                 (16, 64, 256, 256, 1)),
                (wired.tree(gpus=2, nics=2),
                 (planned_sets.GPUS, planned_sets.VFS), (64, 256, 256, 1))):
            plan = planned_sets.plan(host, entries=entries, smallest_cores=1)
            self.assertEqual(expected, tuple(count(plan).values()))
            results = plan_warnings.find_results(plan)
            self.assertEqual(1000, results)

    def test_the_results_cover_all_hosts(self):
        machines = [wired.tree(nics=2, name=f'n{number}')
                    for number in range(10)]
        plan = planned_sets.plan(*machines)
        self.assertEqual(2560, plan_warnings.find_results(plan))
        self.assertEqual([], [*plan_warnings.warn_many(plan)])

    def test_single_devices_count(self):
        single = dataclasses.replace(planned_sets.GPUS, sizes=(1,))
        hosts = [wired.tree(nics=0, name=f'n{number}')
                 for number in range(200)]
        plan = planned_sets.plan(*hosts, entries=(single,))
        self.assertEqual([None], [row.guest.device_set
                                  for row in plan.flavors])
        self.assertEqual(1600, plan_warnings.find_results(plan))

    def test_more_than_was_measured_is_a_warning_of_each_flavor(self):
        plan = planned_sets.plan(*(wired.tree(nics=2, name=f'n{number}')
                                   for number in range(33)))
        found = {name: item.what for item in plan.warnings
                 if item.code.value == 'many-candidates'
                 for name in item.subjects}
        self.assertEqual(
            {row.flavor.name for row in plan.flavors
             if row.guest.device_set in ('gpu2', 'gpu4')}, set(found))
        self.assertIn('a request has 8448 allocation candidates', next(
            iter(found.values())))

    def test_plans_without_sets_need_nothing(self):
        plan = planner.plan([hosts.build(gpus={0: 2})],
                            profiles.Profile(devices=(hosts.GPU,)))
        self.assertIsNone(plan_warnings.find_results(plan))
