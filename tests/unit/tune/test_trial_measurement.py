# SPDX-License-Identifier: Apache-2.0

"""The runs of a trial, and the native copies of programs."""

import math

import testtools

from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.cmd.bench import experiment
from hpcvirt.model import cpuset
from hpcvirt.tune import experiment as experiments
from hpcvirt.tune import model
from hpcvirt.tune import trial_measurement
from tests.builders import hosts
from tests.builders import runs


def sample(position, found, **more):
    return record.Sample(record.Side.GUEST, position, position, found,
                         elapsed_s=7.0, **more)


class RunsTest(testtools.TestCase):
    def find(self, *samples, metric='time', benchmark='site-script'):
        return trial_measurement.find_runs(
            record.Run('r', benchmark, 'multi', samples), metric, 4)

    def test_rates_of_guests_are_already_added_up(self):
        (found,) = self.find(sample(0, runs.good(20.0, 'rate')),
                             metric='rate')
        self.assertEqual(model.TrialRun(math.log(20), 7.0), found)

    def test_a_time_is_that_of_all_copies(self):
        (found,) = self.find(
            sample(0, runs.good(8.0, 'time', outcome.Direction.DOWN)))
        self.assertAlmostEqual(math.log(4 / 8), found.speed)

    def test_failed_runs_count_and_warm_ups_do_not(self):
        self.assertEqual((model.TrialRun(None),), self.find(
            sample(0, runs.good(8.0, 'time'), warm_up=True),
            sample(1, runs.bad())))

    def test_the_only_primary_figure_counts_by_default(self):
        (found,) = self.find(sample(0, runs.good(9.0)), metric=None,
                             benchmark='npb-ep')
        self.assertAlmostEqual(math.log(9), found.speed)


class RequestTest(testtools.TestCase):
    def limit(self, minutes, slower_than=3.0):
        program = experiments.TunedProgram(benchmark='npb-ep', minutes=minutes)
        return trial_measurement.make_request(
            program, slower_than).definition.time_limit_s

    def test_a_run_that_hangs_is_stopped(self):
        self.assertEqual(1200, self.limit(2))
        self.assertEqual(60, self.limit(0.01))

    def test_a_straggler_is_not_stopped(self):
        self.assertEqual(60 * 40, self.limit(1, slower_than=20))


class SplitTest(testtools.TestCase):
    def test_native_copies_share_all_cpus_of_neighbours(self):
        host = hosts.build(cells=2, cores=4, threads=2)
        shares = trial_measurement.split_cpus(host, 4)
        self.assertEqual(host.cpus, frozenset().union(*shares))
        self.assertEqual([4] * 4, list(map(len, shares)))
        cores = [core for cell in host.cells for core in cell.siblings]
        for share in shares:
            self.assertEqual(2, sum(core <= share for core in cores),
                             cpuset.render(share))

    def test_no_cpu_is_left_over(self):
        shares = trial_measurement.split_cpus(hosts.build(cells=1, cores=7), 2)
        self.assertEqual([3, 4], sorted(map(len, shares)))


class JudgeTest(testtools.TestCase):
    def judge(self, low, high, guard=None):
        word, reason = experiment.judge(model.Confirmation(
            (1,), 9, model.Effect((low + high) / 2, low, high),
            guard=guard), 0.01)
        self.assertIn(guard or '9 pairs of boots', reason)
        return word.value

    def test_a_profile_passes_unless_it_is_worse_by_what_matters(self):
        for low, high, word in (
                (0.02, 0.05, 'PASS'), (-0.009, 0.05, 'PASS'),
                (-0.02, 0.05, 'INCONCLUSIVE'), (-0.05, -0.009, 'INCONCLUSIVE'),
                (-0.05, -0.02, 'FAIL')):
            self.assertEqual(word, self.judge(low, high))

    def test_the_guard_refuses_a_profile(self):
        self.assertEqual('FAIL', self.judge(0.02, 0.05, 'has stragglers'))

    def test_too_few_pairs_decide_nothing(self):
        self.assertEqual('INCONCLUSIVE', experiment.judge(None, 0.01)[0].value)
