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

import itertools
import unittest

from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.run import schedule


def letters(samples):
    return ''.join(each.arm[0] for each in samples)


class ScheduleTest(unittest.TestCase):

    def test_which_arm_of_a_pair_leads_is_drawn_by_lot(self):
        leading = [letters(schedule.order(1000, 0, lot=lot))[::2]
                   for lot in ('one', 'two')]
        for letter in 'ng':
            self.assertGreater(leading[0].count(letter), 400)
        self.assertNotEqual(*leading)
        self.assertEqual(leading[0], letters(
            schedule.order(1000, 0, lot='one'))[::2])
        # The order of one pair says nothing about the next.
        changes = sum(before != after for before, after
                      in itertools.pairwise(leading[0]))
        self.assertTrue(400 < changes < 600)

    def test_warm_ups_come_first_and_shift_nothing(self):
        samples = schedule.order(2, 1)
        self.assertEqual('ng' + letters(schedule.order(2, 0)),
                         letters(samples))
        self.assertEqual([True, True, False, False, False, False],
                         [each.warm_up for each in samples])
        self.assertEqual([0, 0, 0, 0, 1, 1], [each.pair for each in samples])

    def test_every_pair_has_one_sample_in_each_arm(self):
        for pairs in range(1, 8):
            samples = schedule.order(pairs, 2)
            seen = {(each.warm_up, each.pair, each.arm) for each in samples}
            self.assertEqual(2 * (pairs + 2), len(seen))
            self.assertEqual(list(range(len(samples))),
                             [each.position for each in samples])

    def test_a_guest_that_is_rebooted_is_not_warmed_up(self):
        cold = schedule.order(2, 1, launch=record.Launch.COLD)
        self.assertEqual('n' + letters(schedule.order(2, 0)), letters(cold))
        self.assertEqual([True, False, False, False, False],
                         [each.warm_up for each in cold])
        self.assertEqual(list(range(5)), [each.position for each in cold])
        alone = schedule.order(2, 1, record.Purpose.UNPAIRED,
                              record.Launch.COLD)
        self.assertEqual('gg', letters(alone))

    def test_a_guest_is_relaunched_and_warmed_up_for_each_boot(self):
        samples = schedule.order(5, 1, of_boots=(2, 2, 1), lot='any')
        self.assertEqual(list(range(14)),
                         [each.position for each in samples])
        words = ''.join(
            ('R' if each.relaunch else '') + (
                each.arm[0].upper() if each.warm_up else 'p')
            for each in samples)
        self.assertEqual('NRGppppRGppppRGpp', words)
        self.assertEqual([0, 0, 1, 2], [each.pair for each in samples
                                        if each.warm_up])
        # The lots are the same as without boots.
        self.assertEqual(
            letters(schedule.order(5, 0, lot='any')),
            letters([each for each in samples if not each.warm_up]))

    def test_without_warm_ups_the_first_run_of_the_guest_follows(self):
        samples = schedule.order(4, 0, of_boots=(2, 2), lot='any')
        self.assertEqual(
            [[True, False], [True, False]],
            [[each.relaunch for each in samples[first:first + 4]
              if each.arm is record.Arm.GUEST] for first in (0, 4)])
        self.assertFalse(any(each.relaunch for each in samples
                             if each.arm is record.Arm.NATIVE))

    def test_a_cold_guest_is_relaunched_before_each_of_its_samples(self):
        samples = schedule.order(3, 1, launch=record.Launch.COLD)
        self.assertEqual([each.arm is record.Arm.GUEST for each in samples],
                         [each.relaunch for each in samples])

    def test_a_control_is_next_to_the_native_sample_of_its_pair(self):
        samples = schedule.order(6, 1, lot='any', controls=5)
        self.assertEqual(list(range(19)),
                         [each.position for each in samples])
        both = set()
        for pair in range(5):
            found = [each for each in samples
                     if each.pair == pair and not each.warm_up]
            words = ''.join('c' if each.control else each.arm[0]
                            for each in found)
            both.add(words)
            self.assertEqual('native', found[1].arm)
        self.assertEqual({'cng', 'gnc'}, both)
        # The lots are the same as without controls.
        self.assertEqual(
            letters(schedule.order(6, 1, lot='any')),
            letters([each for each in samples if not each.control]))

    def test_a_continued_run_lacks_the_samples_that_it_does_not_have(self):
        done = outcome.Outcome(False, 'any')
        run = record.Run('r', 'hpcc', 'mpi', planned_pairs=2,
                         planned_warm_ups=0, samples=(
                             record.Sample(record.Arm.NATIVE, 0, 0, done),
                             record.Sample(record.Arm.GUEST, 1, 2, done)))
        self.assertEqual([1, 3], [each.position
                                  for each in schedule.missing(run)])
