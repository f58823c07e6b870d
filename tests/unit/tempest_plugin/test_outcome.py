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

"""From a verdict to the outcome of a test."""

import unittest

from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import outcome as bench_outcome
from hpcvirt.bench.model import record
from hpcvirt.tempest_plugin import outcome
from tests.unit.bench import runs

NATIVE = [100, 101, 99, 100, 102]
ALIKE = [99.9, 101.2, 98.8, 100.1, 101.9]
SLOW = [10, 11, 10, 9, 10]
NOISY = [60, 140, 99, 75, 130]


def judged(*measured):
    return record.Result(measured, verdict.judge(measured))


class OutcomeTest(unittest.TestCase):

    def outcomes(self, *measured):
        result = judged(*measured)
        return outcome.of(result, 'fail'), outcome.of(result, 'skip')

    def test_pass_passes(self):
        self.assertEqual((outcome.Outcome.PASS, outcome.Outcome.PASS),
                         self.outcomes(runs.run(NATIVE, ALIKE)))

    def test_fail_fails_whatever_the_option_says(self):
        self.assertEqual((outcome.Outcome.FAIL, outcome.Outcome.FAIL),
                         self.outcomes(runs.run(NATIVE, SLOW)))

    def test_inconclusive_follows_the_option(self):
        for guest in (NOISY, ALIKE[:4]):
            with self.subTest(guest=guest):
                self.assertEqual(
                    (outcome.Outcome.FAIL, outcome.Outcome.SKIP),
                    self.outcomes(runs.run(NATIVE, guest)))

    def test_one_corrupted_output_fails_whatever_the_option_says(self):
        guest = [*ALIKE[:4], runs.bad('HPL: residual 1e3 failed')]
        measured = runs.run(NATIVE, guest)
        self.assertEqual((outcome.Outcome.FAIL, outcome.Outcome.FAIL),
                         self.outcomes(measured))
        self.assertEqual(
            ['npb-cg mpi, guest pair 5: HPL: residual 1e3 failed'],
            outcome.faults(judged(measured)))

    def test_figures_without_a_bound_prove_nothing(self):
        self.assertEqual((outcome.Outcome.FAIL, outcome.Outcome.SKIP),
                         self.outcomes(runs.run(NATIVE, ALIKE, bounds={})))

    def test_one_slow_benchmark_of_two_fails(self):
        self.assertEqual(
            (outcome.Outcome.FAIL, outcome.Outcome.FAIL),
            self.outcomes(runs.run(NATIVE, ALIKE),
                       runs.run(NATIVE, SLOW, id='s', benchmark='npb-ep')))

    def test_a_result_without_a_verdict_fails(self):
        self.assertEqual(outcome.Outcome.FAIL,
                         outcome.of(record.Result(()), 'skip'))

    def test_the_worst_flavor_decides(self):
        good, skipped, bad = (outcome.Outcome.PASS, outcome.Outcome.SKIP,
                              outcome.Outcome.FAIL)
        for outcomes, expected in (((good, skipped, bad), bad),
                                   ((good, skipped), skipped),
                                   ((good, good), good), ((), bad)):
            with self.subTest(outcomes=outcomes):
                self.assertEqual(expected, outcome.worst(outcomes))

    def test_a_test_that_does_not_pass_shows_the_table(self):
        for of_test, error in (
                (outcome.Outcome.FAIL, self.failureException),
                (outcome.Outcome.SKIP, unittest.SkipTest)):
            with self.assertRaises(error) as caught:
                outcome.conclude(self, of_test, 'the table')
            self.assertIn('the table', str(caught.exception))
        outcome.conclude(self, outcome.Outcome.PASS, 'the table')

    def test_valid_samples_have_no_fault(self):
        good = bench_outcome.Outcome(True, None)
        self.assertEqual([], outcome.faults(judged(runs.run([good], [good]))))
