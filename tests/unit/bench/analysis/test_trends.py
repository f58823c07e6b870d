# SPDX-License-Identifier: Apache-2.0

"""Hosts against their own past and against the other hosts."""

import math

import testtools

from hpcvirt.bench.analysis import trends
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record

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

    def test_more_hosts_tell_more_about_their_spread(self):
        self.assertIsNotNone(self.behind(0.127, LIKE * 2))

    def test_a_difference_below_five_percent_is_not_reported(self):
        self.assertIsNone(self.behind(0.045, [0.0] * 4))
        self.assertIsNotNone(self.behind(0.055, [0.0] * 4))

    def test_hosts_that_are_alike_by_chance_do_not_hide_their_noise(self):
        self.assertIsNotNone(self.behind(0.1, [0.0] * 4))
        self.assertIsNone(self.behind(0.1, [0.0] * 4, noise=0.05))
        self.assertIsNone(self.behind(0.1, [0.0] * 4, own_noise=0.05))
