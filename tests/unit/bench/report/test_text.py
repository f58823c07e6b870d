# SPDX-License-Identifier: Apache-2.0

import dataclasses
import re
import unittest

import testtools

from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.report import page
from hpcvirt.bench.report import summary
from hpcvirt.bench.report import text
from tests.builders import runs
from tests.builders import study_runs

MEASURED = judgement.Bound(0.962, 0, '[K], table 1',
                           judgement.BoundKind.MEASURED, 'one guest')
EXPECTED = dataclasses.replace(MEASURED, kind=judgement.BoundKind.EXPECTED)


def judged(benchmark, metric, **more):
    run = runs.run([1.0, 1.01, 0.99, 1.0, 1.02, 1.01],
                   [1.0, 1.0, 1.01, 0.99, 1.01, 1.02], metric=metric,
                   benchmark=benchmark, bounds={}, **more)
    return verdict.judge_result(record.Result((run,)))


class PublishedTest(unittest.TestCase):
    def test_only_what_was_measured_is_a_published_ratio(self):
        self.assertEqual((0.962, '0.962'),
                         (text.find_published_ratio(MEASURED),
                          text.write_published(MEASURED)))
        self.assertEqual((None, 'expected'),
                         (text.find_published_ratio(EXPECTED),
                          text.write_published(EXPECTED)))

    def test_the_bound_of_a_user_is_not_from_a_study(self):
        for bound in (None, judgement.Bound(0.9, source='given by the user')):
            self.assertEqual((None, '-'),
                             (text.find_published_ratio(bound),
                              text.write_published(bound)))

    def test_the_source_says_the_kind_the_line_and_the_conditions(self):
        self.assertEqual('0.962, measured, [K], table 1; one guest',
                         text.bound_source(MEASURED))
        self.assertEqual('0.900, given by the user', text.bound_source(
            judgement.Bound(0.9, source='given by the user')))

    def test_the_reports_name_what_was_not_published(self):
        for benchmark, metric, cell in (
                ('hs06', 'score', '0.954'),
                ('hepscore', 'score', 'transferred'),
                ('stream', 'triad_mb_s', 'expected')):
            result = judged(benchmark, metric, shape='2x16')
            row = next(line for line in text.table(result).splitlines()
                       if line.startswith(f'  {metric}'))
            self.assertEqual(cell, row.split()[-2], row)
            html = page.page([summary.Shown('r', result, '2026-01-01', True)],
                             'x')
            self.assertIn(f'>{cell}</td>', html)
            circles = html.count('<circle class="published"')
            self.assertEqual(int(cell == '0.954'), circles)

    def test_the_text_names_the_conditions_of_a_bound(self):
        shown = ' '.join(text.table(
            judged('stream', 'triad_mb_s')).split())
        self.assertIn('bound 0.952, expected, [LBNL-Partitioning], slide of '
                      'expectations', shown)
        self.assertIn('no study measured it', shown)


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
        self.assertEqual([], text.sources([('a', judgement.Bound(0.9))]))


class TestTable(testtools.TestCase):
    def unpaired(self):
        run = study_runs.measured(1200.0, 1100.0)
        samples = [sample for sample in run.samples
                   if sample.side is record.Side.GUEST]
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
            self.assertEqual(1, len(text.select_judgements(result)))
            self.assertEqual(bool(bounds), bool(re.search(
                r'native against native \d',
                ' '.join(text.table(result).split()))))

    def test_no_line_is_wider_than_asked_for(self):
        result = record.Result((self.unpaired(),))
        for width in (60, 80, 120):
            for line in text.table(result, width).splitlines():
                self.assertLessEqual(len(line), width, line)
