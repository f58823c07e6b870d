# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Losses are counted in core-hours of whole requests."""

import random
import unittest

from hpcvirt import exception
from hpcvirt.simulate import outcome
from hpcvirt.simulate import tally
from tests.unit.simulate import replayed


class TallyTest(unittest.TestCase):

    #: 8, 6, 40 and 4 core-hours.
    ASKED = replayed.requested(
        (4, 10), (0, 2, 0, 1), (0, 0.5, 0, 3), (5, 2, 1, 2), (5, 0.4, 1, 1))

    def test_core_hours_are_cpus_times_instances_times_hours(self):
        self.assertEqual([8, 6, 40, 4], tally.work(self.ASKED))

    def test_lost_is_what_refused_requests_would_have_used(self):
        found = tally.tally([replayed.replay(
            self.ASKED, None, replayed.PAGES, replayed.FRAGMENTATION, None)])
        self.assertAlmostEqual(100 * 46 / 58, found.total.lost_percent)
        self.assertEqual((4, 2), (found.requests, found.accepted))
        self.assertEqual(
            {replayed.CAPACITY: 0, replayed.FRAGMENTATION: 1,
             replayed.DEVICES: 0, replayed.PAGES: 1}, found.refused)
        self.assertEqual(
            {replayed.CAPACITY: 0, replayed.FRAGMENTATION: 40,
             replayed.DEVICES: 0, replayed.PAGES: 6}, found.lost)

    def test_the_largest_are_those_of_the_requested_flavors(self):
        found = tally.tally([replayed.replay(
            self.ASKED, replayed.CAPACITY, None, replayed.CAPACITY, None)])
        self.assertEqual((2, 1), found.largest)
        self.assertEqual(50, found.largest_percent)
        small = replayed.requested((4, 10), (0, 1, 0, 1), (1, 1, 0, 1))
        found = tally.tally([replayed.replay(small, None, None)])
        self.assertEqual((2, 2), found.largest)

    def test_replays_of_several_seeds_are_added(self):
        one = replayed.replay(self.ASKED, *[replayed.CAPACITY] * 4, moves=2)
        two = replayed.replay(self.ASKED, *[None] * 4, moves=3)
        found = tally.tally([one, two])
        self.assertEqual((8, 4, 5, 50),
                         (found.requests, found.accepted, found.moves,
                          found.total.lost_percent))

    def test_nothing_requested_is_an_error(self):
        for requests in (replayed.requested((4,)),
                         replayed.requested((4,), (0, 0, 0, 1))):
            with self.assertRaisesRegex(exception.InvalidInput,
                                        '^a log: requests no'):
                tally.check(requests, 'a log')
        tally.check(self.ASKED, 'a log')


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
                found = tally.shares([replay], windows)
                self.assertEqual(min(windows, length), len(found))
                total = tally.tally([replay]).total
                self.assertAlmostEqual(total.offered, sum(
                    share.offered for share in found))
                self.assertAlmostEqual(total.lost, sum(
                    share.lost for share in found))
                # Each request is longer than half the longest.
                numbers = [share.offered / 4 for share in found]
                self.assertLess(max(numbers), 2 * (length // windows + 1))

    def test_windows_are_consecutive(self):
        asked = replayed.requested((4,), *(
            (time, 1, 0, 1) for time in range(10)))
        replay = replayed.replay(asked, *[None] * 8, *[replayed.PAGES] * 2)
        self.assertEqual([0, 0, 0, 0, 100], [
            share.lost_percent for share in tally.shares([replay], 5)])

    def test_each_seed_is_one_share(self):
        asked = replayed.requested((4,), *(
            (time, 1, 0, 1) for time in range(10)))
        found = tally.shares([replayed.replay(asked, *[None] * 10)] * 3, 5)
        self.assertEqual([tally.Share(40, 0)] * 3, found)
