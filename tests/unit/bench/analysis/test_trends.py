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

import unittest

from hpcvirt.bench.analysis import trends
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record

UP = outcome.Direction.UP


def run(host, day, value, direction=UP, name='triad_mb_s'):
    figure = outcome.Metric(value, 'MB/s', direction)
    done = outcome.Outcome(True, None, {name: figure})
    return record.Result((record.Run(
        f'{host}-{day}', 'stream', 'openmp', host=host,
        started_at=f'2026-11-{day:02d}T00:00:00+00:00',
        samples=(record.Sample(record.Arm.NATIVE, 0, 0, done),)),))


class TimeSeriesTest(unittest.TestCase):

    def test_a_sudden_loss_stands_out(self):
        values = (100, 101, 99, 100, 80)
        found, = trends.time_series(
            run('n1', day, value) for day, value in enumerate(values, 1))
        self.assertAlmostEqual(0.25, found.drift)

    def test_noise_does_not(self):
        values = (100, 101, 99, 100, 97)
        found, = trends.time_series(
            run('n1', day, value) for day, value in enumerate(values, 1))
        self.assertIsNone(found.drift)

    def test_a_noisy_past_excuses_a_loss(self):
        values = (100, 80, 120, 90, 85)
        found, = trends.time_series(
            run('n1', day, value) for day, value in enumerate(values, 1))
        self.assertIsNone(found.drift)

    def test_a_slow_host_is_behind_the_others_and_they_are_not(self):
        found = trends.time_series(
            run(host, 1, value) for host, value
            in (('n1', 100), ('n2', 101), ('n3', 99), ('n4', 70)))
        behind = {series.key.host: series.behind for series in found}
        self.assertAlmostEqual(100 / 70 - 1, behind.pop('n4'))
        self.assertEqual({None}, set(behind.values()))

    def test_for_a_time_more_is_worse(self):
        values = (10, 10, 10, 12)
        found, = trends.time_series(
            run('n1', day, value, outcome.Direction.DOWN, 'wall_s')
            for day, value in enumerate(values, 1))
        self.assertAlmostEqual(0.2, found.drift)

    def test_two_runs_say_nothing(self):
        found, = trends.time_series((run('n1', 1, 100), run('n1', 2, 10)))
        self.assertIsNone(found.drift)
        self.assertEqual((100.0, 10.0), tuple(
            round(value, 6) for value in found.values))

    def test_failed_and_warm_up_samples_are_left_out(self):
        bad = outcome.Outcome(False, 'no')
        sample = record.Sample(record.Arm.NATIVE, 0, 0, bad)
        result = record.Result((record.Run('r', 'stream', 'openmp',
                                           (sample,), host='n1'),))
        self.assertEqual((), trends.time_series([result]))
