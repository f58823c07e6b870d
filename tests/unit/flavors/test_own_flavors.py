# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from tests.builders import hosts


class OwnFlavorsTest(unittest.TestCase):
    def test_a_host_that_makes_flavors_of_its_own_is_named(self):
        for mib, said in ((256 * 1024, '50 % less than those of 9 other'),
                          (440 * 1024, '14 % less than those of 9 other'),
                          (768 * 1024, '50 % more than those of 9 other')):
            machines = [hosts.build(name=f'n{number}', mib=own) for number, own
                        in enumerate([*[512 * 1024] * 9, mib])]
            plan = planner.plan(machines, profiles.Profile())
            (found,) = [item for item in plan.warnings
                        if item.code == 'host-makes-flavors']
            self.assertEqual(('n9',), found.subjects)
            self.assertIn(said, found.what)
            # Its flavors were planned for this host alone.
            names = [row.flavor.name for row in plan.flavors
                     if set(row.shares) == {'n9'}]
            self.assertTrue(names)
            self.assertIn(f'makes {len(names)} flavor', found.what)

    def test_several_hosts_are_spoken_of_in_the_plural(self):
        plan = planner.plan([
            hosts.build(name=f'n{number}', cores=cores) for number, cores
            in enumerate([*[16] * 9, 12, 12])], profiles.Profile())
        (found,) = [item for item in plan.warnings
                    if item.code == 'host-makes-flavors']
        self.assertEqual(('n9', 'n10'), found.subjects)
        self.assertRegex(found.what, '^make .* of their own .*, because their '
                         'cells have .* check the hosts, or plan them in')

    def test_other_cores_and_devices_are_the_reason(self):
        usual = [hosts.build(name=f'n{number}', gpus={0: 2, 1: 2})
                 for number in range(4)]
        for odd, said in (
                (hosts.build(name='odd', cores=14, gpus={0: 2, 1: 2}),
                 ('its cells have 14, 14 cores for guests, and those of 4 '
                  'other hosts 16, 16')),
                (hosts.build(name='odd', gpus={0: 2, 1: 1}),
                 'its guests have 3 devices, and those of 4 other hosts 4')):
            plan = planner.plan([*usual, odd], profiles.Profile(
                devices=(hosts.GPU,)))
            (found,) = [item for item in plan.warnings
                        if item.code == 'host-makes-flavors']
            self.assertIn(said, found.what)
