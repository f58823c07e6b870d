# SPDX-License-Identifier: Apache-2.0

import dataclasses
import itertools
import unittest

import testtools

from hpcvirt.bench.analysis import boots
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.run import schedule
from tests.builders import runs


def run(durations, pause_after=None, **more):
    """A run of 2 pairs and a warm-up, as far as it has samples.

    :param durations: seconds of a native sample and of one of the guest
    """
    empty = record.Run('r', 'b', 'v', (), planned_pairs=2, **more)
    clock = 0
    samples = []
    for due in schedule.list_missing(empty):
        seconds = durations[due.side is record.Side.GUEST]
        samples.append(runs.sample(
            due.side, due.pair, runs.good(1), warm_up=due.warm_up,
            started_at=f'2026-11-20T10:{clock // 60:02d}:{clock % 60:02d}',
            elapsed_s=seconds - 1.0))
        samples[-1] = dataclasses.replace(samples[-1], position=due.position)
        clock += seconds + (1000 if due.position == pause_after else 0)
    return dataclasses.replace(empty, samples=tuple(samples))


def begun(whole, count):
    return dataclasses.replace(whole, samples=whole.samples[:count])


class TestRemaining(testtools.TestCase):
    def test_without_a_sample_it_is_unknown(self):
        empty = begun(run((10, 30)), 0)
        self.assertIsNone(schedule.estimate_seconds(empty))
        self.assertEqual('', schedule.format_remaining(empty))

    def test_each_arm_takes_its_time(self):
        whole = run((10, 30))
        # Of the last sample, only the time of its program is known yet.
        self.assertIn(schedule.estimate_seconds(begun(whole, 2)), (
            2 * 10 + 2 * 29, 2 * 9 + 2 * 30))
        self.assertEqual(0, schedule.estimate_seconds(whole))
        self.assertEqual('', schedule.format_remaining(whole))

    def test_until_there_is_one_of_the_other_side_it_takes_as_long(self):
        self.assertEqual(
            5 * 9, schedule.estimate_seconds(begun(run((10, 30)), 1)))

    def test_an_interruption_does_not_count(self):
        whole = run((10, 10), pause_after=2, planned_warm_ups=3)
        for count in (6, 7, 8):
            self.assertEqual(10 * (10 - count),
                             schedule.estimate_seconds(begun(whole, count)))

    def test_reboots_of_the_guest_count(self):
        whole = run((10, 10), relaunched=True)
        waits = [due.relaunch for due in schedule.list_missing(
            begun(whole, 0))]
        self.assertEqual(2, sum(waits))
        seconds, clock = [], 0
        for number, sample in enumerate(whole.samples):
            clock += 10 + 60 * waits[number]
            seconds.append(dataclasses.replace(
                sample, started_at=f'2026-11-20T10:{clock // 60:02d}:'
                f'{clock % 60:02d}', elapsed_s=10, environment={
                    boots.RELAUNCH_S: '60'} if waits[number] else {}))
        whole = dataclasses.replace(whole, samples=tuple(seconds))
        first = waits.index(True)
        self.assertIn(' left besides 2 reboots',
                      schedule.format_remaining(begun(whole, first)))
        for count in range(first + 1, len(waits)):
            self.assertEqual(
                10 * (len(waits) - count) + 60 * sum(waits[count:]),
                schedule.estimate_seconds(begun(whole, count)))
            self.assertNotIn('besides',
                             schedule.format_remaining(begun(whole, count)))

    def test_it_is_told_in_suitable_units(self):
        for seconds, text in ((10, 'about 45 s left'),
                              (61, 'about 5 min left'),
                              (3661, 'about 5 h 5 min left')):
            self.assertEqual(
                text, schedule.format_remaining(begun(run((seconds,
                                                           seconds + 1)), 1)))


def letters(samples):
    return ''.join(each.side[0] for each in samples)


class ScheduleTest(unittest.TestCase):
    def test_which_arm_of_a_pair_leads_is_drawn_by_lot(self):
        leading = [letters(schedule.order(1000, 0, seed=seed))[::2]
                   for seed in ('one', 'two')]
        for letter in 'ng':
            self.assertGreater(leading[0].count(letter), 400)
        self.assertNotEqual(*leading)
        self.assertEqual(leading[0], letters(
            schedule.order(1000, 0, seed='one'))[::2])
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
            seen = {(each.warm_up, each.pair, each.side) for each in samples}
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
        samples = schedule.order(5, 1, of_boots=(2, 2, 1), seed='any')
        self.assertEqual(list(range(14)), [each.position for each in samples])
        words = ''.join(
            ('R' if each.relaunch else '') + (
                each.side[0].upper() if each.warm_up else 'p')
            for each in samples)
        self.assertEqual('NRGppppRGppppRGpp', words)
        self.assertEqual([0, 0, 1, 2], [each.pair for each in samples
                                        if each.warm_up])
        # The lots are the same as without boots.
        self.assertEqual(
            letters(schedule.order(5, 0, seed='any')),
            letters([each for each in samples if not each.warm_up]))

    def test_without_warm_ups_the_first_run_of_the_guest_follows(self):
        samples = schedule.order(4, 0, of_boots=(2, 2), seed='any')
        self.assertEqual(
            [[True, False], [True, False]],
            [[each.relaunch for each in samples[first:first + 4]
              if each.side is record.Side.GUEST] for first in (0, 4)])
        self.assertFalse(any(each.relaunch for each in samples
                             if each.side is record.Side.NATIVE))

    def test_a_cold_guest_is_relaunched_before_each_of_its_samples(self):
        samples = schedule.order(3, 1, launch=record.Launch.COLD)
        self.assertEqual([each.side is record.Side.GUEST for each in samples],
                         [each.relaunch for each in samples])

    def test_a_control_is_next_to_the_native_sample_of_its_pair(self):
        samples = schedule.order(6, 1, seed='any', controls=5)
        self.assertEqual(list(range(19)), [each.position for each in samples])
        both = set()
        for pair in range(5):
            found = [each for each in samples
                     if each.pair == pair and not each.warm_up]
            words = ''.join('c' if each.control else each.side[0]
                            for each in found)
            both.add(words)
            self.assertEqual('native', found[1].side)
        self.assertEqual({'cng', 'gnc'}, both)

    def test_the_first_of_two_native_samples_follows_the_guest(self):
        for number in range(50):
            samples = schedule.order(10, 1, seed=str(number), controls=5)
            for before, first, second in zip(samples, samples[1:],
                                             samples[2:], strict=False):
                if {first.control, second.control} == {False, True} and (
                        first.side is second.side) and (
                        first.pair == second.pair):
                    self.assertEqual('guest', before.side)

    def test_a_continued_run_lacks_the_samples_that_it_does_not_have(self):
        done = outcome.Outcome(False, 'any')
        run = record.Run('r', 'hpcc', 'mpi', planned_pairs=2,
                         planned_warm_ups=0, samples=(
                             record.Sample(record.Side.NATIVE, 0, 0, done),
                             record.Sample(record.Side.GUEST, 1, 2, done)))
        self.assertEqual([1, 3], [each.position
                                  for each in schedule.list_missing(run)])
