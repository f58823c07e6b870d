# SPDX-License-Identifier: Apache-2.0

import dataclasses
import math
import random
import re
import unittest
import xml.etree.ElementTree

import testtools

from hpcvirt.bench.analysis import stats
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.report import curves
from hpcvirt.bench.report import next_step
from hpcvirt.bench.report import page
from hpcvirt.bench.report import prospects
from hpcvirt.bench.report import summary
from hpcvirt.bench.report import text
from hpcvirt.bench.run import plan
from tests import pages
from tests.builders import runs
from tests.builders import study_runs
from tests.builders import shown_results

#: A guest that is 10 % above native, and 30 % below a published ratio.
SIZES = (1, 4, 64, 4096, 4194304)
POINTS = [curves.Point(
    size, 2.0 * size, 2.2 * size, judgement.Interval(1.1, 1.05, 1.15),
    1.3 if size < 128 else None, 1.3 if size < 128 else 1.2)
    for size in SIZES]


def drawn(points):
    return xml.etree.ElementTree.fromstring(  # noqa: S314 - our result
        str(curves.draw(points, 'MB/s')))


def lines(drawing, kind):
    return [[tuple(map(float, point.split(',')))
             for point in line.get('points').split()]
            for line in drawing.iter('polyline')
            if line.get('class') == kind]


class TestCurve(testtools.TestCase):
    """A curve over message sizes, measured in its drawing."""

    def test_both_axes_are_logarithmic(self):
        native, = lines(drawn(POINTS), 'native')
        first, last = native[0], native[-1]
        for (x, y), size in zip(native, SIZES, strict=True):
            part = math.log(size) / math.log(SIZES[-1])
            self.assertAlmostEqual(
                first[0] + part * (last[0] - first[0]), x, delta=0.1)
            self.assertAlmostEqual(
                first[1] + part * (last[1] - first[1]), y, delta=0.2)

    def test_guest_and_published_are_above_native(self):
        drawing = drawn(POINTS)
        native, = lines(drawing, 'native')
        guest = lines(drawing, 'path')[0]
        published = lines(drawing, 'dots')[0]
        self.assertEqual(3, len(published))
        for number, place in enumerate(published):
            self.assertLess(place[1], guest[number][1])
            self.assertLess(guest[number][1], native[number][1])

    def test_a_bound_that_changes_is_a_step(self):
        bounds = lines(drawn(POINTS), 'bound')
        self.assertEqual([3, 2], [len(line) for line in bounds])
        for line in bounds:
            self.assertEqual(1, len({y for _, y in line}))
        self.assertLess(bounds[0][0][1], bounds[1][0][1])

    def test_a_gap_is_not_bridged(self):
        points = list(POINTS)
        points[2] = curves.Point(64, None, None)
        self.assertEqual([2, 2], [len(line) for line in lines(
            drawn(points), 'native')])

    def test_figures_of_a_guest_alone_have_no_ratio(self):
        def height(points):
            return float(drawn(points).get('viewBox').split()[3])

        alone = [curves.Point(size, None, 2.0 * size) for size in SIZES]
        self.assertLess(height(alone), height(POINTS) - 100)
        lowest = max(y for line in lines(drawn(alone), 'path')
                     for _, y in line)
        self.assertLess(height(alone), lowest + 40)

    def test_all_is_inside(self):
        for scale in (1e-9, 1, 1e12):
            drawing = drawn([curves.Point(size, scale, scale * 1000 ** number)
                             for number, size in enumerate((1, 2, 3))])
            _, _, width, height = map(float, drawing.get('viewBox').split())
            for kind in ('native', 'path'):
                for line in lines(drawing, kind):
                    for x, y in line:
                        self.assertTrue(0 <= x <= width and 0 <= y <= height)

    def test_names_are_escaped(self):
        drawing = curves.draw(POINTS, '<b>"&')
        self.assertNotIn('<b>', drawing)
        self.assertIn('&lt;b&gt;', drawing)

    def test_sizes_are_written_with_a_unit(self):
        self.assertEqual(
            ['1 B', '1000 B', '1 KiB', '1025 B', '64 KiB', '4 MiB', '2 GiB'],
            [curves.size_text(size) for size in (
                1, 1000, 1024, 1025, 65536, 2 ** 22, 2 ** 31)])


#: Ten values that vary by about 1 %.
NATIVE = (100, 101, 99, 100.5, 99.5, 100.2, 99.8, 101.2, 98.8, 100.1)
WOBBLE = (1, 1.004, 0.996, 1.002, 0.998)


def guest(ratio):
    return [value * ratio * WOBBLE[number % 5]
            for number, value in enumerate(NATIVE)]


def steps(*some):
    return next_step.find_steps(record.Result(some, verdict.judge(some)))


class TestNextStep(testtools.TestCase):
    """The next step for each kind of figure that is not decided."""

    def only(self, *some):
        (step, figures), = steps(*some).items()
        self.assertEqual(['mops_total'], [figure.metric for figure in figures])
        return step

    def test_a_decision_needs_none(self):
        for ratio in (0.98, 0.90):
            self.assertEqual({}, steps(runs.run(NATIVE, guest(ratio))))
        self.assertEqual({}, next_step.find_steps(record.Result(())))

    def test_an_open_interval_needs_more_pairs(self):
        self.assertRegex(
            self.only(runs.run(NATIVE, guest(0.958))),
            r'^More pairs: about \d+ decide .*"hpcvirt bench run npb-cg/mpi '
            r'--where TARGET --native TARGET --until-decided --pairs \d+"')
        step, = steps(runs.run(NATIVE, guest(0.958), study='S2',
                               case='numa-socket'))
        self.assertIn('bench run --study S2/numa-socket --where', step)
        self.assertNotIn('--until-decided', step)

    def test_a_known_subject_needs_pairs_besides_those_it_has(self):
        self.assertRegex(self.only(runs.run(
            NATIVE, guest(0.958), subject='s',
            targets=('ssh://node7', 'server:a b'))),
            r"about (\d+) more decide .* --where 'server:a b' --native "
            r'ssh://node7 --until-decided --pairs \1", .* adds them')

    def test_a_guest_that_was_judged_as_it_runs_is_judged_so_again(self):
        self.assertIn('--native TARGET --this-launch --until-decided',
                      self.only(runs.run(NATIVE, guest(0.958),
                                         of_launch=True)))

    def test_a_guest_at_its_bound_needs_less_noise(self):
        step = self.only(runs.run(NATIVE, guest(0.95)))
        self.assertIn('Less noise', step)

    def test_a_better_guest_with_noise_needs_less_of_it(self):
        noise = (-3, -1, 0.2, 0.9, 3, -2.5, 2.7, -0.4, 1.2, 0.1)
        step = self.only(runs.run(
            NATIVE, [1.03 * value * math.exp(each)
                     for value, each in zip(NATIVE, noise, strict=True)],
            0.847))
        self.assertIn('200 pairs would hardly decide with this noise', step)

    def test_a_guest_as_a_study_measured_it_needs_a_margin(self):
        run = runs.run(NATIVE, guest(0.95))
        for kind, word in ((judgement.BoundKind.MEASURED, 'A margin'),
                           (judgement.BoundKind.EXPECTED, 'Less noise')):
            self.assertIn(word, self.only(dataclasses.replace(run, bounds={
                metric: judgement.Bound(0.95, kind=kind)
                for metric in run.bounds})))

    def test_much_noise_far_from_the_ratio_of_a_study_is_noise(self):
        noisy = [60, 140, 90, 170, 80, 130, 75, 110, 190, 100]
        step = self.only(dataclasses.replace(
            runs.run(NATIVE, noisy), bounds={'mops_total': judgement.Bound(
                1.02, kind=judgement.BoundKind.MEASURED)}))
        self.assertIn('Less noise', step)

    def test_a_straggler_needs_a_cause_and_not_less_noise(self):
        run = runs.run(NATIVE, guest(0.95))
        found = verdict.judge([run])
        (judged,) = found.judgements
        judged = dataclasses.replace(judged, tail=judgement.Tail(
            judgement.VerdictResult.INCONCLUSIVE, 0, 1, 0.5))
        (step,) = next_step.find_steps(record.Result(
            (run,), dataclasses.replace(found, judgements=(judged,))))
        self.assertIn('The slow runs: find out what made 1 run of the guest',
                      step)

    def test_too_few_pairs_are_too_few(self):
        self.assertIn('--pairs 10', self.only(
            runs.run(NATIVE[:3], guest(1)[:3])))
        self.assertIn('continues', self.only(
            runs.run(NATIVE[:8], guest(1)[:8], planned_pairs=10)))

    def test_one_launch_needs_more(self):
        run = runs.run(NATIVE, guest(0.98))
        run = dataclasses.replace(run, samples=tuple(
            dataclasses.replace(sample, launch_id='a')
            for sample in run.samples))
        self.assertIn('--where server:NAME', self.only(run))
        for more in ({'relaunched': True}, {'launch': record.Launch.COLD}):
            step, = steps(dataclasses.replace(run, **more))
            self.assertIn(
                '--pairs 10", with the same settings as before, adds', step)

    def test_a_coarse_clock_needs_longer_runs(self):
        ticks = [0.20, 0.21] * 5
        self.assertIn('--set class=...', self.only(runs.run(
            ticks, [0.21, 0.20, 0.20, 0.21, 0.22] * 2, 1.05,
            direction=runs.DOWN)))

    def test_a_noisy_machine_needs_quiet(self):
        noisy = [100, 140, 70, 120, 80, 130, 75, 110, 90, 100]
        machine = runs.run(noisy, noisy[::-1], id='m',
                           purpose=record.Purpose.AA)
        for some in ((runs.run(NATIVE, guest(0.98)), machine),
                     (machine, runs.run(NATIVE, guest(0.98)))):
            self.assertIn('quieter machine', self.only(*some))

    def test_an_implausible_gain_needs_a_baseline(self):
        self.assertIn('--native-cpus', self.only(runs.run(NATIVE, guest(1.5))))

    def test_a_failed_sample_is_looked_at(self):
        run = runs.run(NATIVE, [*guest(1)[:9], runs.bad()])
        self.assertIn('the outputs of run r,', self.only(run))
        raw = record.RawOutput('stdout', 'r/0019/stdout', '', 1)
        run = dataclasses.replace(run, samples=tuple(
            dataclasses.replace(sample, outputs=(raw,))
            for sample in run.samples))
        self.assertIn('look at r/0019,', self.only(run))

    def test_copies_are_measured_again(self):
        self.assertIn('Measure again', self.only(runs.run(NATIVE, NATIVE)))

    def test_every_undecided_word_has_one(self):
        for word in (judgement.VerdictResult.INCONCLUSIVE,
                     judgement.VerdictResult.INVALID):
            for remedy in judgement.Remedy:
                run = runs.run(NATIVE, guest(0.98))
                judged, = verdict.judge([run]).judgements
                result = record.Result((run,), judgement.Verdict(
                    word, '', (dataclasses.replace(
                        judged, result=word, remedy=remedy),), ''))
                self.assertEqual(1, len(next_step.find_steps(result)))

    def test_the_table_names_it(self):
        run = runs.run(NATIVE[:3], guest(1)[:3])
        self.assertIn(
            'Next, for npb-cg mpi mops_total: More pairs: "hpcvirt bench run '
            'npb-cg/mpi --where TARGET --native TARGET --pairs 10".',
            ' '.join(text.table(record.Result(
                (run,), verdict.judge([run]))).split()))


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


class TestProspects(testtools.TestCase):
    def describe(self, pairs=10, bound=0.97, **more):
        run = dataclasses.replace(runs.run([], [], **more), benchmark='stream',
                                  variant='openmp', planned_pairs=pairs,
                                  bounds={'triad_mb_s': judgement.Bound(
                                      bound)})
        return list(prospects.describe(plan.RunPlan((
            plan.PlannedRun({}, run),))))

    def test_it_says_which_guest_passes_with_which_noise(self):
        found = '\n'.join(self.describe())
        self.assertEqual("""\
plan stream openmp: 10 pairs, 1 figure, about 22 min if a job takes a minute
  triad_mb_s, bound 0.97: a guest passes in 4 of 5 cases
    if single runs vary by 1%: from 0.988
    if single runs vary by 3%: no guest with 10 pairs; a guest that equals \
native with 16, about 34 min if a job takes a minute
    if single runs vary by 10%: no guest with 10 pairs; a guest that equals \
native with 151, about 5 h 4 min if a job takes a minute""", found)
        page = pages.read('user/how-many-pairs')
        self.assertIn('a guest of at least 0.988 passes', page)
        self.assertIn('needs 16 pairs', page)
        self.assertIn('needs 151 pairs', page)

    def test_a_guest_as_slow_as_it_says_passes_4_times_of_5(self):
        dice = random.Random(1)
        passed = sum(verdict.judge([runs.run(
            *([100 * ratio * math.exp(dice.gauss(0, 0.01)) for _ in range(10)]
              for ratio in (1, 0.988)), 0.97)]).result
            is judgement.VerdictResult.PASS for _ in range(200))
        self.assertTrue(140 <= passed <= 180, passed)

    def test_too_few_boots_for_all_figures_ask_for_more_pairs(self):
        found = self.describe(relaunched=True, planned_figures=23)
        self.assertEqual(
            '  cannot decide: 23 figures that are judged together need 10 '
            'boots; give --pairs 13', found[1])
        self.assertIn('in 4 of 5 cases', self.describe(
            13, relaunched=True, planned_figures=23)[1])

    def test_a_guest_at_native_speed_may_be_required(self):
        self.assertIn('not even a guest that equals native, with 200 pairs',
                      self.describe(bound=1.0)[2])

    def test_a_machine_that_is_compared_with_itself_gets_no_word(self):
        self.assertEqual([], self.describe(purpose=record.Purpose.AA))


class TestSummary(testtools.TestCase):
    """The summary of several results on a terminal."""

    def lines(self, *some):
        return summary.lines(shown_results.shown(some))

    def test_verdicts_are_counted_and_sorted(self):
        lines = self.lines({'benchmark': 'npb-cg'}, {'benchmark': 'npb-ft'},
                           {'benchmark': 'npb-lu', 'pairs': 3},
                           {'benchmark': 'npb-bt', 'figures': {
                               'mops_total': (1, 0.5, 'Mop/s',
                                              shown_results.UP)}})
        self.assertEqual(['FAIL', 'INCONCLUSIVE', 'PASS', 'PASS'],
                         [line.word for line in lines])
        # The newest of equal ones is first.
        self.assertEqual(['npb-ft mpi', 'npb-cg mpi'], [
            line.subject.benchmarks for line in lines[2:]])
        self.assertEqual('4 results: 1 FAIL, 1 INCONCLUSIVE, 2 PASS',
                         summary.count(lines))

    def test_an_attempt_that_is_continued_is_last(self):
        first, second, other = shown_results.shown([
            {'benchmark': 'npb-lu', 'pairs': 3}, {'benchmark': 'npb-lu'},
            {'benchmark': 'npb-cg'}])
        run, before = second.result.runs[0], first.result.runs[0]
        result = verdict.judge_result(record.Result((dataclasses.replace(
            run, earlier=(record.Attempt(before.id, '', 3,
                                         before.samples),)),)))
        lines = summary.lines([
            first, dataclasses.replace(second, result=result), other])
        self.assertEqual([(), ('second attempt',), ('continued',)],
                         [line.states for line in lines])
        self.assertEqual('2 results: 2 PASS; 1 earlier attempt',
                         summary.count(lines))
        self.assertIn('0000000000000001, second attempt',
                      summary.table(lines, None))

    def test_the_best_of_several_hosts_has_more_chances(self):
        hosts = [{'benchmark': 'npb-cg', 'host': f'n{number}', 'pairs': pairs,
                  'figures': {'mops_total': (24000, 1.0, 'Mop/s',
                                             shown_results.UP)}}
                 for number, pairs in enumerate([5, *[12] * 13])]
        lines = self.lines(*hosts)
        self.assertEqual(14, sum(line.word == 'PASS' for line in lines))
        worst = next(line for line in lines if line.subject.hosts == 'n0')
        self.assertGreater(14 * worst.p_pass, stats.ALPHA)
        self.assertIn(
            'each of the 14 results is judged by itself; the best of as many '
            'guests that are exactly at their bounds passes in up to 51% of '
            'all cases; 13 of 14 PASS hold for the best of them as well, not '
            f'{worst.id}', ' '.join(summary.table(lines, 70).split()))

    def test_several_benchmarks_of_one_host_are_no_selection(self):
        self.assertEqual('', summary.describe_selection(self.lines(
            {'benchmark': 'npb-cg'}, {'benchmark': 'npb-ft'})))

    def test_of_guests_at_their_bounds_no_best_one_holds_too_often(self):
        held = passed = 0
        for seed in range(60):
            dice = random.Random(seed)
            some = []
            for number in range(5):
                run = dataclasses.replace(runs.run(*(
                    [100 * ratio * math.exp(dice.gauss(0, 0.08))
                     for _ in range(10)] for ratio in (1, 0.95)), 0.95),
                    host=f'n{number}')
                some.append(summary.Shown(str(number), record.Result(
                    (run,), verdict.judge([run])), '', True))
            passed += any(each.word == 'PASS' for each in some)
            found = summary.describe_selection(some)
            held += 'PASS hold' in found and '; 0 of' not in found
        self.assertGreater(passed, 6)
        self.assertLessEqual(held, 7)

    def test_the_table_names_each(self):
        lines = self.lines({'benchmark': 'npb-cg'}, {
            'benchmark': 'npb-ft', 'flavor': shown_results.LONG_FLAVOR,
            'host': shown_results.LONG_HOST})
        for width in (60, None):
            table = summary.table(lines, width)
            self.assertIn('npb-cg', table)
            self.assertIn(shown_results.LONG_FLAVOR, table)


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
