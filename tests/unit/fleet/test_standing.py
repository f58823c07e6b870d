# SPDX-License-Identifier: Apache-2.0

import dataclasses
import random
import unittest

from hpcvirt.fleet import make_room
from hpcvirt.fleet import moving
from hpcvirt.fleet import standing
from hpcvirt.model import flavor as flavor_model
from tests.builders import fleets


def a_flavor(vcpus, ram_mib=1024):
    return flavor_model.Flavor(f'f{vcpus}-{ram_mib}', vcpus, ram_mib, 0, {})


def kept(vcpus, *moved):
    """Make the plan of a kind, with moves of these instances."""
    return make_room.Kept(
        make_room.Wanted(a_flavor(vcpus), 1), moving.MovePlan(tuple(
            moving.Move(name, 'a', 'b', (0,)) for name in moved),
            (('a', (0,)),)))


NO_PLAN = make_room.Kept(make_room.Wanted(a_flavor(64), 1), None)


class UsualTest(unittest.TestCase):
    def test_the_three_largest_are_found_the_largest_first(self):
        flavors = [a_flavor(vcpus) for vcpus in (4, 32, 8, 16)]
        self.assertEqual([1, 3, 2], standing.find_usual(
            flavors, [10, 10, 10, 10]))

    def test_what_has_few_of_the_cpus_is_not_usual(self):
        flavors = [a_flavor(vcpus) for vcpus in (4, 8, 64)]
        # One request for 64 CPUs among 3,200.
        self.assertEqual([2, 1], standing.find_usual(flavors, [4, 390, 1]))
        # And among 3,208.
        self.assertEqual([1], standing.find_usual(flavors, [4, 391, 1]))

    def test_memory_decides_between_equal_cpus(self):
        flavors = [a_flavor(8, 512), a_flavor(8, 2048), a_flavor(8)]
        self.assertEqual([1, 2, 0], standing.find_usual(flavors, [1, 1, 1]))

    def test_nothing_is_usual_if_nothing_was_requested(self):
        self.assertEqual([], standing.find_usual([a_flavor(8)], [0]))


class LimitTest(unittest.TestCase):
    PLANS = kept(32, 'x', 'y'), NO_PLAN, kept(16), kept(8, 'z')

    def limit(self, most):
        plan = standing.limit(self.PLANS, most, 'of the budget')
        names = ''.join(move.id for move in plan.moves)
        self.assertEqual(3, len(names) + plan.waiting)
        self.assertEqual('of the budget' if plan.waiting else None, plan.why)
        return names

    def test_no_plan_is_made_in_part(self):
        # The small kind does not overtake the large one.
        for most, moved in ((None, 'xyz'), (3, 'xyz'), (2, 'xy'), (1, ''),
                            (0, '')):
            self.assertEqual(moved, self.limit(most))


class ExcludedTest(unittest.TestCase):
    def test_only_instances_of_the_projects_stay(self):
        fleet, _ = fleets.a_fleet(random.Random(5), 2)
        hosts = tuple(dataclasses.replace(host, instances=tuple(
            dataclasses.replace(instance, project=host.name)
            for instance in host.instances)) for host in fleet.hosts)
        self.assertEqual(hosts, standing.exclude_projects(hosts, ['other']))
        first, second = standing.exclude_projects(hosts, [hosts[0].name])
        self.assertEqual(hosts[1], second)
        self.assertEqual({'is of an excluded project'}, {
            moving.stays(instance) for instance in first.instances})
