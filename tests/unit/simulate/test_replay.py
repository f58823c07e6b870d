# SPDX-License-Identifier: Apache-2.0

import dataclasses
import itertools
import random
import unittest
import unittest.mock

from hpcvirt.fit import allocation
from hpcvirt.fit import cell_assignment as cell_assignments
from hpcvirt.fit import claim
from hpcvirt.fit import host_room
from hpcvirt.fit import scarcity
from hpcvirt.fit import score
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
CAPACITY, FRAGMENTATION, *_ = outcome.Cause


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
            flavors[0], flavor=dataclasses.replace(
                flavors[0].flavor, vcpus=2, ram_mib=5000),
            guest=dataclasses.replace(
                flavors[0].guest, sums=flavors[0].guest.sums._replace(
                    vcpus=2, memory_mib=5000))),)
        fleet = [small.host(small.cell(0, shared=8))]
        found = small.play(fleet, flavors, (0, 9, 0), (1, 9, 0))
        self.assertEqual((None, CAPACITY), found.fates)

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

    def test_pages_next_to_no_free_cpu_are_stranded(self):
        fleet = [small.host(small.cell(0, huge=2048))]
        flavors = (small.flavor(6, memory_mib=1024, page_kib=small.HUGE),)
        found = small.play(fleet, flavors, (0, 50, 0), (100, 1, 0))
        self.assertEqual(2, found.samples[100].stranded_cpus)
        self.assertEqual(3072, found.samples[100].stranded_pages_mib)

    def test_progress_is_told_for_each_request(self):
        told = []
        replay.replay([small.host(small.cell(0))], requests.Requests(
            (small.flavor(2),), (requests.Arrival(0, 1, 0),) * 3),
            parse('nova'), lambda *numbers: told.append(numbers))
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


class Plain:
    """A host as Nova describes it, for a scheduler without any cache."""

    def __init__(self, supply):
        self.supply = supply
        self.free_ram = sum(cell.memory_mib for cell in supply.cells)
        self.vcpus_used = self.io_ops = 0

    def weights(self, demand, placed):
        supply = self.supply
        shared = sum(len(cell.shared) for cell in supply.cells)
        free = sum(len(cell.free) for cell in supply.cells)
        return {
            'ram': max(0, self.free_ram),
            'cpu': max(0, shared * supply.cpu_ratio - self.vcpus_used),
            'pci': 100 - min(99, sum(pool.free for pool in supply.pools)),
            'io-ops': self.io_ops,
            'cpus-left': free if demand.cells[0].pcpus else (
                shared * supply.cpu_ratio - sum(
                    cell.cpu_usage for cell in supply.cells)),
            'locality': score.locality(demand, supply, placed)}


def by_room(able, demand, seen):
    """Weigh hosts by the room for the mix that was seen."""
    rooms = host_room.HostRoom(seen.kinds)
    counts = [rooms.displaced(demand, host.supply, placed)
              for host, placed in able]
    totals = [sum(column) for column in zip(
        *(taken.before for taken in counts), strict=True)]
    losses = scarcity.losses(seen.weights(), totals,
                             [taken.fewer for taken in counts])
    return scarcity.weights([
        (loss, taken.left)
        for loss, taken in zip(losses, counts, strict=True)])


def choose(hosts, demand, plan, seen, first=False):
    """Return the hosts that can take a guest, the best first.

    :param seen: the mix of requests
    :param first: whether it is the first guest of its request
    """
    able = [(host, placed) for host in hosts if isinstance(
        placed := claim.predict(demand, dataclasses.replace(
            host.supply, packing=plan.fullest)),
        cell_assignments.CellAssignment)]
    if len(able) < 2:
        return able
    if first:
        seen.observe(demand)
    weights = [host.weights(demand, placed) for host, placed in able]
    for each, weight in zip(weights, by_room(able, demand, seen),
                            strict=True):
        each['fragmentation'] = weight
    totals = [0.0] * len(able)
    for name, multiplier in plan.multipliers.items():
        own = [each.get(name, 0) for each in weights]
        low = 0.0 if name in ('ram', 'cpu', 'io-ops') else min(own)
        if max(own) == low:
            continue
        for place, weight in enumerate(own):
            totals[place] += multiplier * ((weight - low) / (max(own) - low))
    ranks = sorted(range(len(able)), key=totals.__getitem__, reverse=True)
    return [able[rank] for rank in ranks]


class AgreementTest(unittest.TestCase):
    """The table with its caches decides as a plain look at each host."""

    def test_both_choose_the_same_hosts(self):
        dice = random.Random(7)
        compared = 0
        for _ in range(12):
            fleet, flavors = some_fleet(dice), some_flavors(dice)
            for name in NAMES:
                compared += self.compare(dice, fleet, flavors, parse(name))
        self.assertGreater(compared, 500)

    def compare(self, dice, fleet, flavors, plan):
        table = host_table.HostTable(fleet, flavors)
        ours = scheduler.Scheduler(table, flavors, plan)
        plain = [Plain(supply) for supply in fleet]
        seen = scarcity.Mix()
        running, placed = [], 0
        for _ in range(40):
            if running and dice.random() < 0.4:
                guests = running.pop(dice.randrange(len(running)))
                ours.remove(guests)
                for guest in guests:
                    own = flavors[guest.flavor].flavor
                    plain[guest.host].supply = table.supplies[guest.host]
                    plain[guest.host].free_ram += own.ram_mib
                    plain[guest.host].vcpus_used -= own.vcpus
            number = dice.randrange(len(flavors))
            guests = ours.place(number, dice.choice((1, 1, 2, 3)))
            self.follow(plain, flavors[number], plan, guests, seen)
            if guests:
                running.append(guests)
                placed += 1
        for guests in running:
            ours.remove(guests)
        self.assertEqual([supply.cells for supply in fleet],
                         [supply.cells for supply in table.supplies])
        for before, after in zip(fleet, table.supplies, strict=True):
            self.assertCountEqual(before.pools, after.pools)
        return placed

    def follow(self, plain, flavor, plan, guests, seen):
        demand = flavor.guest.demand
        order = plain
        for host in plain:
            host.io_ops = 0
        if not guests:
            choose(order, demand, plan, seen, first=True)
        for place, guest in enumerate(guests):
            ranking = choose(order, demand, plan, seen, first=not place)
            host, placed = ranking[0]
            self.assertEqual(plain.index(host), guest.host)
            self.assertEqual(placed, guest.holding.placement)
            host.supply = allocation.allocate(demand, host.supply, placed)
            host.free_ram -= flavor.flavor.ram_mib
            host.vcpus_used += flavor.flavor.vcpus
            host.io_ops += 1
            order = [each for each, _ in ranking]

    def test_what_is_forgotten_changes_nothing(self):
        dice = random.Random(1)
        fleet, flavors = some_fleet(dice), some_flavors(dice)
        arrivals = [(time, dice.uniform(1, 30), dice.randrange(5))
                    for time in range(150)]
        for name in 'hpcvirt', 'nova+moves':
            usual = small.play(fleet, flavors, *arrivals, name=name)
            with unittest.mock.patch.object(fit_cache, 'MAX_STATES', 1):
                forgetful = small.play(fleet, flavors, *arrivals, name=name)
            self.assertEqual(dataclasses.replace(usual, seconds=0),
                             dataclasses.replace(forgetful, seconds=0))
            self.assertIn(None, usual.fates)
            self.assertGreater(len(set(usual.fates)), 2)
