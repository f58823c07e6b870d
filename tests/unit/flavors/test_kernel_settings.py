# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from hpcvirt.flavors import kernel_settings
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import cpuset
from tests.builders import hosts


def states(host, base=profiles.DENSE, **choices):
    plan = planner.plan([host], dataclasses.replace(base, **choices))
    return kernel_settings.make_state(plan.hosts[0])


def words(state):
    return [f'{item.name}={item.value}' for item in state.parameters]


class HostStateTest(unittest.TestCase):
    def test_the_tiering_of_memory_is_not_ended(self):
        for slow, expected in ((0, ['vm.swappiness', 'kernel.numa_balancing']),
                               (1, ['vm.swappiness'])):
            host = hosts.build(cores=4, mib=16384, memory_only=slow)
            self.assertEqual(expected, [
                item.name for item in states(host).sysctls])

    def test_pages_of_each_cell_are_on_the_command_line(self):
        found = words(states(hosts.build(cores=4, mib=16384)))
        self.assertEqual(
            ['default_hugepagesz=2M', 'hugepagesz=2M',
             'hugepages=0:6656,1:6656'], found[:3])

    def test_pages_that_are_there_and_unused_are_given_back(self):
        state = states(hosts.named('xeon-2s-24c-snc2-1g'))
        self.assertEqual({0}, {found[1048576]
                               for found in state.pages.values()})
        self.assertNotIn('hugepagesz=1G', words(state))

    def test_gigabyte_pages_are_the_default_where_guests_use_them(self):
        found = words(states(hosts.build(), page_size=1048576))
        self.assertEqual(['default_hugepagesz=1G', 'hugepagesz=1G'], found[:2])

    def test_a_host_without_huge_pages_lets_the_kernel_join_small_ones(self):
        found = words(states(hosts.build(), page_size=4))
        self.assertEqual(['transparent_hugepage=always'], found)

    def test_siblings_of_dedicated_cpus_are_isolated(self):
        state = states(hosts.build(cores=4, threads=2), smt=profiles.SMT.LEAVE,
                       housekeeping_cores_per_cell=1)
        self.assertEqual('1-3,5-7,9-11,13-15', cpuset.render(state.isolated))
        self.assertEqual('0,4,8,12', cpuset.render(state.housekeeping))

    def test_guests_with_all_cpus_are_not_isolated(self):
        state = states(hosts.build())
        self.assertEqual(frozenset(), state.housekeeping)
        self.assertNotIn('nohz_full', ''.join(words(state)))

    def test_the_iommu_is_for_devices_of_guests(self):
        passthrough = 'iommu.passthrough=1'
        self.assertNotIn(passthrough, words(states(hosts.build(vfs={1: 8}))))
        self.assertIn(passthrough, words(states(
            hosts.build(vfs={1: 8}), devices=(hosts.VFS,))))

    def test_every_cpu_of_every_machine_has_one_place(self):
        for host in hosts.shipped():
            for base in profiles.BUILT_IN.values():
                state = states(host, base)
                plan = planner.plan([host], base).hosts[0].settings
                self.assertEqual(host.cpus,
                                 state.isolated | state.housekeeping)
                self.assertFalse(state.isolated & state.housekeeping)
                self.assertLessEqual(plan.dedicated, state.isolated)
                self.assertLessEqual(plan.shared, state.housekeeping)
                # COMMAND_LINE_SIZE of x86 is 2048.
                self.assertLess(len(' '.join(words(state))), 1800)
