# SPDX-License-Identifier: Apache-2.0

import datetime
import itertools

from tests.unit.bench.parsers import base

START = datetime.datetime(2001, 10, 25, tzinfo=datetime.UTC)


def output(steps=150, seconds=lambda step: 8.0 if step == 0 else 2.0,
           end='d01 {} wrf: SUCCESS COMPLETE WRF\n', step_s=72):
    """What rank 0 of WRF prints."""
    lines = [' Ntasks in X            4 , ntasks in Y            8\n',
             ' WRF V3.9.1.1 MODEL\n',
             (f'Timing for Writing wrfout_d01_{START:%Y-%m-%d_%H:%M:%S} for '
              'domain        1:    0.93790 elapsed seconds\n')]
    for step in range(steps):
        time = START + datetime.timedelta(seconds=step_s * (step + 1))
        lines.append(f'Timing for main: time {time:%Y-%m-%d_%H:%M:%S} on '
                     f'domain   1:{seconds(step):11.5f} elapsed seconds\n')
    return ''.join(lines) + end.format(f'{time:%Y-%m-%d_%H:%M:%S}')

GOOD_OUTPUTS = ((output(steps=20).encode(), {'steps': '20'}),)


class TestWrf(base.ParserTestCase):
    parser = 'wrf'
    refused = (
        ('a run without its end', 'no "SUCCESS COMPLETE WRF"', output(end='')),
        ('a fatal error', 'FATAL CALLED',
         output().replace(
             'd01',
             '-------------- FATAL CALLED ---------------\nd01')),
        ('too few steps', 'steps=150 was requested', output(steps=149),
         {'steps': '150'}),
        ('too few steps', 'only the first step', output(steps=1)),
        ('a broken line', 'broken',
         output().replace('2.00000 elapsed', '2.0 elap', 1)),
        ('two logs together', 'several runs', output() + output()),
        ('two logs together', 'does not increase', output(end='') + output()),
        ('a time that is none', 'is not a model time',
         output().replace('2001-10-25_00:01:12', '2001-13-25_00:01:12')),
    )

    def test_the_mean_leaves_the_first_step_out(self):
        self.assertEqual({'step_time_s': 2.0}, self.figures(output(), {
            'steps': '150', 'ranks': '32', 'version': '3.9.1.1'}))

    def test_only_the_outer_domain_counts(self):
        inner = output().replace(
            'd01', 'Timing for main: time 2001-10-25_02:00:00 on domain '
            '  2:    0.50000 elapsed seconds\nd01')
        self.assertEqual({'step_time_s': 2.0},
                         self.figures(inner, {'domains': '2'}))

    def test_bad_times_are_refused(self):
        self.assert_refused('the time of the step', output(
            seconds=lambda step: 0.0 if step == 7 else 2.0))
        for word in ('*******', 'NaN'):
            self.assert_refused('the time of the step', output().replace(
                '    2.00000', word.rjust(11), 1))

    def test_no_lines_can_be_cut_out(self):
        lines = output(steps=30).splitlines(keepends=True)
        for begin, end in itertools.combinations(range(len(lines) + 1), 2):
            cut = ''.join(lines[:begin] + lines[end:])
            if end <= 3 and end - begin < 3:
                self.figures(cut)
            elif 0 < begin < 3:
                # The first step may be any, but not the number of steps.
                self.assert_refused('', cut, {'steps': '30'})
            else:
                self.assert_refused('', cut)

    def test_what_the_output_does_not_show_is_said(self):
        raw = output(steps=30)
        self.assertEqual((), self.parse(raw).remarks)
        begin, end = raw.index('Timing for W'), raw.index('Timing for m')
        acceptable = ('d01 2001-10-25_00:00:00  Input data is acceptable to '
                      'use: wrfbdy_d01\n')
        self.assertEqual((), self.parse(
            raw[:begin] + acceptable + raw[end:]).remarks)
        second = raw.index('Timing for m', end + 1)
        self.assert_refused('lines are missing',
                            raw[:begin] + acceptable + raw[second:])
        self.assertIn('when the run began',
                      self.parse(raw[:begin] + raw[second:]).remarks[0])
        self.assertIn('when the run ended', self.parse(output(
            end='wrf: SUCCESS COMPLETE WRF\n')).remarks[0])

    def test_lines_that_the_cut_joins_are_broken(self):
        raw = output(steps=20)
        for begin, length in ((300, 10), (310, 100), (353, 260), (420, 1)):
            self.assert_refused('', raw[:begin] + raw[begin + length:])

    def test_a_jump_of_model_time_is_named(self):
        lines = output().splitlines(keepends=True)
        self.assert_refused(
            'jumps from 2001-10-25_00:56:24 to 2001-10-25_00:58:48: lines are '
            'missing', ''.join(lines[:50] + lines[51:]))

    def test_missing_lines_of_an_inner_domain_are_refused(self):
        inner = [line.replace('domain   1', 'domain   2')
                 for line in output(steps=60, step_s=24).splitlines(
                     keepends=True)[3:-1]]
        outer = output(steps=20).replace(
            '\nd01', '\n' + ''.join(inner) + 'd01')
        self.figures(outer, {'domains': '2'})
        self.assert_refused('lines are missing', outer.replace(inner[7], ''))

    def test_steps_of_a_fraction_of_a_second_are_read(self):
        for step_s in (1.5, 7.5, 7.7, 6 + 2 / 3, 1 + 1 / 60):
            found = self.parse(output(step_s=step_s))
            self.assertEqual((), found.remarks)

    def test_one_missing_line_of_steps_of_a_second_is_seen(self):
        lines = output(steps=60, step_s=1).splitlines(keepends=True)
        for number in range(3, 62):
            cut = ''.join(lines[:number] + lines[number + 1:])
            if number < 32:
                self.assert_refused('lines are missing', cut)
            else:
                self.assertIn('a line may be missing',
                              self.parse(cut).remarks[0])
