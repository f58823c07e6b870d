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
import re

import testtools

from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.report import text
from tests.unit.bench import runs
from tests.unit.bench.studies import study_runs

SMALL = judgement.Bound(1.3, source='below 128 bytes')
LARGE = judgement.Bound(1.1, source='above')


class TestSources(testtools.TestCase):
    def test_figures_with_the_same_bound_and_source_are_grouped(self):
        sizes = [2 ** power for power in range(10)]
        self.assertEqual(
            [('latency_us[1] to latency_us[64] (7 figures)',
              '1.300, below 128 bytes'),
             ('latency_us[128], latency_us[256], latency_us[512]',
              '1.100, above')],
            text.sources(
                (f'latency_us[{size}]', SMALL if size < 128 else LARGE)
                for size in sizes))

    def test_a_figure_of_two_runs_is_listed_once(self):
        self.assertEqual([('a, b', '1.300, below 128 bytes')],
                         text.sources([('a', SMALL), ('b', SMALL),
                                       ('a', SMALL)]))

    def test_a_bound_of_the_user_has_no_source(self):
        self.assertEqual([], text.sources(
            [('a', judgement.Bound(0.9))]))


class TestTable(testtools.TestCase):
    def unpaired(self):
        run = study_runs.measured(1200.0, 1100.0)
        samples = [sample for sample in run.samples
                   if sample.arm is record.Arm.GUEST]
        broken = dataclasses.replace(samples[1], outcome=outcome.Outcome(
            False, 'the checksum of the program is wrong', {}, {}))
        return dataclasses.replace(
            run, purpose=record.Purpose.UNPAIRED,
            samples=(samples[0], broken, *samples[2:]))

    def test_the_samples_of_an_unpaired_run_are_listed(self):
        run = self.unpaired()
        lines = text.table(record.Result((run,))).splitlines()
        line = next(line for line in lines if 'mops_total' in line)
        self.assertEqual(['mops_total', 'Mop/s', '1089', '-', '1100', '1078',
                          '1122'], line.split())
        self.assertIn('INVALID sample 2: the checksum of the program is '
                      'wrong', lines)

    def test_native_against_native_is_a_note_and_no_row(self):
        native = (100.0, 101.0, 99.0, 100.5, 99.5, 100.2)
        noisy = (100.0, 140.0, 70.0, 120.0, 80.0, 130.0)
        run = runs.run(native, native[::-1])
        machine = runs.run(noisy, noisy[::-1], id='m',
                           purpose=record.Purpose.AA)
        for bounds in ({}, {'mops_total': judgement.Bound(0.9)}):
            judged = dataclasses.replace(run, bounds=bounds)
            result = record.Result((judged, machine), verdict.judge(
                (judged, machine)))
            self.assertEqual(1, len(text.shown(result)))
            self.assertEqual(bool(bounds), bool(re.search(
                r'native against native \d',
                ' '.join(text.table(result).split()))))

    def test_no_line_is_wider_than_asked_for(self):
        result = record.Result((self.unpaired(),))
        for width in (60, 80, 120):
            for line in text.table(result, width).splitlines():
                self.assertLessEqual(len(line), width, line)
