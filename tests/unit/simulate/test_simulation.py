# SPDX-License-Identifier: Apache-2.0

import random
import unittest

from hypothesis import given
from hypothesis import strategies as st

from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import state
from hpcvirt.simulate import scenario
from hpcvirt.simulate import simulation
from hpcvirt.simulate import strategy
from tests.unit.simulate import small


class FewestTest(unittest.TestCase):
    @given(st.integers(1, 200), st.integers(0, 1), st.integers(1, 50))
    def test_the_first_that_suffices_is_found(self, least, fewest, now):
        tried = []

        def suffices(hosts):
            tried.append(hosts)
            return hosts >= least

        found = simulation.find_fewest(suffices, fewest, now, 32 * now)
        self.assertEqual(max(least, fewest) if least <= 32 * now else None,
                         found)
        self.assertLessEqual(fewest, min(tried))
        self.assertLess(len(tried), 20)

    @given(st.sets(st.integers(1, 64)), st.integers(1, 40))
    def test_one_less_never_suffices(self, enough, now):
        found = simulation.find_fewest(
            lambda hosts: hosts in enough or hosts >= 64, 1, now, 128)
        self.assertTrue(found in enough or found >= 64)
        if found > 1:
            self.assertNotIn(found - 1, enough)


def count_lost(hosts, jobs):
    """Count what hosts that take one guest at a time lose of the work."""
    ends, lost, total = [], 0, 0
    for time, duration in jobs:
        ends = [end for end in ends if end > time]
        total += duration
        if len(ends) < hosts:
            ends.append(time + duration)
        else:
            lost += duration
    return 100 * lost / total


class SearchTest(unittest.TestCase):
    """The number of hosts, against trying all of them."""

    def setUp(self):
        dice = random.Random(4)
        self.jobs = [(100 * number, dice.randrange(100, 900))
                     for number in range(300)]

    def scenario(self, *jobs, hosts=3):
        """A fleet whose hosts have room for one guest each."""
        empty = state.FleetHostState(small.host(small.cell(0)),
                                     guests.Resources(8, 0, 8192))
        fleet = state.Fleet(tuple(
            state.FleetHost(f'n-{number}', empty)
            for number in range(1, hosts + 1)), {})
        return scenario.Scenario('log', (), fleet, None, (small.asked(
            (small.flavor(8),), *((*job, 0) for job in jobs)),))

    def search(self, percent, hosts=3):
        (engine,) = simulation.list_engines(
            strategy.parse('hpcvirt', 0)).values()
        return simulation.search_hosts(
            self.scenario(*self.jobs, hosts=hosts), engine, 'x',
            'n' if hosts > 1 else 'n-1',
            percent, 10, lambda *_: None)

    def test_it_is_the_number_that_trying_all_of_them_finds(self):
        losses = {hosts: count_lost(hosts, self.jobs)
                  for hosts in range(1, 20)}
        for percent in (1, 5, 20, 60):
            wanted = min(hosts for hosts, lost in losses.items()
                         if lost < percent)
            for hosts in (1, 3, 12):
                found = self.search(percent, hosts)
                self.assertEqual(wanted, found['hosts'])
                self.assertAlmostEqual(losses[wanted], found['lost_percent'])
                self.assertLessEqual(found['least'], found['hosts'])
                self.assertLessEqual(found['hosts'], found['most'])

    def test_too_few_are_told(self):
        self.jobs = [(0, 10)] * 40
        found = self.search(1, hosts=1)
        self.assertEqual((None, 100 * 8 / 40),
                         (found['hosts'], found['lost_percent']))
