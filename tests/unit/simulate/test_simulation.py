# SPDX-License-Identifier: Apache-2.0

import json
import random
import unittest

from hypothesis import given
from hypothesis import strategies as st

from hpcvirt import exception
from hpcvirt.fit import guest as guests
from hpcvirt.fit import host_state as host_states
from hpcvirt.fleet import state
from hpcvirt.simulate import outcome
from hpcvirt.simulate import scenario
from hpcvirt.simulate import simulation
from hpcvirt.simulate import strategy
from tests.builders import folders
from tests.unit.simulate import replayed
from tests.unit.simulate import small

ASKED = replayed.requested((4,), (0, 1, 0, 1), (1, 1, 0, 1), (2, 1, 0, 1))


def choices(cpus=8, asked=ASKED):
    fleet = state.Fleet((state.FleetHost('n', host_states.HostState(
        small.host(small.cell(0, cpus)),
        guests.Resources(cpus, 0, 8192))),), {})
    return {'': scenario.Scenario('log', (), fleet, None, (asked,))}


class ShardTest(unittest.TestCase):
    """Shards are merged to what a single run gives."""

    def setUp(self):
        self.folder = folders.make(self)
        self.found = {
            ('', name, 0): outcome.ReplayOutcome(
                fates, (outcome.FleetSample(0.5, 1, 2, 3, 4, 5),), 2)
            for name, fates in (
                ('nova', (None, outcome.Cause.PAGES, None)),
                ('hpcvirt', (None,) * 3), ('one bin', (None,) * 3))}

    def part(self, number):
        return dict([*self.found.items()][number - 1::2])

    def write(self, name, found, its=None, settings='2 1000'):
        path = self.folder / name
        path.write_text(json.dumps(simulation.dump_shard(
            found, its or choices(), settings)))
        return str(path)

    def merge(self, *paths, its=None):
        return simulation.merge_shards(paths, self.found, its or choices(),
                                       '2 1000')

    def test_what_is_merged_is_what_was_written(self):
        paths = [self.write(f'{number}', self.part(number))
                 for number in (1, 2)]
        for order in (paths, paths[::-1], [*paths, paths[0]]):
            merged = self.merge(*order)
            self.assertEqual(self.found, merged)
            self.assertEqual([*self.found], [*merged])

    def test_a_missing_shard_is_told(self):
        path = self.write('1', self.part(1))
        with self.assertRaisesRegex(
                exception.InvalidInput, 'all of the replay of hpcvirt'):
            self.merge(path)

    def test_shards_of_other_input_are_refused(self):
        for its in (choices(cpus=6), choices(
                asked=replayed.requested((4,), (0, 1, 0, 1), (1, 1, 0, 1),
                                         (2, 2, 0, 1)))):
            path = self.write('other', self.found, its)
            with self.assertRaisesRegex(exception.InvalidInput,
                                        'other: is a shard of other'):
                self.merge(path)
        with self.assertRaisesRegex(exception.InvalidInput, 'or settings'):
            self.merge(self.write('set', self.found, settings='1 1000'))
        for text in ('', 'null', '[1]', '{"input": "0"}'):
            (self.folder / 'junk').write_text(text)
            with self.assertRaisesRegex(exception.InvalidInput, 'junk'):
                self.merge(str(self.folder / 'junk'))
        short = {key: outcome.ReplayOutcome((None,))
                 for key in self.found}
        with self.assertRaisesRegex(exception.InvalidInput, 'no file has'):
            self.merge(self.write('short', short))


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
        empty = host_states.HostState(small.host(small.cell(0)),
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
