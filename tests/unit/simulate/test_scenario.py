# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt import exception
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import state
from hpcvirt.simulate import scenario
from hpcvirt.simulate import simulation
from hpcvirt.simulate import workload as workloads
from tests.unit.simulate import small
from tests.unit.simulate import test_mapping


def a_fleet(*kinds, flavors=()):
    """Make a fleet of (name, number of hosts, CPUs of each)."""
    found = []
    for name, count, cpus in kinds:
        empty = state.FleetHostState(small.host(small.cell(0, cpus)),
                                     guests.Resources(cpus, 0, 8192))
        found += [state.FleetHost(
            f'{name}-{number}' if count > 1 else name, empty)
            for number in range(1, count + 1)]
    return state.Fleet(tuple(found), {}, flavors=flavors)


def names(fleet):
    return [host.name for host in fleet.hosts]


class GrowTest(unittest.TestCase):
    FLEET = a_fleet(('a', 3, 8), ('b', 1, 4))

    def test_more_hosts_follow_and_are_alike(self):
        found = scenario.grow(self.FLEET, 'a', 2)
        self.assertEqual(['a-1', 'a-2', 'a-3', 'b', 'a-4', 'a-5'],
                         names(found))
        self.assertEqual([('a', 5), ('b', 1)], [
            (kind, len(group)) for kind, group
            in scenario.group_hosts(found)])

    def test_the_last_of_a_kind_go(self):
        self.assertEqual(['a-1', 'b'], names(
            scenario.grow(self.FLEET, 'a', -2)))
        self.assertEqual(['b'], names(scenario.grow(self.FLEET, 'a', -3)))
        self.assertEqual(self.FLEET, scenario.grow(self.FLEET, 'a', 0))

    def test_a_kind_is_found_by_its_name(self):
        self.assertEqual('b', scenario.find_kind(self.FLEET, 'b')[0])
        self.assertEqual('a', scenario.find_kind(
            a_fleet(('a', 2, 8)), None)[0])
        for name in (None, 'c', 'a-1', ''):
            with self.assertRaisesRegex(exception.InvalidInput,
                                        'must be a kind of hosts: .* a, b'):
                scenario.find_kind(self.FLEET, name)


class ChoicesTest(unittest.TestCase):
    """The choices of a what-if get the same requests."""

    WORK = workloads.Workload('log', tuple(
        test_mapping.job(cpus, 512, time=float(number), duration=3600.0)
        for number, cpus in enumerate((4, 16, 3, 16, 8))))

    def choice(self, flavors, hosts, load=None, **more):
        return simulation.make_scenario(
            'log', [self.WORK], a_fleet(('a', hosts, 32), flavors=flavors),
            load, others=(), **more)

    def test_times_and_work_do_not_depend_on_the_choice(self):
        first = self.choice((test_mapping.SMALL, test_mapping.LARGE), 2, 0.5)
        other = self.choice((test_mapping.SMALL,), 6, 0.5, like=first)
        times = [each.time for each in first.requests[0].arrivals]
        self.assertEqual(times, [
            each.time for each in other.requests[0].arrivals])
        for choice in (first, other):
            self.assertEqual([4, 16, 3, 16, 8], [
                each.cpus for each in choice.requests[0].arrivals])
        self.assertEqual(
            [0, -1, 0, -1, -1],
            [each.flavor for each in other.requests[0].arrivals])
        # 4, 16, 4, 16 and 16 CPUs for an hour, of 64.
        self.assertAlmostEqual(56 * 3600 / (times[-1] * 64), 0.5)
        self.assertAlmostEqual(0.5, first.load)
        # 4, 16, 4, 16 and 8 of 192.
        self.assertAlmostEqual(0.5 * 64 / 192 * 48 / 56, other.load)

    def test_the_first_requests_may_not_count(self):
        warm = self.choice((test_mapping.LARGE,), 2, warm_up=0.4)
        self.assertEqual(2, warm.requests[0].warm_up)
        self.assertAlmostEqual(2, warm.span)
