# SPDX-License-Identifier: Apache-2.0


import contextlib
import dataclasses
import io
import pathlib

import testtools

from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.model import record
from hpcvirt.bench.parsers import parser
from hpcvirt.bench.run import schedule
from hpcvirt.cmd.bench import progress
from tests.builders import runs

DATA = pathlib.Path(__file__).parents[3] / 'data' / 'bench'


def parse(benchmark, raw):
    return parser.parse(catalogue.get(benchmark).output_format, raw, {})


class TestTerminal(testtools.TestCase):
    def line(self, benchmark, variant, output):
        raw = (DATA / output).read_bytes()
        run = record.Run(id='0-0', benchmark=benchmark, variant=variant,
                         samples=())
        due = schedule.PlannedSample(side=record.Side.NATIVE, pair=0,
                                     position=2, warm_up=False)
        sample = record.Sample(side=due.side, pair=0, position=2,
                               outcome=parse(benchmark, raw))
        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            terminal = progress.Terminal('/data')
            terminal.sample_started(run, due, 3, 12)
            terminal.sample_finished(sample)
        return err.getvalue()

    def test_a_sample_is_shown_with_the_primary_figures(self):
        line = self.line('stream', 'openmp', 'native_np1/stream_2M.out')
        self.assertIn('stream openmp  3/12  pair 1  native', line)
        self.assertTrue(line.endswith('triad_mb_s 25330.5 MB/s\n'))
        self.assertIn('HPL_Tflops', self.line('hpcc', 'mpi',
                                              'native_np1/hpccoutf.txt'))

    def test_what_a_guest_printed_is_escaped(self):
        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            terminal = progress.Terminal('/data')
            terminal.left_behind('/tmp/x\n\x1b[2J\u202e')
        self.assertEqual('not removed: /tmp/x\\u000a\\u001b[2J\\u202e\n',
                         err.getvalue())

    def lines(self, total):
        run = runs.stream('0-0', planned_pairs=2)
        good = parse('stream', (
            DATA / 'native_np1/stream_2M.out').read_bytes())
        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            terminal = progress.Terminal('/data')
            for due in schedule.list_missing(run):
                terminal.sample_started(run, due, due.position + 1, total)
                sample = record.Sample(due.side, due.pair, due.position, good,
                                       warm_up=due.warm_up, elapsed_s=60.0)
                terminal.sample_finished(sample)
                run = dataclasses.replace(run, samples=(*run.samples, sample))
        return err.getvalue().splitlines()

    def test_the_remaining_time_is_shown_with_each_sample(self):
        lines = self.lines(6)
        self.assertEqual(
            [f'about {minutes} min left' for minutes in (5, 4, 3, 2)],
            [line.split('  ')[-1] for line in lines[:4]])
        self.assertNotIn('left', lines[-1])

    def test_the_time_of_benchmarks_that_follow_is_not_known(self):
        lines = self.lines(18)
        self.assertIn('  6/18  ', lines[-1])
        self.assertTrue(lines[0].endswith('about 5 min left for stream'))

    def test_what_changed_since_an_unfinished_result_is_told(self):
        class Entry:
            id = 'e1'
        for count, end in ((2, 'kept: c0; c1'),
                           (7, 'kept: c0; c1; c2; c3; c4; 2 more')):
            err = io.StringIO()
            with contextlib.redirect_stderr(err):
                progress.Terminal('/data').not_continued(
                    Entry(), [f'c{number}' for number in range(count)])
            self.assertEqual('result e1 is not continued, its samples are '
                             f'{end}\n', err.getvalue())
