# SPDX-License-Identifier: Apache-2.0

import random
import statistics
import unittest

from scipy import stats

from hpcvirt import exception
from hpcvirt.simulate import outcome
from hpcvirt.simulate import totals
from tests.unit.simulate import replayed


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
