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

import dataclasses

import testtools

from hpcvirt.bench.model import record
from hpcvirt.bench.run import remaining
from hpcvirt.bench.run import schedule
from tests.unit.bench import runs


def run(durations, pause_after=None, **more):
    """A run of 2 pairs and a warm-up, as far as it has samples.

    :param durations: seconds of a native sample and of one of the guest
    """
    empty = record.Run('r', 'b', 'v', (), planned_pairs=2, **more)
    clock = 0
    samples = []
    for due in schedule.missing(empty):
        seconds = durations[due.arm is record.Arm.GUEST]
        samples.append(runs.sample(
            due.arm, due.pair, runs.good(1), warm_up=due.warm_up,
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
        self.assertIsNone(remaining.seconds(empty))
        self.assertEqual('', remaining.told(empty))

    def test_each_arm_takes_its_time(self):
        whole = run((10, 30))
        # Of the last sample, only the time of its program is known yet.
        self.assertIn(remaining.seconds(begun(whole, 2)), (
            2 * 10 + 2 * 29, 2 * 9 + 2 * 30))
        self.assertEqual(0, remaining.seconds(whole))
        self.assertEqual('', remaining.told(whole))

    def test_until_there_is_one_of_the_other_arm_it_takes_as_long(self):
        self.assertEqual(5 * 9, remaining.seconds(begun(run((10, 30)), 1)))

    def test_an_interruption_does_not_count(self):
        whole = run((10, 10), pause_after=2, planned_warm_ups=3)
        for count in (6, 7, 8):
            self.assertEqual(10 * (10 - count),
                             remaining.seconds(begun(whole, count)))

    def test_it_is_told_in_suitable_units(self):
        for seconds, text in ((10, 'about 45 s left'),
                              (61, 'about 5 min left'),
                              (3661, 'about 5 h 5 min left')):
            self.assertEqual(
                text, remaining.told(begun(run((seconds, seconds + 1)), 1)))
        self.assertIn('at most', remaining.told(
            begun(run((10, 10), looks=(6, 9)), 1)))
