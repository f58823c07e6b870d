# SPDX-License-Identifier: Apache-2.0

import dataclasses
import math
import random
import statistics
import xml.etree.ElementTree

import testtools

from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import record
from hpcvirt.bench.report import page
from hpcvirt.bench.report import study
from hpcvirt.bench.report import study_text
from hpcvirt.bench.report import summary
from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import comparison
from tests.builders import runs
from tests.builders import study_runs

UP, DOWN = runs.UP, runs.DOWN
NOISE = study_runs.NOISE
compared = study_runs.compared
figures = runs.figures
hpcc = study_runs.hpcc
measured = study_runs.measured
of_row = study_runs.of_row


class TestSingle(testtools.TestCase):
    def test_a_figure_is_converted_to_the_published_unit(self):
        one = of_row([hpcc(0.04, 0.038)], 'S1', 'hpl-small-on')
        result, = one.results
        self.assertEqual(('n17', 'Gflop/s', 5, False), (
            result.host, result.unit, result.pairs, result.stand_in))
        self.assertAlmostEqual(40, result.native)
        self.assertAlmostEqual(38, result.guest)
        self.assertAlmostEqual(0.95, result.interval.ratio)
        self.assertLess(result.interval.low, 0.95)
        self.assertEqual((), result.components)

    def test_other_cases_studies_and_native_pairs_do_not_count(self):
        given = [hpcc(1, 1, purpose=record.Purpose.AA)]
        for change in ({'study': 'S4'}, {'case': 'large-on'},
                       {'study': None, 'case': None}):
            more = {'study': 'S1', 'case': 'small-on', **change}
            given.append(measured(1, 1, 'HPL_Tflops', UP, 'Tflop/s',
                                  benchmark='hpcc', **more))
        self.assertEqual((), of_row(given, 'S1', 'hpl-small-on').results)

    def test_the_newest_run_that_has_a_ratio_counts_on_each_host(self):
        given = [hpcc(1, 0.9, started_at='2026-01-02'),
                 hpcc(1, 0.8, started_at='2026-01-01'),
                 hpcc(1, 0.7, started_at='2026-01-03', planned_pairs=10)]
        result, = of_row(given, 'S1', 'hpl-small-on').results
        self.assertAlmostEqual(0.9, result.interval.ratio)
        result, = of_row(given[2:], 'S1', 'hpl-small-on').results
        self.assertIsNone(result.interval)
        self.assertIn('5 of the 10 planned pairs', result.reason)

    def test_a_run_that_failed_its_check_says_why(self):
        run = runs.run([runs.bad('no residual')] * 5, [1.0] * 5,
                       benchmark='hpcc', study='S1', case='small-on')
        result, = of_row([run], 'S1', 'hpl-small-on').results
        self.assertIsNone(result.interval)
        self.assertIn('no residual', result.reason)

    def test_an_unpaired_run_is_marked(self):
        result, = of_row([hpcc(1, 0.9, purpose=record.Purpose.UNPAIRED)],
                         'S1', 'hpl-small-on').results
        self.assertEqual('unpaired', result.reason)

    def test_a_stand_in_s_ratio_has_the_published_direction(self):
        # A rate that falls to 4/5 is a time that grows to 5/4.
        run = measured(10, 8, 'timesteps_per_s', UP, '1/s', study='S3',
                       case='off-1vm-8', benchmark='lammps')
        result, = of_row([run], 'S3', 'off-1vm-8').results
        self.assertTrue(result.stand_in)
        self.assertEqual((1.25, '1/s'), (
            round(result.interval.ratio, 6), result.unit))
        judged, = verdict.describe(run)
        self.assertAlmostEqual(1 / judged.interval.high, result.interval.low)
        self.assertAlmostEqual(1 / judged.interval.low, result.interval.high)
        self.assertAlmostEqual(10, result.native)

    def test_a_benchmark_that_the_case_does_not_name_is_ignored(self):
        run = measured(10, 8, 'triad_mb_s', study='S3', case='off-1vm-8',
                       benchmark='stream')
        self.assertEqual((), of_row([run], 'S3', 'off-1vm-8').results)


class TestAverage(testtools.TestCase):
    def kernels(self, ratios, **more):
        more = {'launch': record.Launch.WARM, **more}
        return [measured(100, 100 / slowdown, benchmark=name, id=name, **more)
                for name, slowdown in ratios.items()]

    def test_slowdowns_are_averaged_as_the_study_does(self):
        # Times that grow by 10, 20 and 60 per cent: 30 on average.
        given = self.kernels({'npb-ep': 1.1, 'npb-cg': 1.2, 'npb-ft': 1.6})
        result, = of_row(given, 'S2', 'numa-socket').results
        self.assertAlmostEqual(1.3, result.interval.ratio)
        self.assertEqual('3 of 8 benchmarks', result.reason)
        self.assertEqual(['npb-cg mpi', 'npb-ep mpi', 'npb-ft mpi'],
                         [each.name for each in result.components])
        self.assertIsNone(result.native)

    def test_periodic_the_interval_of_the_mean_has_its_nominal_coverage(self):
        dice = random.Random(7)
        truth = {'npb-ep': 1.05, 'npb-cg': 1.2, 'npb-ft': 1.5, 'npb-is': 1.1}
        mean = statistics.fmean(truth.values())
        below = above = 0
        trials = 400
        for _ in range(trials):
            given = []
            for name, slowdown in truth.items():
                native, guest = ([figures({'mops_total': rate * math.exp(
                    dice.gauss(0, 0.035))}) for _ in range(8)]
                    for rate in (100, 100 / slowdown))
                given.append(runs.run(
                    native, guest, benchmark=name, study='S2',
                    case='numa-socket', launch=record.Launch.WARM))
            result, = of_row(given, 'S2', 'numa-socket').results
            below += result.interval.high < mean
            above += result.interval.low > mean
        # Each end fails 5 % of the time: 20 of 400, 4.4 either way.
        self.assertLess(below, 37)
        self.assertLess(above, 37)
        self.assertGreater(below + above, 12)

    def test_cold_and_warm_runs_are_kept_apart(self):
        given = self.kernels({'npb-ep': 1.4}, case='numa-host-warm')
        given += self.kernels({'npb-ep': 1.1}, case='numa-host-cold',
                              launch=record.Launch.COLD)
        for row, ratio in (('numa-host-warm', 1.4), ('numa-host-cold', 1.1)):
            result, = of_row(given, 'S2', row).results
            self.assertAlmostEqual(ratio, result.interval.ratio)
        wrong = self.kernels({'npb-ep': 1.1}, case='numa-host-cold')
        self.assertEqual((), of_row(wrong, 'S2', 'numa-host-cold').results)

    def test_hosts_are_averaged_separately(self):
        given = self.kernels({'npb-ep': 1.1}) + [
            dataclasses.replace(run, host='n18') for run in self.kernels(
                {'npb-ep': 1.3, 'npb-cg': 1.1})]
        one, two = of_row(given, 'S2', 'numa-socket').results
        self.assertEqual(('n17', 'n18'), (one.host, two.host))
        self.assertAlmostEqual(1.2, two.interval.ratio)


class TestCurves(testtools.TestCase):
    #: The study says nothing of exactly 128 bytes.
    SIZES = (1, 64, 128, 129, 4096)
    SLOWDOWNS = (1.4, 1.2, 9.0, 1.1, 1.0)

    def osu(self, case='sriov', benchmark='osu-latency'):
        def taken(factor):
            return figures({
                f'latency_us[{size}]': factor * (
                    slowdown if factor != 1 else 1.0)
                for size, slowdown in zip(self.SIZES, self.SLOWDOWNS,
                                          strict=True)}, 'us', DOWN)
        return runs.run([taken(1)] * 5, [taken(noise + 1e-9)
                                         for noise in NOISE],
                        metric='latency_us[1]', direction=DOWN, study='S5',
                        case=case, benchmark=benchmark)

    def test_each_row_has_the_message_sizes_of_its_range(self):
        small, = of_row([self.osu()], 'S5', 'latency-small').results
        large, = of_row([self.osu()], 'S5', 'latency-large').results
        self.assertEqual([1, 64],
                         [each.size_bytes for each in small.components])
        self.assertEqual([129, 4096],
                         [each.size_bytes for each in large.components])
        self.assertAlmostEqual(1.3, small.interval.ratio, 6)
        self.assertAlmostEqual(1.05, large.interval.ratio, 6)
        # All sizes err together: the mean is known no better than they are.
        one = small.components[0].interval
        self.assertAlmostEqual(
            math.log(one.high / one.ratio),
            math.log(small.interval.high / small.interval.ratio), 6)

    def test_the_share_of_the_link_is_computed_from_its_rate(self):
        sizes = {f'bandwidth_mb_s[{size}]': rate for size, rate in (
            (1, 3.0), (65536, 3700.0), (4194304, 3800.0))}
        taken = [figures({name: rate * noise for name, rate in sizes.items()},
                         'MB/s', UP) for noise in NOISE]
        run = runs.run([figures(sizes, 'MB/s', UP)] * 5, taken,
                       metric='bandwidth_mb_s[1]', direction=UP, study='S5',
                       case='sriov', benchmark='osu-bandwidth')
        rates = {'link.mlx5_0@a': '40 Gb/sec (4X QDR)', 'link.eno1': '1000',
                 'link.eno2': '-1'}
        linked = dataclasses.replace(run, samples=tuple(
            dataclasses.replace(sample, environment=rates)
            for sample in run.samples))
        self.assertIsNone(
            of_row([run], 'S5', 'bandwidth').results[0].link_share)
        row = of_row([linked], 'S5', 'bandwidth')
        self.assertAlmostEqual(0.95, row.results[0].link_share, 2)
        shown = study_text.describe_comparison(row)['results'][0]
        self.assertEqual('95 % of the fastest link',
                         shown['why'].partition('; ')[0])
        latency, = of_row([self.osu()], 'S5', 'latency-small').results
        self.assertIsNone(latency.link_share)

    def test_a_case_without_published_figures_shows_the_site_s(self):
        _, every = compared('S5', [self.osu('passthrough')])
        one = next(one for one in every if one.case.id == 'passthrough')
        self.assertIsNone(one.row)
        self.assertEqual(list(self.SIZES),
                         [each.size_bytes
                          for each in one.results[0].components])

    def test_the_page_has_a_curve_with_the_published_line(self):
        sections = study.studies([record.Result((self.osu(),))])
        self.assertEqual(['S5'], [study['id'] for study in sections])
        row = next(row for row in sections[0]['rows']
                   if row['title'] == 'MPI latency below 128 bytes')
        drawn = xml.etree.ElementTree.fromstring(  # noqa: S314 - our result
            row['results'][0]['curve'])
        # Those of the guest are above, those of the ratio below.
        dots = [float(dot.get('cy')) for dot in drawn.findall('circle')
                if dot.get('r') == '2']
        self.assertEqual(4, len(dots))
        line = [line.get('points').split()
                for line in drawn.findall('polyline')
                if line.get('class') == 'dots'][-1]
        start, end = (float(point.split(',')[1]) for point in line)
        self.assertEqual(start, end)
        # Ours are 1.4 and 1.2; 1.3 lies between, and up is more.
        self.assertLess(dots[2], start)
        self.assertLess(start, dots[3])

    def test_the_page_shows_what_is_not_yet_run(self):
        shown = page.page([summary.Shown(
            'r', record.Result((self.osu(),)), '2026-01-01T00:00', True)], 'x')
        self.assertIn('S5: SR-IOV against virtio', shown)
        self.assertIn('not yet run', shown)
        self.assertIn('latency_us[4096]', shown)
        self.assertNotIn('S4: Guests', shown)


class TestRows(testtools.TestCase):
    def test_every_published_row_is_listed_if_nothing_was_run(self):
        for study_ in study_catalogue.studies():
            every = comparison.compare(study_, [])
            self.assertEqual(study_.rows, tuple(
                one.row for one in every if one.row))
            self.assertEqual(
                {case.id for case in study_.cases},
                {one.case.id for one in every})
            self.assertFalse([one for one in every if one.results])

    def test_the_benchmarks_of_a_case_give_results_for_its_rows(self):
        for study_ in study_catalogue.studies():
            for row in study_.rows:
                case = study_.case(row.case)
                launch = record.Launch(case.launch) if case.launch else None
                given = [measured(
                    1, 1, row.metric, row.direction, row.unit, study=study_.id,
                    case=case.id, benchmark=use.benchmark, launch=launch)
                    for use in case.benchmarks]
                comparison_ = of_row(given, study_.id, row.id)
                self.assertTrue(comparison_.results, row.id)
