# SPDX-License-Identifier: Apache-2.0

import collections
import dataclasses
import itertools
import random
import statistics
import unittest

from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hpcvirt import exception
from hpcvirt.fit import cell_assignment as cell_assignments
from hpcvirt.fit import claim
from hpcvirt.fit import devices
from hpcvirt.model import shape as shape_model
from hpcvirt.simulate import host_table
from hpcvirt.simulate import outcome
from hpcvirt.simulate import replay as replays
from hpcvirt.simulate import requests as requests_model
from hpcvirt.simulate import scheduler
from hpcvirt.simulate import strategy
from hpcvirt.simulate import totals
from tests.unit.simulate import replayed
from tests.unit.simulate import small

Cause = outcome.Cause


def a_host(dice):
    return small.host(
        *(small.cell(number, dice.choice((4, 8)), 4096, 512, shared=2)
          for number in range(2)),
        vfs=[(number, 2) for number in range(2) if dice.random() < 0.5],
        cpu_ratio=2.0)


def a_flavor(dice):
    return small.flavor(
        *dice.choice(((1,), (3,), (4,), (6,), (8,), (4, 4), (9,))),
        memory_mib=dice.choice((256, 512, 1024, 2048)),
        page_kib=dice.choice((None, small.SMALL, small.HUGE)),
        vfs=dice.choice((0, 0, 1, 3)),
        affinity=dice.choice(tuple(shape_model.PCIAffinity)))


def cause(flavor, supplies):
    """Say why no host takes one guest, by what the words mean."""
    demand, sums = flavor.guest.demand, flavor.guest.sums
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
            claim.predict(wanted, supply), cell_assignments.CellAssignment)
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
        for _ in range(20):
            fleet = [a_host(dice) for _ in range(3)]
            flavors = tuple(a_flavor(dice) for _ in range(5))
            flavors = (*flavors, small.flavor(3, shared=True))
            table = host_table.HostTable(fleet, replays.relax_flavors(flavors))
            chooser = scheduler.Scheduler(
                table, flavors, strategy.parse('nova', 0)[0])
            why = replays.Causes(chooser, flavors)
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
                self.assertEqual(cause(flavors[number], table.supplies), its)
                for old, new in zip(before, table.supplies, strict=True):
                    self.assertEqual(old.cells, new.cells)
                    self.assertEqual([*old.pools], [*new.pools])
                found[its] += 1
        self.assertEqual({*Cause} - {Cause.SIZE}, set(found))
        self.assertGreater(min(found.values()), 5, found)


def shares(losses, offered=100.0):
    return [totals.CoreHours(offered, loss) for loss in losses]


class DifferenceTest(unittest.TestCase):
    """Differences of losses have intervals that hold what they promise."""

    def test_equal_windows_give_students_interval_of_their_mean(self):
        """As a textbook computes it, and as SciPy does."""
        more = [3.0, 1.0, 2.5, -1.0, 4.0]
        found = totals.difference(
            shares([20 + each for each in more]), shares([20] * 5))
        self.assertAlmostEqual(statistics.mean(more), found.percent)
        low, high = stats.t.interval(
            0.95, 4, statistics.mean(more), stats.sem(more))
        self.assertAlmostEqual(low, found.ends[0])
        self.assertAlmostEqual(high, found.ends[1])

    def test_the_difference_is_that_of_the_total_losses(self):
        dice = random.Random(2)
        own = [totals.CoreHours(dice.uniform(50, 150), dice.uniform(0, 50))
               for _ in range(7)]
        other = [totals.CoreHours(each.offered, dice.uniform(0, 50))
                 for each in own]
        found = totals.difference(own, other)
        offered = sum(each.offered for each in own)
        self.assertAlmostEqual(
            100 * (sum(each.lost for each in own)
                   - sum(each.lost for each in other)) / offered,
            found.percent)
        swapped = totals.difference(other, own)
        self.assertAlmostEqual(-found.percent, swapped.percent)
        self.assertAlmostEqual(found.reach, swapped.reach)

    def test_19_of_20_intervals_hold_the_true_difference(self):
        dice = random.Random(3)
        held = 0
        for _ in range(2000):
            own, other = [], []
            for _ in range(10):
                offered = dice.uniform(80, 120)
                both = dice.uniform(0.1, 0.3)
                own.append(totals.CoreHours(
                    offered, offered * (both + 0.02 + dice.gauss(0, 0.01))))
                other.append(totals.CoreHours(offered, offered * both))
            low, high = totals.difference(own, other).ends
            held += low <= 2 <= high
        self.assertLess(abs(held / 2000 - 0.95), 0.015)

    def test_nothing_is_made_up(self):
        for losses, others, why in (
                ([1, 2], [3, 5], 'at least 3 parts'),
                ([1, 2, 3], [1, 2, 3], 'the same in each part'),
                ([1.1, 2.1, 3.1], [1, 2, 3],
                 'the difference is the same in each part')):
            found = totals.difference(shares(losses), shares(others))
            self.assertIsNone(found.ends)
            self.assertIn(why, found.why_none)


def sample(time, busy, guests=0, across=0):
    return outcome.FleetSample(time, busy, 2 * busy, 3 * busy, guests, across)


class MeansTest(unittest.TestCase):
    """Means are over time, whenever samples are taken."""

    def test_a_value_holds_until_the_next_sample(self):
        samples = [sample(0, 10, 4, 1), sample(9, 20, 4, 4), sample(10, 0)]
        for name, mean in (('busy_cpus', 11), ('stranded_cpus', 22),
                           ('stranded_pages_mib', 33), ('guests', 4),
                           ('across_sockets', (9 * 1 + 4) / 10)):
            self.assertEqual(mean, outcome.mean([samples], name))

    def test_replays_are_averaged(self):
        self.assertEqual(15, outcome.mean(
            [[sample(0, 10), sample(5, 10)], [sample(0, 20), sample(5, 0)]],
            'busy_cpus'))

    def test_no_time_has_no_mean(self):
        for samples in ([], [sample(0, 10, 1)]):
            self.assertEqual(0, outcome.mean([samples], 'busy_cpus'))


class ThinnedTest(unittest.TestCase):
    def test_samples_remain_evenly_in_time(self):
        samples = [sample(number, number) for number in range(500)]
        found = outcome.thin_out(samples, 250)
        self.assertLessEqual(len(found), 250)
        self.assertEqual(samples[0], found[0])
        gaps = {after.time - before.time
                for before, after in itertools.pairwise(found)}
        self.assertLessEqual(gaps, {2, 3})
        self.assertGreaterEqual(found[-1].time, 496)

    def test_few_samples_stay(self):
        samples = [sample(number, number) for number in range(5)]
        self.assertEqual(samples, outcome.thin_out(samples, 5))


def requests(*arrivals):
    """Requests of (time, duration, CPUs, count)."""
    sizes = sorted({arrival[2] for arrival in arrivals})
    return dataclasses.replace(replayed.requested(sizes, *(
        (time, duration / 3600, sizes.index(cpus), count)
        for time, duration, cpus, count in arrivals)), rule=('first',))


class ScalingTest(unittest.TestCase):
    """Loads."""

    def test_the_load_is_the_work_over_what_the_fleet_has_in_the_time(self):
        log = requests((0, 10, 4, 1), (50, 10, 8, 2), (100, 20, 4, 1))
        self.assertAlmostEqual(280 / (100 * 20), requests_model.load(log, 20))

    def test_times_are_scaled_and_durations_are_not(self):
        log = requests((0, 10, 4, 1), (50, 10, 8, 2), (100, 20, 4, 1))
        scaled = requests_model.scale_to_load(log, 20, 0.07)
        self.assertEqual([0, 100, 200],
                         [round(each.time, 9) for each in scaled.arrivals])
        self.assertEqual([each.duration for each in log.arrivals],
                         [each.duration for each in scaled.arrivals])
        self.assertEqual(
            'The times between requests are multiplied by 2, so that the '
            'load is 0.07 instead of 0.14.', scaled.rule[1])
        self.assertEqual(log.rule, scaled.rule[:1])

    def test_work_after_the_last_request_is_told(self):
        log = requests((0, 150, 4, 1), (100, 10, 1, 1))
        self.assertEqual(
            '33 % of the CPU-hours are after the last request, because '
            'lives are long: until then, the load is less.',
            requests_model.scale_to_load(log, 20, 0.3).rule[-1])
        self.assertIn('are multiplied by',
                      requests_model.scale_to_load(log, 20, 0.05).rule[-1])

    def test_requests_at_one_time_have_no_load(self):
        for log in (requests((0, 10, 4, 1)),
                    requests((7, 10, 4, 1), (7, 20, 4, 1))):
            with self.assertRaisesRegex(exception.InvalidInput, 'same time'):
                requests_model.scale_to_load(log, 20, 0.9)

    @given(st.lists(st.tuples(
        st.floats(0, 1e8), st.floats(1, 1e7), st.integers(1, 64),
        st.integers(1, 9)), min_size=2), st.integers(1, 10 ** 6),
        st.floats(0.01, 3))
    def test_the_load_is_as_requested(self, arrivals, capacity, wanted):
        arrivals = sorted([(0.0, 1.0, 1, 1), (1e8, 1.0, 1, 1), *arrivals])
        scaled = requests_model.scale_to_load(
            requests(*arrivals), capacity, wanted)
        self.assertAlmostEqual(wanted, requests_model.load(scaled, capacity),
                               delta=wanted * 1e-9)
        times = [each.time for each in scaled.arrivals]
        self.assertEqual(sorted(times), times)


class TallyTest(unittest.TestCase):
    """Losses are counted in core-hours of whole requests."""

    #: 8, 6, 40 and 4 core-hours.
    ASKED = replayed.requested(
        (4, 10), (0, 2, 0, 1), (0, 0.5, 0, 3), (5, 2, 1, 2), (5, 0.4, 1, 1))

    def test_core_hours_are_cpus_times_instances_times_hours(self):
        self.assertEqual([8, 6, 40, 4], totals.work(self.ASKED))

    def test_lost_is_what_refused_requests_would_have_used(self):
        found = totals.count_totals([replayed.replay(
            self.ASKED, None, replayed.PAGES, replayed.FRAGMENTATION, None)])
        self.assertAlmostEqual(100 * 46 / 58, found['lost_percent'])
        self.assertEqual((4, 2), (found['requests'], found['accepted']))
        self.assertEqual(
            {replayed.CAPACITY: 0, replayed.FRAGMENTATION: 1,
             replayed.DEVICES: 0, replayed.PAGES: 1, replayed.SIZE: 0},
            found['refused'])
        self.assertEqual(
            {'offered': 58, 'accepted': 12, 'lost': 46, 'lost_to_capacity': 0,
             'lost_to_fragmentation': 40, 'lost_to_devices': 0,
             'lost_to_pages': 6, 'lost_to_size': 0}, found['core_hours'])

    def test_the_largest_are_those_of_the_requested_flavors(self):
        found = totals.count_totals([replayed.replay(
            self.ASKED, replayed.CAPACITY, None, replayed.CAPACITY, None)])
        self.assertEqual((2, 50), (found['largest_requests'],
                                   found['largest_accepted_percent']))
        small = replayed.requested((4, 10), (0, 1, 0, 1), (1, 1, 0, 1))
        found = totals.count_totals([replayed.replay(small, None, None)])
        self.assertEqual((2, 100), (found['largest_requests'],
                                    found['largest_accepted_percent']))

    def test_replays_of_several_seeds_are_added(self):
        one = replayed.replay(self.ASKED, *[replayed.CAPACITY] * 4, moves=2)
        two = replayed.replay(self.ASKED, *[None] * 4, moves=3)
        found = totals.count_totals([one, two])
        self.assertEqual((8, 4, 5, 50),
                         (found['requests'], found['accepted'],
                          found['moves'], found['lost_percent']))

    def test_nothing_requested_is_an_error(self):
        for requests in (replayed.requested((4,)),
                         replayed.requested((4,), (0, 0, 0, 1))):
            with self.assertRaisesRegex(exception.InvalidInput,
                                        '^a log: requests no'):
                totals.check(requests, 'a log')
        totals.check(self.ASKED, 'a log')


class SharesTest(unittest.TestCase):
    def test_windows_have_equal_numbers_of_requests_in_their_order(self):
        dice = random.Random(1)
        for length in (1, 7, 10, 23, 101):
            asked = replayed.requested((4,), *(
                (time, dice.random() + 1, 0, 1) for time in range(length)))
            fates = [dice.choice([None, *outcome.Cause]) for _ in range(
                length)]
            replay = replayed.replay(asked, *fates)
            for windows in (1, 2, 10):
                found = totals.shares([replay], windows)
                self.assertEqual(min(windows, length), len(found))
                total = totals.count_totals([replay])['core_hours']
                self.assertAlmostEqual(total['offered'], sum(
                    share.offered for share in found))
                self.assertAlmostEqual(total['lost'], sum(
                    share.lost for share in found))
                # Each request is longer than half the longest.
                numbers = [share.offered / 4 for share in found]
                self.assertLess(max(numbers), 2 * (length // windows + 1))

    def test_windows_are_consecutive(self):
        asked = replayed.requested((4,), *(
            (time, 1, 0, 1) for time in range(10)))
        replay = replayed.replay(asked, *[None] * 8, *[replayed.PAGES] * 2)
        self.assertEqual([0, 0, 0, 0, 100], [
            share.lost_percent for share in totals.shares([replay], 5)])

    def test_each_seed_is_one_share(self):
        asked = replayed.requested((4,), *(
            (time, 1, 0, 1) for time in range(10)))
        found = totals.shares([replayed.replay(asked, *[None] * 10)] * 3, 5)
        self.assertEqual([totals.CoreHours(40, 0)] * 3, found)
