# SPDX-License-Identifier: Apache-2.0

import collections
import dataclasses
import itertools
import random
import unittest
import unittest.mock

from hpcvirt.fit import claim
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.model import shape as shape_model
from hpcvirt.simulate import fit_cache
from hpcvirt.simulate import host_table
from hpcvirt.simulate import outcome
from hpcvirt.simulate import replay
from hpcvirt.simulate import requests
from hpcvirt.simulate import scheduler
from hpcvirt.simulate import strategy
from tests.unit.simulate import small

NAMES = 'nova', 'packing', 'best-fit', 'hpcvirt', 'hpcvirt+fullest'
CAPACITY = outcome.Cause.CAPACITY
FRAGMENTATION = outcome.Cause.FRAGMENTATION


def parse(name):
    return strategy.parse(name, 1)[0]


class ReplayTest(unittest.TestCase):

    def test_guests_end_when_their_time_is_up(self):
        flavors = (small.flavor(8),)
        found = small.play([small.host(small.cell(0))], flavors,
                           (0, 10, 0), (5, 10, 0), (10, 10, 0), (19, 1, 0))
        self.assertEqual((None, CAPACITY, None, CAPACITY), found.fates)

    def test_all_guests_of_a_request_are_placed_or_none(self):
        flavors = (small.flavor(4),)
        fleet = [small.host(small.cell(0)), small.host(small.cell(0))]
        found = small.play(fleet, flavors, (0, 9, 0), (1, 1, 0, 4),
                           (2, 9, 0, 3), (3, 9, 0))
        self.assertEqual((None, CAPACITY, None, CAPACITY), found.fates)

    def test_upstream_spreads_and_packing_packs(self):
        flavors = small.flavor(4), small.flavor(8)
        fleet = [small.host(small.cell(0)), small.host(small.cell(0))]
        arrivals = (0, 9, 0), (1, 9, 0), (2, 9, 1)
        for name, last in (('nova', FRAGMENTATION), ('packing', None),
                           ('best-fit', None), ('hpcvirt', None)):
            with self.subTest(strategy=name):
                found = small.play(fleet, flavors, *arrivals, name=name)
                self.assertEqual((None, None, last), found.fates)

    def test_memory_limits_guests_without_numa_topology(self):
        flavors = (small.flavor(memory_mib=0),)
        flavors = (dataclasses.replace(
            flavors[0], sums=flavors[0].sums._replace(
                vcpus=2, memory_mib=5000)),)
        fleet = [small.host(small.cell(0, shared=8))]
        found = small.play(fleet, flavors, (0, 9, 0), (1, 9, 0))
        self.assertEqual((None, CAPACITY), found.fates)

    def test_what_no_flavor_holds_is_lost(self):
        found = small.play([small.host(small.cell(0))], (small.flavor(8),),
                           (0, 9, -1), (1, 9, 0), (9.5, 9, 0))
        self.assertEqual((outcome.Cause.SIZE, None, CAPACITY), found.fates)

    def test_samples_are_evenly_spread(self):
        fleet = [small.host(small.cell(0, socket=0),
                            small.cell(1, socket=1))]
        flavors = small.flavor(3), small.flavor(4, 4)
        found = small.play(fleet, flavors, (0, 50, 0), (0, 70, 1), (100, 1, 0))
        self.assertEqual(500, len(found.samples))
        self.assertEqual(100 * 250 / 499, found.samples[250].time)
        before, between, after = (next(
            sample for sample in reversed(found.samples)
            if sample.time < time) for time in (50, 70, 100))
        # Cells have 8 CPUs: 3 + 4 and 4 are taken, then 4 and 4, then none.
        self.assertEqual(outcome.FleetSample(before.time, 11, 2, 0, 2, 1),
                         before)
        self.assertEqual(outcome.FleetSample(between.time, 8, 2, 0, 1, 1),
                         between)
        self.assertEqual(outcome.FleetSample(after.time, 0, 4, 0, 0, 0), after)
        self.assertEqual(3, found.samples[-1].busy_cpus)

    def test_samples_tell_which_guests_have_their_devices_near(self):
        fleet = [small.host(small.cell(0), small.cell(1), vfs=((0, 4),))]
        flavors = (small.flavor(8, vfs=1, affinity='preferred'),
                   small.flavor(8))
        found = small.play(fleet, flavors, (0, 50, 0), (1, 50, 0),
                           (60, 50, 1), (99, 9, 0))
        counts = [(each.with_devices, each.local) for each in found.samples]
        # The second guest has the cell without devices.
        self.assertEqual([(1, 1), (2, 1), (1, 0), (0, 0)],
                         list(dict.fromkeys(counts)))

    def test_pages_next_to_no_free_cpu_are_stranded(self):
        fleet = [small.host(small.cell(0, huge=2048))]
        flavors = (small.flavor(6, memory_mib=1024, page_kib=small.HUGE),)
        found = small.play(fleet, flavors, (0, 50, 0), (100, 1, 0))
        self.assertEqual(2, found.samples[100].stranded_cpus)
        self.assertEqual(3072, found.samples[100].stranded_pages_mib)

    def test_progress_is_told_for_each_request(self):
        told = []
        replay.replay(
            parse('nova'), small.states([small.host(small.cell(0))]),
            requests.Requests(
                (small.flavor(2),), (requests.Arrival(0, 1, 0),) * 3),
            lambda *numbers: told.append(numbers))
        self.assertEqual([(1, 3), (2, 3), (3, 3)], told)


class BruteForceTest(unittest.TestCase):
    """No strategy loses less than the best of all choices."""

    def test_nothing_beats_the_best_choice(self):
        dice = random.Random(2)
        fleet = [small.host(small.cell(0, 4), small.cell(1, 4))]
        flavors = tuple(map(small.flavor, (1, 2, 3, 4)))
        worse = 0
        for _ in range(30):
            arrivals = [(time, dice.randrange(1, 6), dice.randrange(4))
                        for time in range(6)]
            least = self.least(arrivals)
            for name in NAMES:
                found = self.lost(arrivals, small.play(
                    fleet, flavors, *arrivals, name=name).fates)
                self.assertLessEqual(least, found)
                worse += found > least
        self.assertGreater(worse, 5)

    def lost(self, arrivals, fates):
        return sum(duration * (flavor + 1) for (_, duration, flavor), fate
                   in zip(arrivals, fates, strict=True) if fate is not None)

    def least(self, arrivals):
        """Try to refuse each request, or to place it on each cell."""
        return min(
            self.lost(arrivals, [None if cell is not None else CAPACITY
                                 for cell in where])
            for where in itertools.product((None, 0, 1), repeat=6)
            if all(sum(flavor + 1 for (begin, duration, flavor), its
                       in zip(arrivals, where, strict=True)
                       if its == cell and begin <= time < begin + duration)
                   <= 4 for cell in (0, 1) for time, _, _ in arrivals))


def some_fleet(dice):
    """Make hosts, some of them equal, some of them with SMT and VFs."""
    fleet = []
    while len(fleet) < 5:
        cells = dice.choice((1, 2, 2, 4))
        threads = dice.choice((1, 2))
        own = small.host(
            *(small.cell(number, dice.choice((4, 8)), 8192, 1024, threads,
                         socket=number // 2, shared=2)
              for number in range(cells)),
            vfs=[(number, dice.choice((1, 4))) for number
                 in range(dice.choice((0, 0, cells)))],
            cpu_ratio=2.0)
        fleet += [own] * dice.choice((1, 2))
    return fleet


def some_flavors(dice):
    """Make flavors of all kinds."""
    return (*(
        small.flavor(*dice.choice(((1,), (2,), (3,), (4,), (8,), (4, 4),
                                   (2, 3))),
                     memory_mib=dice.choice((512, 1024, 2048)),
                     page_kib=dice.choice((None, small.SMALL, small.HUGE)),
                     vfs=dice.choice((0, 0, 1, 2)),
                     affinity=dice.choice(tuple(shape_model.PCIAffinity)),
                     thread_policy=dice.choice(
                         (None, shape_model.ThreadPolicy.REQUIRE)))
        for _ in range(4)), small.flavor(2, shared=True))


class CacheTest(unittest.TestCase):
    def test_hosts_are_empty_again_at_the_end(self):
        dice = random.Random(7)
        for name in NAMES:
            fleet, flavors = some_fleet(dice), some_flavors(dice)
            table = host_table.HostTable(small.states(fleet), flavors)
            chooser = scheduler.Scheduler(table, flavors, parse(name))
            running, placed = [], 0
            for _ in range(60):
                if running and dice.random() < 0.4:
                    chooser.remove(running.pop(dice.randrange(len(running))))
                guests = chooser.place(dice.randrange(len(flavors)),
                                       dice.choice((1, 1, 2, 3)))
                if guests:
                    running.append(guests)
                    placed += 1
            self.assertGreater(placed, 9)
            for guests in running:
                chooser.remove(guests)
            self.assertEqual([supply.cells for supply in fleet],
                             [supply.cells for supply in table.supplies])
            for before, after in zip(fleet, table.supplies, strict=True):
                self.assertCountEqual(before.pools, after.pools)

    def test_what_is_forgotten_changes_nothing(self):
        dice = random.Random(1)
        fleet, flavors = some_fleet(dice), some_flavors(dice)
        arrivals = [(time, dice.uniform(1, 30), dice.randrange(5))
                    for time in range(150)]
        for name in 'hpcvirt', 'nova+moves':
            usual = small.play(fleet, flavors, *arrivals, name=name)
            with unittest.mock.patch.object(fit_cache, 'MAX_STATES', 1):
                forgetful = small.play(fleet, flavors, *arrivals, name=name)
            self.assertEqual(usual, forgetful)
            self.assertIn(None, usual.fates)
            self.assertGreater(len(set(usual.fates)), 2)


Cause = outcome.Cause


def a_host(dice):
    return small.host(
        *(small.cell(number, dice.choice((4, 8)), 4096, 512, shared=2)
          for number in range(2)),
        vfs=[(number, 2) for number in range(2) if dice.random() < 0.5],
        cpu_ratio=2.0)


def a_flavor(dice):
    flavor = small.flavor(
        *dice.choice(((1,), (3,), (4,), (6,), (8,), (4, 4), (9,))),
        memory_mib=dice.choice((256, 512, 1024, 2048)),
        page_kib=dice.choice((None, small.SMALL, small.HUGE)),
        vfs=dice.choice((0, 0, 1, 3)),
        affinity=dice.choice(tuple(shape_model.PCIAffinity)))
    return dataclasses.replace(flavor, required=frozenset(
        dice.choice(((), (), (), ('CUSTOM_A',)))))


def some_states(dice, fleet):
    """Give hosts a trait, some of which take only guests that ask for it."""
    traits = frozenset({'CUSTOM_A'})
    for state in small.states(fleet):
        yield dataclasses.replace(state, **dice.choice((
            {'traits': frozenset()}, {'traits': traits},
            {'traits': traits, 'kept_for': traits})))


def cause(flavor, table, states):
    """Say why no host takes one guest, by what the words mean."""
    demand, sums = flavor.demand, flavor.sums
    supplies = [
        supply for supply, state in zip(table.supplies, states, strict=True)
        if flavor.required <= state.traits
        and state.kept_for <= flavor.required]
    cells = [cell for supply in supplies for cell in supply.cells]
    pools = [pool for supply in supplies for pool in supply.pools]
    if (sum(len(cell.free) for cell in cells) < sums.pcpus
            or sum(cell.memory_mib - cell.memory_used_mib
                   for cell in cells) < sums.memory_mib
            or sum(2 * len(cell.shared) - cell.cpu_usage
                   for cell in cells) < sums.vcpus):
        return Cause.CAPACITY
    for request in demand.requests:
        if sum(devices.free_devices(request, pools)) < request.count:
            return Cause.DEVICES
    for size in {cell.page_kib for cell in demand.cells} - {None}:
        if sum(pages.free * size for cell in cells for pages in cell.pages
               if pages.size_kib == size) < sums.memory_mib * 1024:
            return Cause.PAGES

    def fits(wanted):
        return any(isinstance(
            claim.predict(wanted, supply), demands.CellAssignment)
            for supply in supplies)

    if fits(dataclasses.replace(demand, requests=())):
        return Cause.DEVICES
    if fits(dataclasses.replace(demand, cells=tuple(
            dataclasses.replace(cell, memory_mib=0)
            for cell in demand.cells))):
        return Cause.PAGES
    return Cause.FRAGMENTATION


class CausesTest(unittest.TestCase):
    def test_each_cause_is_what_its_name_says(self):
        dice = random.Random(8)
        found = collections.Counter()
        for _ in range(30):
            fleet = [a_host(dice) for _ in range(3)]
            states = [*some_states(dice, fleet)]
            flavors = tuple(a_flavor(dice) for _ in range(5))
            flavors = (*flavors, small.flavor(3, shared=True))
            table = host_table.HostTable(states,
                                         replay.relax_flavors(flavors))
            chooser = scheduler.Scheduler(
                table, flavors, strategy.parse('nova', 0)[0])
            why = replay.Causes(chooser, flavors)
            running = []
            for _ in range(40):
                if running and dice.random() < 0.3:
                    chooser.remove(running.pop(dice.randrange(len(running))))
                number = dice.randrange(len(flavors))
                guests = chooser.place(number, 1)
                if guests:
                    running.append(guests)
                    continue
                before = list(table.supplies)
                its = why.find(number, 1)
                self.assertEqual(cause(flavors[number], table, states), its)
                for old, new in zip(before, table.supplies, strict=True):
                    self.assertEqual(old.cells, new.cells)
                    self.assertEqual([*old.pools], [*new.pools])
                found[its] += 1
        self.assertEqual({*Cause} - {Cause.SIZE}, set(found))
        self.assertGreater(min(found.values()), 5, found)
