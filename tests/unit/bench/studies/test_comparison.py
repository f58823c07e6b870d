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
import math
import random
import statistics
import xml.etree.ElementTree

import testtools

from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.report import page
from hpcvirt.bench.report import study
from hpcvirt.bench.report import text
from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import comparison
from hpcvirt.bench.studies import preconditions
from tests.unit.bench import runs

UP, DOWN = runs.UP, runs.DOWN
#: Noise that leaves the mean of the logarithms as it is.
NOISE = (0.99, 1 / 0.99, 1.0, 0.98, 1 / 0.98)


def figures(metrics, direction, unit):
    return outcome.Outcome(True, None, {
        name: outcome.Metric(value, unit, direction)
        for name, value in metrics.items()}, {'class': 'C'})


def measured(native, guest, metric='mops_total', direction=UP, unit='Mop/s',
             study='S2', case='numa-socket', **more):
    """A run whose geometric means are the two figures."""
    return runs.run(
        [figures({metric: native}, direction, unit)] * len(NOISE),
        [figures({metric: guest * noise}, direction, unit)
         for noise in NOISE],
        metric=metric, study=study, case=case, **more)


def compared(study, given):
    made = study_catalogue.get(study)
    return made, comparison.compare(made, given)


def found(given, study, row_id):
    _, every = compared(study, given)
    return next(one for one in every if one.row and one.row.id == row_id)


class TestConditions(testtools.TestCase):
    """What the machines tell of themselves, and what the case wants."""

    def told(self, study, case, native, guest=None):
        run = measured(1, 1, study=study, case=case)
        facts = {record.Arm.NATIVE: native, record.Arm.GUEST: guest or {}}
        run = dataclasses.replace(run, samples=tuple(
            dataclasses.replace(sample, environment=facts[sample.arm])
            for sample in run.samples))
        return preconditions.unmet(run), run

    def test_a_host_as_it_should_be_is_not_spoken_of(self):
        for case, native in (
                ('small-on', {'kvm.ept': 'Y', 'cpu.smt': '0',
                              'pages.thp': 'always madvise [never]'}),
                ('large-off', {'kvm.npt': '0', 'cpu.smt': '0',
                               'pages.thp': '[always] madvise never'}),
                ('large-off', {}), ('large-off', {'cpu.smt': 'x'})):
            self.assertEqual((), self.told('S1', case, native)[0])
        self.assertEqual((), self.told('S5', 'sriov', {'cpu.smt': '1'})[0])

    def test_what_is_otherwise_is_said_once(self):
        clauses, run = self.told(
            'S1', 'large-off',
            {'kvm.ept@a': 'N', 'kvm.ept@b': 'Y', 'cpu.smt': '1',
             'pages.thp': 'always [madvise] never'},
            {'kvm.ept': 'Y', 'cpu.smt': '1',
             'pages.thp': 'always madvise [never]'})
        self.assertEqual(
            {'nested paging was on', 'SMT was on',
             'transparent huge pages were "madvise" in the native arm',
             'transparent huge pages were "never" in the guest arm'},
            set(clauses))
        self.assertEqual(4, len(clauses))
        result = record.Result((run,))
        self.assertIn('not as S1/large-off wants it: nested paging was on',
                      text.table(result))

    def test_a_case_of_another_version_does_not_stop_the_report(self):
        for name, case in (('S1', 'gone'), ('S9', 'large-off')):
            _, run = self.told('S1', 'large-off', {'cpu.smt': '1'})
            run = dataclasses.replace(run, study=name, case=case)
            self.assertEqual((), preconditions.unmet(run))
            self.assertIn('mops_total', text.table(
                record.Result((run,))))

    def test_it_stands_in_the_table_of_the_study(self):
        run = TestSingle.hpcc(0.04, 0.038)
        facts = {'cpu.smt': '1'}
        run = dataclasses.replace(run, samples=tuple(
            dataclasses.replace(sample, environment=facts)
            for sample in run.samples))
        one = found([run], 'S1', 'hpl-small-on')
        self.assertEqual(('SMT was on',), one.own[0].unmet)
        page = study.studies([record.Result((run,))])
        whys = [own['why'] for row in page[0]['rows'] for own in row['own']]
        self.assertIn('SMT was on', whys)


class TestSingle(testtools.TestCase):
    @staticmethod
    def hpcc(native, guest, **more):
        return measured(native, guest, 'HPL_Tflops', UP, 'Tflop/s',
                        study='S1', case='small-on', benchmark='hpcc',
                        launch=None, **more)

    def test_a_figure_stands_beside_the_published_one_in_its_unit(self):
        one = found([self.hpcc(0.04, 0.038)], 'S1', 'hpl-small-on')
        own, = one.own
        self.assertEqual(('n17', 'Gflop/s', 5, False), (
            own.host, own.unit, own.pairs, own.stand_in))
        self.assertAlmostEqual(40, own.native)
        self.assertAlmostEqual(38, own.guest)
        self.assertAlmostEqual(0.95, own.interval.ratio)
        self.assertLess(own.interval.low, 0.95)
        self.assertEqual((), own.parts)

    def test_other_cases_studies_and_native_pairs_do_not_count(self):
        given = [self.hpcc(1, 1, purpose=record.Purpose.AA)]
        for change in ({'study': 'S4'}, {'case': 'large-on'},
                       {'study': None, 'case': None}):
            more = {'study': 'S1', 'case': 'small-on', **change}
            given.append(measured(1, 1, 'HPL_Tflops', UP, 'Tflop/s',
                                  benchmark='hpcc', **more))
        self.assertEqual((), found(given, 'S1', 'hpl-small-on').own)

    def test_the_newest_run_that_has_a_ratio_counts_on_each_host(self):
        given = [self.hpcc(1, 0.9, started_at='2026-01-02'),
                 self.hpcc(1, 0.8, started_at='2026-01-01'),
                 self.hpcc(1, 0.7, started_at='2026-01-03',
                           planned_pairs=10)]
        own, = found(given, 'S1', 'hpl-small-on').own
        self.assertAlmostEqual(0.9, own.interval.ratio)
        own, = found(given[2:], 'S1', 'hpl-small-on').own
        self.assertIsNone(own.interval)
        self.assertIn('5 of the 10 planned pairs', own.reason)

    def test_a_run_that_failed_its_check_says_why(self):
        run = runs.run([runs.bad('no residual')] * 5, [1.0] * 5,
                       benchmark='hpcc', study='S1', case='small-on')
        own, = found([run], 'S1', 'hpl-small-on').own
        self.assertIsNone(own.interval)
        self.assertIn('no residual', own.reason)

    def test_unpaired_is_said(self):
        own, = found([self.hpcc(1, 0.9, purpose=record.Purpose.UNPAIRED)],
                     'S1', 'hpl-small-on').own
        self.assertEqual('unpaired', own.reason)

    def test_a_stand_in_is_turned_to_the_published_direction(self):
        # A rate that falls to 4/5 is a time that grows to 5/4.
        run = measured(10, 8, 'timesteps_per_s', UP, '1/s', study='S3',
                       case='off-1vm-8', benchmark='lammps')
        own, = found([run], 'S3', 'off-1vm-8').own
        self.assertTrue(own.stand_in)
        self.assertEqual((1.25, '1/s'), (
            round(own.interval.ratio, 6), own.unit))
        made, = verdict.describe(run)
        self.assertAlmostEqual(1 / made.interval.high, own.interval.low)
        self.assertAlmostEqual(1 / made.interval.low, own.interval.high)
        self.assertAlmostEqual(10, own.native)

    def test_a_benchmark_that_the_case_does_not_name_is_passed_over(self):
        run = measured(10, 8, 'triad_mb_s', study='S3', case='off-1vm-8',
                       benchmark='stream')
        self.assertEqual((), found([run], 'S3', 'off-1vm-8').own)


class TestAverage(testtools.TestCase):
    def kernels(self, ratios, **more):
        more = {'launch': record.Launch.WARM, **more}
        return [measured(100, 100 / slowdown, benchmark=name, id=name, **more)
                for name, slowdown in ratios.items()]

    def test_slowdowns_are_averaged_as_the_study_does(self):
        # Times that grow by 10, 20 and 60 per cent: 30 on average.
        given = self.kernels({'npb-ep': 1.1, 'npb-cg': 1.2, 'npb-ft': 1.6})
        own, = found(given, 'S2', 'numa-socket').own
        self.assertAlmostEqual(1.3, own.interval.ratio)
        self.assertEqual('3 of 8 benchmarks', own.reason)
        self.assertEqual(['npb-cg mpi', 'npb-ep mpi', 'npb-ft mpi'],
                         [part.name for part in own.parts])
        self.assertIsNone(own.native)

    def test_its_interval_covers_the_mean_as_often_as_it_says(self):
        dice = random.Random(7)
        truth = {'npb-ep': 1.05, 'npb-cg': 1.2, 'npb-ft': 1.5, 'npb-is': 1.1}
        mean = statistics.fmean(truth.values())
        below = above = 0
        trials = 400
        for _ in range(trials):
            given = []
            for name, slowdown in truth.items():
                guest = [figures({'mops_total': 100 / slowdown * math.exp(
                    dice.gauss(0, 0.05))}, UP, 'Mop/s') for _ in range(8)]
                given.append(runs.run(
                    [figures({'mops_total': 100}, UP, 'Mop/s')] * 8, guest,
                    benchmark=name, study='S2', case='numa-socket',
                    launch=record.Launch.WARM))
            own, = found(given, 'S2', 'numa-socket').own
            below += own.interval.high < mean
            above += own.interval.low > mean
        # Each end fails 5 % of the time: 20 of 400, 4.4 either way.
        self.assertLess(below, 37)
        self.assertLess(above, 37)
        self.assertGreater(below + above, 12)

    def test_cold_and_warm_are_different_questions(self):
        given = self.kernels({'npb-ep': 1.4}, case='numa-host-warm')
        given += self.kernels({'npb-ep': 1.1}, case='numa-host-cold',
                              launch=record.Launch.COLD)
        for row, ratio in (('numa-host-warm', 1.4), ('numa-host-cold', 1.1)):
            own, = found(given, 'S2', row).own
            self.assertAlmostEqual(ratio, own.interval.ratio)
        wrong = self.kernels({'npb-ep': 1.1}, case='numa-host-cold')
        self.assertEqual((), found(wrong, 'S2', 'numa-host-cold').own)

    def test_hosts_are_averaged_apart(self):
        given = self.kernels({'npb-ep': 1.1}) + [
            dataclasses.replace(run, host='n18') for run in self.kernels(
                {'npb-ep': 1.3, 'npb-cg': 1.1})]
        one, two = found(given, 'S2', 'numa-socket').own
        self.assertEqual(('n17', 'n18'), (one.host, two.host))
        self.assertAlmostEqual(1.2, two.interval.ratio)


class TestCurves(testtools.TestCase):
    SIZES = (1, 64, 128, 4096)
    SLOWDOWNS = (1.4, 1.2, 1.1, 1.0)

    def osu(self, case='sriov', benchmark='osu-latency'):
        def taken(factor):
            return figures({
                f'latency_us[{size}]': factor * (
                    slowdown if factor != 1 else 1.0)
                for size, slowdown in zip(self.SIZES, self.SLOWDOWNS,
                                          strict=True)}, DOWN, 'us')
        return runs.run([taken(1)] * 5, [taken(noise + 1e-9)
                                         for noise in NOISE],
                        metric='latency_us[1]', direction=DOWN, study='S5',
                        case=case, benchmark=benchmark)

    def test_each_row_has_the_sizes_that_it_speaks_of(self):
        small, = found([self.osu()], 'S5', 'latency-small').own
        large, = found([self.osu()], 'S5', 'latency-large').own
        self.assertEqual([1, 64], [part.size_bytes for part in small.parts])
        self.assertEqual([128, 4096],
                         [part.size_bytes for part in large.parts])
        self.assertAlmostEqual(1.3, small.interval.ratio, 6)
        self.assertAlmostEqual(1.05, large.interval.ratio, 6)
        # All sizes err together: the mean is known no better than they are.
        one = small.parts[0].interval
        self.assertAlmostEqual(
            math.log(one.high / one.ratio),
            math.log(small.interval.high / small.interval.ratio), 6)

    def test_a_case_without_published_figures_shows_ours(self):
        _, every = compared('S5', [self.osu('passthrough')])
        one = next(one for one in every if one.case.id == 'passthrough')
        self.assertIsNone(one.row)
        self.assertEqual(list(self.SIZES),
                         [part.size_bytes for part in one.own[0].parts])

    def test_the_page_has_a_curve_with_the_published_line(self):
        made = study.studies([record.Result((self.osu(),))])
        self.assertEqual(['S5'], [study['id'] for study in made])
        row = next(row for row in made[0]['rows']
                   if row['title'] == 'MPI latency below 128 bytes')
        drawn = xml.etree.ElementTree.fromstring(  # noqa: S314 - our own
            row['own'][0]['curve'])
        self.assertEqual(2, len(drawn.findall('circle')))
        line, = [line for line in drawn.findall('line')
                 if line.get('class') == 'published']
        self.assertEqual(line.get('y1'), line.get('y2'))
        # Ours are 1.4 and 1.2; 1.3 lies between, and up is more.
        high, low = (float(dot.get('cy')) for dot in drawn.findall('circle'))
        self.assertLess(high, float(line.get('y1')))
        self.assertLess(float(line.get('y1')), low)

    def test_the_page_shows_what_is_not_yet_run(self):
        shown = page.page([page.Shown(
            record.Result((self.osu(),)), '2026-01-01T00:00', True)], 'x')
        self.assertIn('S5: SR-IOV against virtio', shown)
        self.assertIn('not yet run', shown)
        self.assertIn('latency_us[4096]', shown)
        self.assertNotIn('S4: Guests', shown)


class TestRows(testtools.TestCase):
    def test_every_published_row_is_there_with_nothing_run(self):
        for made in study_catalogue.every():
            every = comparison.compare(made, [])
            self.assertEqual(made.rows, tuple(
                one.row for one in every if one.row))
            self.assertEqual(
                {case.id for case in made.cases},
                {one.case.id for one in every})
            self.assertFalse([one for one in every if one.own])

    def test_every_row_can_be_filled_by_the_benchmarks_of_its_case(self):
        for made in study_catalogue.every():
            for row in made.rows:
                case = made.case(row.case)
                launch = record.Launch(case.launch) if case.launch else None
                given = [measured(
                    1, 1, row.metric, row.direction, row.unit, study=made.id,
                    case=case.id, benchmark=use.benchmark, launch=launch)
                    for use in case.uses]
                self.assertTrue(found(given, made.id, row.id).own, row.id)
