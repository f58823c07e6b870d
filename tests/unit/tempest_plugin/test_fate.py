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

"""From a verdict to what becomes of a test."""

import unittest

from hpcvirt.bench import outcome
from hpcvirt.bench import record
from hpcvirt.bench import verdict
from hpcvirt.tempest_plugin import fate
from tests.unit.bench import runs

NATIVE = [100, 101, 99, 100, 102]
ALIKE = [99.9, 101.2, 98.8, 100.1, 101.9]
SLOW = [10, 11, 10, 9, 10]
NOISY = [60, 140, 99, 75, 130]


def judged(*measured):
    return record.Result(measured, verdict.judge(measured))


class FateTest(unittest.TestCase):

    def fates(self, *measured):
        result = judged(*measured)
        return fate.of(result, 'fail'), fate.of(result, 'skip')

    def test_pass_passes(self):
        self.assertEqual((fate.Fate.PASS, fate.Fate.PASS),
                         self.fates(runs.run(NATIVE, ALIKE)))

    def test_fail_fails_whatever_the_option_says(self):
        self.assertEqual((fate.Fate.FAIL, fate.Fate.FAIL),
                         self.fates(runs.run(NATIVE, SLOW)))

    def test_inconclusive_does_what_the_option_says(self):
        for guest in (NOISY, ALIKE[:4]):
            with self.subTest(guest=guest):
                self.assertEqual(
                    (fate.Fate.FAIL, fate.Fate.SKIP),
                    self.fates(runs.run(NATIVE, guest)))

    def test_one_corrupted_output_fails_whatever_the_option_says(self):
        guest = [*ALIKE[:4], runs.bad('HPL: residual 1e3 failed')]
        measured = runs.run(NATIVE, guest)
        self.assertEqual((fate.Fate.FAIL, fate.Fate.FAIL),
                         self.fates(measured))
        self.assertEqual(
            ['npb-cg mpi, guest pair 5: HPL: residual 1e3 failed'],
            fate.faults(judged(measured)))

    def test_figures_without_a_bound_prove_nothing(self):
        self.assertEqual((fate.Fate.FAIL, fate.Fate.SKIP),
                         self.fates(runs.run(NATIVE, ALIKE, bounds={})))

    def test_one_slow_benchmark_of_two_fails(self):
        self.assertEqual(
            (fate.Fate.FAIL, fate.Fate.FAIL),
            self.fates(runs.run(NATIVE, ALIKE),
                       runs.run(NATIVE, SLOW, id='s', benchmark='npb-ep')))

    def test_what_was_never_judged_fails(self):
        self.assertEqual(fate.Fate.FAIL, fate.of(record.Result(()), 'skip'))

    def test_the_worst_flavor_decides(self):
        good, open_, bad = (fate.Fate.PASS, fate.Fate.SKIP, fate.Fate.FAIL)
        for found, expected in (((good, open_, bad), bad),
                                ((good, open_), open_), ((good, good), good),
                                ((), bad)):
            with self.subTest(found=found):
                self.assertEqual(expected, fate.worst(found))

    def test_a_test_ends_as_its_fate_is_with_the_table(self):
        for found, kind in ((fate.Fate.FAIL, self.failureException),
                            (fate.Fate.SKIP, unittest.SkipTest)):
            with self.assertRaises(kind) as caught:
                fate.conclude(self, found, 'the table')
            self.assertIn('the table', str(caught.exception))
        fate.conclude(self, fate.Fate.PASS, 'the table')

    def test_valid_samples_have_no_fault(self):
        good = outcome.Outcome(True, None)
        self.assertEqual([], fate.faults(judged(runs.run([good], [good]))))
