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

import datetime

from tests.unit.bench.parsers import base

START = datetime.datetime(2001, 10, 25, tzinfo=datetime.UTC)


def output(steps=150, seconds=lambda step: 8.0 if step == 0 else 2.0,
           end='d01 2001-10-25_03:00:00 wrf: SUCCESS COMPLETE WRF\n',
           step_s=72):
    """What rank 0 of WRF prints."""
    lines = [' Ntasks in X            4 , ntasks in Y            8\n',
             ' WRF V3.9.1.1 MODEL\n']
    for step in range(steps):
        time = START + datetime.timedelta(seconds=step_s * (step + 1))
        lines.append(f'Timing for main: time {time:%Y-%m-%d_%H:%M:%S} on '
                     f'domain   1:{seconds(step):11.5f} elapsed seconds\n')
    return ''.join(lines) + end

GOOD_OUTPUTS = ((output(steps=20).encode(), {}),)


class TestWrf(base.ParserTestCase):
    parser = 'wrf'

    def test_the_mean_leaves_the_first_step_out(self):
        self.assertEqual({'step_time_s': 2.0}, self.figures(output(), {
            'steps': '150', 'ranks': '32', 'version': '3.9.1.1'}))

    def test_only_the_outer_domain_counts(self):
        inner = output().replace(
            'd01', 'Timing for main: time 2001-10-25_02:00:00 on domain '
            '  2:    0.50000 elapsed seconds\nd01')
        self.assertEqual({'step_time_s': 2.0},
                         self.figures(inner, {'domains': '2'}))

    def test_a_run_without_its_end_is_refused(self):
        self.assert_refused('no "SUCCESS COMPLETE WRF"', output(end=''))

    def test_a_fatal_error_is_refused(self):
        self.assert_refused('FATAL CALLED', output().replace(
            'd01', '-------------- FATAL CALLED ---------------\nd01'))

    def test_too_few_steps_are_refused(self):
        self.assert_refused('steps=150 was asked for', output(steps=149),
                            {'steps': '150'})
        self.assert_refused('only one step', output(steps=1))

    def test_a_broken_line_is_refused(self):
        self.assert_refused('broken', output().replace(
            '2.00000 elapsed', '2.0 elap', 1))

    def test_bad_times_are_refused(self):
        self.assert_refused('the time of the step', output(
            seconds=lambda step: 0.0 if step == 7 else 2.0))
        for word in ('*******', 'NaN'):
            self.assert_refused('the time of the step', output().replace(
                '    2.00000', word.rjust(11), 1))

    def test_two_logs_together_are_refused(self):
        self.assert_refused('several runs', output() + output())
        self.assert_refused('does not increase', output(end='') + output())

    def test_a_missing_line_is_remarked_on(self):
        lines = output().splitlines(keepends=True)
        found = self.parse(''.join(lines[:50] + lines[51:]))
        self.assertIn('lines are missing', found.remarks[0])

    def test_a_time_that_is_none_is_refused(self):
        self.assert_refused('is not a model time', output().replace(
            '2001-10-25_00:01:12', '2001-13-25_00:01:12'))
