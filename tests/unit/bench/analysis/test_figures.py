# SPDX-License-Identifier: Apache-2.0

import math
import statistics

import testtools

from hpcvirt.bench.analysis import attempts
from hpcvirt.bench.analysis import figures
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from tests.builders import runs

NATIVE = (100, 101, 99, 100.5, 99.5, 100.2, 99.8, 101.2, 98.8, 100.1)


class TestFigures(testtools.TestCase):
    def figure(self, *sides, machines=(), **more):
        found, = figures.estimate_run(runs.run(*sides, **more), machines)
        return found

    def test_a_figure_has_the_geometric_means_and_their_ratio(self):
        guest = [value * 0.9 for value in NATIVE[::-1]]
        found = self.figure(NATIVE, guest).judgement
        self.assertAlmostEqual(statistics.geometric_mean(NATIVE), found.native)
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
                (judgement.VerdictResult.INVALID, [runs.bad()] * 10),
                (judgement.VerdictResult.INCONCLUSIVE, NATIVE[:4]),
                (judgement.VerdictResult.INCONCLUSIVE,
                 [runs.good(1.0, 'other')] * 10)):
            found = self.figure(NATIVE, guest)
            self.assertIsNone(found.estimate)
            self.assertEqual(word, found.judgement.result)

    def test_a_metric_without_a_bound_is_estimated_but_not_judged(self):
        found = figures.estimate_metric(
            attempts.gather(runs.run(NATIVE, NATIVE[::-1])), 'mops_total',
            None, ())
        self.assertIsNone(found.estimate)
        self.assertIsNone(found.judgement.result)
        self.assertIsNone(found.judgement.reason)
        self.assertAlmostEqual(1.0, found.judgement.interval.ratio)

    def test_only_native_runs_of_the_same_host_describe_the_machine(self):
        for more, matches in (({}, True), ({'benchmark': 'npb-ep'}, False)):
            machine = runs.run(NATIVE, NATIVE[::-1],
                               purpose=record.Purpose.AA, **more)
            found = self.figure(NATIVE, NATIVE[::-1], machines=[machine])
            self.assertEqual(matches, found.machine is not None)
