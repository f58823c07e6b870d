# SPDX-License-Identifier: Apache-2.0

import dataclasses
import random
import statistics
import unittest

from hpcvirt.fit import allocation
from hpcvirt.fit import claim
from hpcvirt.fit import guest as guests
from hpcvirt.fit import placement
from hpcvirt.fleet import moving
from hpcvirt.fleet import state
from hpcvirt.simulate import scenario
from hpcvirt.simulate import workload as workloads
from tests.unit.simulate import small
from tests.unit.simulate import test_mapping


def a_fleet(*kinds, flavors=()):
    """Make a fleet of (name, number of hosts, CPUs of each)."""
    found = []
    for name, count, cpus in kinds:
        empty = placement.HostState(small.host(small.cell(0, cpus)),
                                    guests.Resources(cpus, 0, 8192))
        found += [state.FleetHost(
            f'{name}-{number}' if count > 1 else name, empty)
            for number in range(1, count + 1)]
    return state.Fleet(tuple(found), {}, flavors=flavors)


class ChoicesTest(unittest.TestCase):
    """All choices get the same requests."""

    WORK = workloads.Workload('log', tuple(
        test_mapping.job(cpus, 512, time=float(number), duration=3600.0)
        for number, cpus in enumerate((4, 16, 3, 16, 8))))

    def choice(self, flavors, hosts, load=None, **more):
        return scenario.make_scenario(
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


FLAVOR = small.flavor(4)


def empty_host(name, *vfs):
    return state.FleetHost(name, placement.HostState(
        small.host(small.cell(0), small.cell(1), vfs=vfs),
        guests.Resources(16, 0, 16384)))


def settle(host, *flavors):
    """Put instances on a host, as the claim places them."""
    for number, flavor in enumerate(flavors):
        placed = claim.predict(flavor.demand, host.state.supply)
        host = moving.arrive(state.Instance(
            f'{host.name} {number}', '', host.name, flavor,
            allocation.Holding(placed)), host, placed)
    return host


def count_fates(slots, ends, jobs):
    """Say which jobs find a slot, of those that are taken until the ends."""
    ends, fates = [*ends], []
    for time, duration in jobs:
        ends = [end for end in ends if end > time]
        fates.append(len(ends) < slots)
        if fates[-1]:
            ends.append(time + duration)
    return fates


class ResidentsTest(unittest.TestCase):
    """A replay that begins with instances."""

    def test_a_fleet_in_use_has_only_the_slots_that_are_left(self):
        dice = random.Random(7)
        for _ in range(20):
            fleet = state.Fleet(tuple(
                settle(empty_host(name), *[FLAVOR] * dice.randrange(5))
                for name in 'abc'), {})
            jobs = [(time, dice.randrange(20, 400))
                    for time in range(0, 600, 10)]
            requests = scenario.add_residents(small.asked(
                (FLAVOR,), *((*job, 0) for job in jobs)), fleet, 1)
            self.assertEqual(
                sum(len(host.instances) for host in fleet.hosts),
                len(requests.residents))
            empty = [empty_host(name).state.supply for name in 'abc']
            wanted = count_fates(12, [each.end for each
                                      in requests.residents], jobs)
            for fates in (small.play_requests(empty, requests, 'nova').fates,
                          small.play_requests(empty, requests).fates):
                self.assertEqual(wanted, [fate is None for fate in fates])

    def test_they_hold_what_they_have_on_their_cells(self):
        """A guest of a whole cell waits for the one on each of the cells."""
        host = settle(empty_host('a'), small.flavor(4, 4))
        whole = small.flavor(8)
        requests = scenario.add_residents(small.asked(
            (whole,), (0, 100, 0), (100, 1, 0, 2)), state.Fleet((host,), {}),
            3)
        (one,) = requests.residents
        self.assertLess(one.end, 100)
        found = small.play_requests([empty_host('a').state.supply], requests)
        self.assertEqual(['fragmentation', None], [*found.fates])
        self.assertEqual((8, 1), (found.samples[0].busy_cpus,
                                  found.samples[0].guests))

    def test_devices_come_back_to_their_pools(self):
        with_vf = small.flavor(4, vfs=1)
        host = settle(empty_host('a', (0, 1), (0, 1)), with_vf, with_vf)
        requests = scenario.add_residents(small.asked(
            (with_vf,), (0, 50, 0), (50, 9, 0, 2), (51, 9, 0)),
            state.Fleet((host,), {}), 3)
        self.assertEqual(1, len(requests.flavors))
        found = small.play_requests(
            [empty_host('a', (0, 1), (0, 1)).state.supply], requests)
        self.assertEqual(['devices', None, 'devices'], [*found.fates])

    def test_another_flavor_of_the_same_name_is_told_apart(self):
        other = dataclasses.replace(FLAVOR, flavor=dataclasses.replace(
            FLAVOR.flavor, vcpus=2))
        fleet = state.Fleet((settle(empty_host('a'), FLAVOR, other),), {})
        requests = scenario.add_residents(
            small.asked((FLAVOR,), (0, 9, 0)), fleet, 1)
        self.assertEqual([0, 1], [each.flavor
                                  for each in requests.residents])

    def test_rests_of_lives_are_those_of_requests_that_run_at_a_moment(self):
        """Their mean is that of the square over twice that of the life."""
        dice = random.Random(5)
        lives = [dice.expovariate(1 / 100) for _ in range(300)] + [5000.0] * 3
        host = settle(empty_host('a'), FLAVOR)
        fleet = state.Fleet((dataclasses.replace(
            host, instances=host.instances * 4000),), {})
        asked = small.asked((FLAVOR,), *((0, life, 0) for life in lives))
        requests = scenario.add_residents(asked, fleet, 1)
        rests = [each.end for each in requests.residents]
        self.assertAlmostEqual(
            statistics.fmean(life * life for life in lives)
            / (2 * statistics.fmean(lives)), statistics.fmean(rests),
            delta=3 * statistics.stdev(rests) / len(rests) ** 0.5)
        self.assertEqual(requests, scenario.add_residents(asked, fleet, 1))
