# SPDX-License-Identifier: Apache-2.0

import itertools
import math
import random
import statistics
import unittest

import hypothesis
import testtools
from hypothesis import strategies

from hpcvirt.bench.analysis import trends
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from tests import pages
from tests.builders import runs

HISTORIES = strategies.lists(strategies.floats(-1, 1), max_size=25)


def noisy(levels, deviation=0.02, seed=1):
    dice = random.Random(seed)
    return [level + dice.gauss(0, deviation) for level in levels]


class TestChanges(testtools.TestCase):
    def test_a_steady_figure_does_not_change(self):
        for seed in range(20):
            self.assertEqual((), trends.changes(noisy([0] * 40, seed=seed)))

    def test_a_step_is_found_after_a_few_runs_where_it_is(self):
        histories = [noisy([0] * 15 + [0.2] * 15, seed=seed)
                     for seed in range(20)]
        self.assertEqual({()}, {trends.changes(history[:17])
                                for history in histories})
        soon = [trends.changes(history[:21]) for history in histories]
        self.assertGreater(len([found for found in soon if found]), 5)
        late = [found for history in histories
                for found in trends.changes(history)]
        self.assertGreater(len(late), 17)
        self.assertTrue(all(14 <= found <= 16 for found in late), late)

    def test_each_of_several_steps_is_found(self):
        self.assertEqual((15, 30), trends.changes(
            noisy([0] * 15 + [0.2] * 15 + [0] * 15, seed=2)))

    def test_a_creep_is_found(self):
        for creep, deviation in ((0.005, 0.01), (0.01, 0.02), (0.03, 0.05)):
            history = noisy([creep * run for run in range(40)], deviation)
            self.assertNotEqual((), trends.changes(history))

    def test_a_few_stragglers_are_no_change(self):
        history = noisy([0] * 30)
        for slow in ((29,), (28, 29), (10, 20, 27, 29), (5, 6, 7)):
            self.assertEqual((), trends.changes([
                value + (math.log(3) if run in slow else 0)
                for run, value in enumerate(history)]))

    def test_stragglers_do_not_hide_a_change(self):
        history = noisy([0] * 15 + [0.2] * 12, seed=2)
        history[4] += 1
        history[20] += 1
        self.assertEqual((15,), trends.changes(history))

    def test_figures_without_noise_change_by_a_per_cent(self):
        for step in (0.01, 0.05, 0.5):
            self.assertEqual((10,), trends.changes([0.0] * 10 + [step] * 10))
        self.assertEqual((), trends.changes([0.0] * 40))

    def test_less_than_twice_five_runs_say_nothing(self):
        self.assertEqual((), trends.changes([0.0] * 5 + [1.0] * 4))
        self.assertEqual((5,), trends.changes([0.0] * 5 + [1.0] * 5))

    @hypothesis.settings(deadline=None, max_examples=50)
    @hypothesis.given(HISTORIES)
    def test_a_later_run_does_not_move_a_change(self, history):
        found = [trends.changes(history[:runs])
                 for runs in range(len(history) + 1)]
        for before, after in itertools.pairwise(found):
            self.assertEqual(before, after[:len(before)])

    @hypothesis.settings(deadline=None, max_examples=50)
    @hypothesis.given(HISTORIES)
    def test_better_and_worse_are_alike(self, history):
        self.assertEqual(trends.changes(history),
                         trends.changes([-value for value in history]))


def run(host, day, value, direction=runs.UP, name='triad_mb_s', **more):
    done = runs.figures({name: value}, 'MB/s', direction)
    return record.Result((runs.stream(
        f'{host}-{day}', [runs.sample(record.Side.NATIVE, 0, done)],
        host=host, started_at=f'2026-11-{day:02d}T00:00:00+00:00', **more),))


class TimeSeriesTest(unittest.TestCase):
    def series(self, values, **more):
        found, = trends.time_series(
            run('n1', day, value, **more)
            for day, value in enumerate(values, 1))
        return found

    def test_a_sudden_loss_stands_out_when_it_stays(self):
        steady = (100, 101, 99, 100, 101, 99, 100, 100, 101, 99, 100, 99)
        found = self.series((*steady, 80, 81, 79, 80, 80, 81))
        self.assertAlmostEqual(0.25, found.drift)
        self.assertEqual('2026-11-13T00:00:00+00:00', found.changed_at)
        self.assertIsNone(self.series((*steady, 80)).drift)

    def test_a_slow_decline_stands_out(self):
        found = self.series([100 * 0.99 ** day * (1 + 0.01 * (day % 3 - 1))
                             for day in range(25)])
        self.assertGreater(found.drift, 0.08)

    def test_a_gain_is_a_negative_loss(self):
        found = self.series([80] * 10 + [100] * 10)
        self.assertAlmostEqual(-0.2, found.drift)

    def test_a_repaired_host_is_not_named(self):
        found = self.series([100] * 8 + [80] * 8 + [99] * 8)
        self.assertIsNone(found.drift)
        self.assertIsNone(found.changed_at)

    def test_a_change_below_five_per_cent_is_not_named(self):
        self.assertIsNone(self.series([100] * 10 + [97] * 10).drift)

    def test_noise_does_not_stand_out(self):
        self.assertIsNone(self.series((100, 101, 99, 100, 97)).drift)
        self.assertIsNone(self.series((100, 80, 120, 90, 85) * 4).drift)

    def of_hosts(self, values, runs):
        found = trends.time_series(
            run(host, day, value * (1 + 0.01 * (day % 3)))
            for host, value in values.items() for day in range(1, runs + 1))
        return {series.key.host: series.behind for series in found}

    def test_a_slow_host_is_behind_the_others_and_they_are_not(self):
        values = {'n1': 100, 'n2': 101, 'n3': 99, 'n4': 70}
        behind = self.of_hosts(values, 5)
        self.assertAlmostEqual(100 / 70 - 1, behind.pop('n4'), places=3)
        self.assertEqual({None}, set(behind.values()))
        # Each host may have been slow for a moment.
        self.assertEqual({None}, set(self.of_hosts(values, 4).values()))

    def test_hosts_that_are_all_different_are_not_behind(self):
        self.assertEqual({None}, set(self.of_hosts(
            {'n1': 100, 'n2': 90, 'n3': 80, 'n4': 70}, 9).values()))

    def test_two_hosts_are_not_compared(self):
        self.assertEqual({None}, set(self.of_hosts(
            {'n1': 100, 'n2': 50}, 9).values()))

    def test_for_a_time_more_is_worse(self):
        found = self.series([10] * 8 + [12] * 8, name='wall_s',
                            direction=outcome.Direction.DOWN)
        self.assertAlmostEqual(0.2, found.drift)

    def test_two_runs_say_nothing(self):
        found = self.series((100, 10))
        self.assertIsNone(found.drift)
        self.assertEqual((100.0, 10.0), tuple(
            round(value, 6) for value in found.values))

    def test_programs_of_other_names_are_not_compared(self):
        found = trends.time_series(
            run('n1', day, value, identity={f'{record.SETTING}script': path})
            for day, (path, value) in enumerate((
                ('/opt/1.0/mc', 10), ('/opt/md', 2000), ('/opt/1.1/mc', 11)),
                1))
        self.assertEqual(
            [('mc', (10.0, 11.0)), ('md', (2000.0,))],
            [(each.key.program, tuple(round(value, 6)
                                      for value in each.values))
             for each in found])

    def test_failed_and_warm_up_samples_are_left_out(self):
        sample = runs.sample(record.Side.NATIVE, 0, runs.bad())
        result = record.Result((runs.stream(samples=[sample]),))
        self.assertEqual((), trends.time_series([result]))

#: The levels of three hosts; their standard deviation is 1 %.
LIKE = (-0.01, 0.0, 0.01)


def result(host, day, loss):
    metric = outcome.Metric(100 * math.exp(-loss), 'MB/s',
                            outcome.Direction.UP)
    return record.Result((record.Run(
        f'{host}-{day}', 'stream', 'openmp', host=host,
        started_at=f'2026-11-{day:02d}T00:00:00+00:00',
        samples=(record.Sample(record.Side.NATIVE, 0, 0, outcome.Outcome(
            True, None, {'triad_mb_s': metric})),)),))


class ChangesTest(testtools.TestCase):
    def test_five_runs_make_a_level(self):
        before = [0.001 * (-1) ** number for number in range(20)]
        self.assertEqual((), trends.changes([*before, *[0.5] * 4]))
        self.assertEqual((20,), trends.changes([*before, *[0.5] * 5]))
        self.assertEqual((), trends.changes([*[0.5] * 4, *before]))


class BehindTest(testtools.TestCase):
    def behind(self, own, others, own_noise=0.0, noise=0.0):
        """How far a host is reported to be behind others.

        :param own: the loss of the host
        :param others: the losses of the others
        :param own_noise: how far its runs are from this loss, up and down
        :param noise: the same for the other hosts
        """
        losses = {'own': (own, own_noise), **{
            f'n{number}': (loss, noise)
            for number, loss in enumerate(others)}}
        found = trends.time_series(
            result(host, day, loss + turn * spread)
            for host, (loss, spread) in losses.items()
            for day, turn in enumerate((0, 1, -1, 1, -1), 1))
        series, = (each for each in found if each.key.host == 'own')
        return series.behind

    def test_a_host_far_behind_is_reported_with_its_loss(self):
        self.assertAlmostEqual(math.expm1(0.2), self.behind(0.2, LIKE))

    def test_each_host_is_a_chance_of_a_false_alarm(self):
        # The t statistics are 11 and 13.2. With 2 degrees of freedom, 7 would
        # do for a single host, 12.2 for three hosts and 14.1 for four.
        for own in (0.127, 0.1525):
            self.assertIsNone(self.behind(own, LIKE))

    def test_how_far_is_as_the_page_says(self):
        page = pages.read('user/look-at-results')
        for others, percent in ((3, 18), (4, 9), (9, 5)):
            self.assertRegex(page, rf'{percent} %\s+behind')
            alike = random.Random(others)
            found = [alike.gauss(0, 1) for _ in range(others)]
            middle, spread = statistics.fmean(found), statistics.stdev(found)
            alike = [0.01 * (each - middle) / spread for each in found]
            for loss, is_behind in ((percent - 1, False), (percent + 1, True)):
                self.assertEqual(is_behind, self.behind(
                    math.log1p(loss / 100), alike) is not None, others)

    def test_two_others_tell_nothing(self):
        self.assertIsNone(self.behind(0.7, [0.0, 0.0]))

    def test_more_hosts_tell_more_about_their_spread(self):
        self.assertIsNotNone(self.behind(0.127, LIKE * 2))

    def test_a_difference_below_five_percent_is_not_reported(self):
        self.assertIsNone(self.behind(0.045, [0.0] * 4))
        self.assertIsNotNone(self.behind(0.055, [0.0] * 4))

    def test_hosts_that_are_alike_by_chance_do_not_hide_their_noise(self):
        self.assertIsNotNone(self.behind(0.1, [0.0] * 4))
        self.assertIsNone(self.behind(0.1, [0.0] * 4, noise=0.05))
        self.assertIsNone(self.behind(0.1, [0.0] * 4, own_noise=0.05))
