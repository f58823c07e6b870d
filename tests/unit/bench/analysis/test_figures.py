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

import math
import statistics

import testtools

from hpcvirt.bench.analysis import attempts
from hpcvirt.bench.analysis import figures
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from tests.unit.bench import runs

NATIVE = (100, 101, 99, 100.5, 99.5, 100.2, 99.8, 101.2, 98.8, 100.1)


class TestFigures(testtools.TestCase):
    def figure(self, *arms, machines=(), **more):
        found, = figures.of_run(runs.run(*arms, **more), machines)
        return found

    def test_a_figure_has_the_geometric_means_and_their_ratio(self):
        guest = [value * 0.9 for value in NATIVE[::-1]]
        found = self.figure(NATIVE, guest).judgement
        self.assertAlmostEqual(statistics.geometric_mean(NATIVE),
                               found.native)
        self.assertAlmostEqual(found.guest / found.native,
                               found.interval.ratio)
        self.assertAlmostEqual(0.9, found.interval.ratio)
        self.assertLess(found.interval.low, 0.9)
        self.assertGreater(found.interval.high, 0.9)

    def test_the_limit_is_a_loss_for_rates_and_times(self):
        rate = self.figure(NATIVE, NATIVE[::-1], ratio=0.8)
        time = self.figure(NATIVE, NATIVE[::-1], 1.25, 'wall_s', runs.DOWN)
        self.assertAlmostEqual(math.log(1.25), rate.limit)
        self.assertAlmostEqual(math.log(1.25), time.limit)

    def test_what_cannot_be_judged_has_no_estimate(self):
        for word, guest in (
                (judgement.Word.INVALID, [runs.bad()] * 10),
                (judgement.Word.INCONCLUSIVE, NATIVE[:4]),
                (judgement.Word.INCONCLUSIVE,
                 [runs.good(1.0, 'other')] * 10)):
            found = self.figure(NATIVE, guest)
            self.assertIsNone(found.estimate)
            self.assertEqual(word, found.judgement.word)

    def test_a_metric_without_a_bound_is_estimated_but_not_judged(self):
        found = figures.of_metric(
            attempts.gather(runs.run(NATIVE, NATIVE[::-1])), 'mops_total',
            None, ())
        self.assertIsNone(found.estimate)
        self.assertIsNone(found.judgement.word)
        self.assertIsNone(found.judgement.reason)
        self.assertAlmostEqual(1.0, found.judgement.interval.ratio)

    def test_only_native_runs_of_the_same_host_describe_the_machine(self):
        for more, matches in (({}, True), ({'benchmark': 'npb-ep'}, False)):
            machine = runs.run(NATIVE, NATIVE[::-1],
                               purpose=record.Purpose.AA, **more)
            found = self.figure(NATIVE, NATIVE[::-1], machines=[machine])
            self.assertEqual(matches, found.machine is not None)
