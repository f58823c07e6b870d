# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

import testtools

from hpcvirt import bibliography
from hpcvirt import exception
from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.results import aggregation
from hpcvirt.bench.studies import catalogue as study_catalogue
from tests.builders import runs


class TestDefaults(testtools.TestCase):
    """The table of default bounds, as the studies give them."""

    def limit(self, benchmark, metric, **context):
        definition = catalogue.get(benchmark)
        found = bounds.find_defaults(definition, [metric], context)
        if metric not in found:
            return None
        return round(found[metric].ratio, 4)

    def test_a_guest_may_lose_3_percent_more_than_in_a_study(self):
        for benchmark, metric, margin in (
                ('hpl', 'gflops', 0.03),
                ('wrf-conus12km', 'step_time_s', 0.03),
                ('stream', 'triad_mb_s', 0.0)):
            found = bounds.find_defaults(catalogue.get(benchmark), [metric],
                                         {})[metric]
            self.assertEqual(margin, found.margin)

    def test_memory_by_page_size(self):
        for pages, limit in (('large', 0.03805 / 0.03956),
                             ('small', 0.01561 / 0.01842)):
            self.assertEqual(round(limit, 4), self.limit(
                'hpcc', 'StarRandomAccess_GUPs', pages=pages))
        self.assertEqual(0.973, self.limit('hpcc', 'HPL_Tflops'))
        self.assertEqual(1.0, self.limit('hpcc', 'HPL_Tflops', pages='large'))

    def test_molecular_dynamics(self):
        self.assertEqual(1.012, self.limit('namd-stmv', 'wall_s'))
        self.assertEqual(0.9881, self.limit('gromacs', 'ns_per_day'))
        self.assertEqual(0.9881, self.limit('lammps', 'timesteps_per_s'))
        for shape, guest, native in (('1x8', 926, 915), ('2x8', 1779, 1761),
                                     ('4x4', 810, 796)):
            self.assertEqual(round(guest / native, 4), self.limit(
                'namd-stmv', 'wall_s', nodes='one', shape=shape))

    def test_cpu_score_by_shape(self):
        for shape, limit in (('4x8', 0.967), ('2x16', 0.954), ('1x24', 0.95),
                             ('1x32', 0.94), ('1x4', 0.95), ('', 0.95)):
            for name in ('hs06', 'hepscore'):
                self.assertEqual(limit, self.limit(name, 'score', shape=shape))

    def test_npb_is_a_time_turned_into_a_rate(self):
        self.assertEqual(round(1 / 1.03, 4),
                         self.limit('npb-cg', 'mops_total', nodes='one'))
        self.assertEqual(round(1 / 1.17, 4),
                         self.limit('npb-cg', 'mops_total', nodes='several'))

    def test_messages_by_size(self):
        for size, limit in ((0, 1.3), (127, 1.3), (128, None),
                            (129, 1.1), (4194304, 1.1)):
            self.assertEqual(limit, self.limit('osu-latency',
                                               f'latency_us[{size}]'))
        self.assertEqual(0.98, self.limit('osu-bandwidth',
                                          'bandwidth_mb_s[1]'))

    def test_applications(self):
        self.assertEqual(1.15, self.limit('wrf-conus12km', 'step_time_s'))
        self.assertEqual(1.28, self.limit('qe-ausurf112', 'wall_s'))

    def test_a_figure_that_nobody_bounded_has_none(self):
        self.assertIsNone(self.limit('hpcc', 'PTRANS_GBs'))

    def test_every_bound_cites_a_document_with_figures(self):
        for definition in catalogue.all_definitions():
            for rule in definition.bounds:
                self.assertIsNotNone(bibliography.get(rule.source).file)

    def test_every_benchmark_bounds_a_primary_figure(self):
        # No study has figures of these.
        unbound = {'fio', 'site-script', 'nccl-tests', 'nvbandwidth',
                   'gpu-burn', 'dgemm', 'hpcg', 'multichase', 'ior',
                   'cyclictest', 'osu-allreduce', 'osu-alltoall'}
        for definition in catalogue.all_definitions():
            if definition.name in unbound:
                self.assertEqual((), definition.bounds)
                continue
            primary = {figure.name for figure in definition.metrics
                       if figure.primary}
            self.assertTrue(
                primary & {rule.metric for rule in definition.bounds},
                definition.name)


class TestKinds(testtools.TestCase):
    """A bound is a measurement of a study, or says that it is not."""

    def kinds(self, benchmark, **context):
        definition = catalogue.get(benchmark)
        metrics = [figure.name + ('[8]' if figure.per_size else '')
                   for figure in definition.metrics]
        return {bound.kind.value for bound in bounds.find_defaults(
            definition, metrics, context).values()}

    def test_nobody_measured_stream_or_a_small_application(self):
        for name in ('stream', 'qe-small'):
            self.assertEqual({'expected'}, self.kinds(name))

    def test_figures_of_another_program_are_transferred(self):
        for name in ('gromacs', 'lammps', 'netpipe', 'mpi4py-pingpong',
                     'osu-bibandwidth', 'hepscore'):
            for nodes in ('one', 'several'):
                self.assertEqual({'transferred'}, self.kinds(
                    name, nodes=nodes, shape='4x8'), name)

    def test_figures_of_a_modified_hypervisor_are_transferred(self):
        for name in (each.name for each in catalogue.all_definitions()
                     if each.parser == 'npb'):
            for nodes in ('one', 'several'):
                self.assertEqual({'transferred'}, self.kinds(
                    name, nodes=nodes))

    def test_figures_of_two_hosts_are_transferred_to_one(self):
        for name in ('osu-latency', 'osu-bandwidth', 'wrf-conus12km',
                     'qe-ausurf112'):
            self.assertEqual({'measured'}, self.kinds(name, nodes='several'))
            self.assertEqual({'transferred'}, self.kinds(name, nodes='one'))

    def test_figures_of_one_host_are_transferred_to_several(self):
        for nodes, kind in (('one', 'measured'), ('several', 'transferred')):
            self.assertEqual({kind}, self.kinds('namd-stmv', nodes=nodes,
                                                shape='4x4'))

    def test_figures_of_a_shape_are_transferred_to_others(self):
        self.assertEqual({'measured'}, self.kinds('hs06', shape='2x16'))
        self.assertEqual({'transferred'}, self.kinds('hs06', shape='2x8'))

    def test_a_guest_that_beat_native_is_not_required(self):
        found = bounds.find_defaults(catalogue.get('hpcc'), ['HPL_Tflops'],
                                     {'pages': 'large'})['HPL_Tflops']
        self.assertEqual(('expected', 1.0), (found.kind, found.ratio))

    def test_what_was_measured_is_a_row_of_the_study(self):
        ratios = {}
        for study_ in study_catalogue.studies():
            for row in study_.rows:
                ratios.setdefault(study_.source, set()).update(
                    (round(row.ratio, 9), round(1 / row.ratio, 9)))
        for definition in catalogue.all_definitions():
            for rule in definition.bounds:
                if rule.kind is judgement.BoundKind.EXPECTED or (
                        # Of no row: a slide on guests of several sizes.
                        rule.metric == 'score' and not rule.when):
                    continue
                limit = (rule.at_least or rule.at_most
                         or rule.slowdown_at_most)
                self.assertIn(round(limit, 9), ratios[rule.source],
                              f'{definition.name}: {rule.line}')


class TestUsersOwn(testtools.TestCase):
    def test_metric_and_ratio(self):
        metric, bound = bounds.parse('latency_us[8]=1.25')
        self.assertEqual(('latency_us[8]', 1.25), (metric, bound.ratio))

    def test_what_is_not_that_is_refused(self):
        for text in ('x', '=1', 'x=', 'x=y', 'x=nan', 'x=-1', 'x=0',
                     'x=inf', 'x=1e300', ''):
            self.assertRaises(exception.InvalidInput, bounds.parse, text)

    def test_an_overhead_is_a_slowdown_for_both_directions(self):
        self.assertEqual(1.05, bounds.parse_overhead(
            '5%', outcome.Direction.DOWN).ratio)
        self.assertEqual(1 / 1.05, bounds.parse_overhead(
            '5', outcome.Direction.UP).ratio)
        for text in ('x', '-1', 'nan', ''):
            self.assertRaises(exception.InvalidInput, bounds.parse_overhead,
                              text, outcome.Direction.UP)


ALWAYS = '[always] madvise never'
MADVISE = 'always [madvise] never'
NEVER = 'always madvise [never]'


def with_facts(run, *guests, native=None):
    """Give a run the environment of guests that ran at the same time."""
    labels = [f'vm{number}' for number in range(len(guests))]
    facts = aggregation.merge(labels, [
        {'place': f'server:{label}', **guest}
        for label, guest in zip(labels, guests, strict=True)])
    return dataclasses.replace(run, samples=tuple(
        dataclasses.replace(sample, environment=(
            facts if sample.side is record.Side.GUEST else native or {}))
        for sample in run.samples))


def of(benchmark, *guests, hosts='n17', **more):
    run = runs.run([1.0], [1.0], benchmark=benchmark, **more)
    run = with_facts(dataclasses.replace(run, host=hosts), *guests)
    return bounds.find_facts(run, catalogue.get(benchmark))


class NodesTest(unittest.TestCase):
    def test_a_job_over_two_hosts_is_one_over_several_nodes(self):
        self.assertEqual('several', of('npb-cg', hosts='n1, n2')['nodes'])
        self.assertEqual('one', of('npb-cg', hosts='n1')['nodes'])

    def test_copies_on_two_hosts_stay_on_one_node_each(self):
        run = dataclasses.replace(runs.run([1.0], [1.0]), host='n1, n2',
                                  variant='openmp')
        self.assertEqual('one', bounds.find_facts(
            run, catalogue.get('npb-cg'))['nodes'])


class PagesTest(unittest.TestCase):
    def pages(self, *guests):
        return of('hpcc', *guests).get('pages')

    def test_the_guest_s_own_pages_count_and_not_those_behind_it(self):
        for thp in (MADVISE, NEVER):
            self.assertEqual('small', self.pages(
                {'pages': 'large', 'pages.thp': thp}))
        self.assertEqual('large', self.pages(
            {'pages': 'large', 'pages.thp': ALWAYS}))

    def test_large_pages_on_small_ones_are_small(self):
        self.assertEqual('small', self.pages(
            {'pages': 'small', 'pages.thp': ALWAYS}))

    def test_pages_behind_the_guest_may_be_unknown(self):
        self.assertEqual('large', self.pages({'pages.thp': ALWAYS}))

    def test_one_guest_with_small_pages_is_enough(self):
        self.assertEqual('small', self.pages(
            {'pages.thp': ALWAYS}, {'pages.thp': NEVER}))

    def test_nothing_is_said_of_a_guest_that_says_nothing(self):
        self.assertIsNone(self.pages({'pages': 'large'}))


class ShapeTest(unittest.TestCase):
    def shape(self, *guests, **more):
        return of('hs06', *guests, **more).get('shape')

    def test_a_flavor_has_the_shape_of_its_guests(self):
        for count, cpus, shape in ((1, '0-31', '1x32'), (4, '0-7', '4x8'),
                                   (1, '0,2', '1x2')):
            self.assertEqual(shape, self.shape(
                *[{'cpu.online': cpus}] * count, shape='hpc.large'))

    def test_a_shape_that_was_given_counts(self):
        self.assertEqual('4x8', self.shape({'cpu.online': '0-3'}, shape='4x8'))

    def test_guests_that_differ_or_say_nonsense_have_none(self):
        self.assertIsNone(self.shape({'cpu.online': '0-3'},
                                     {'cpu.online': '0-7'}))
        self.assertIsNone(self.shape({'cpu.online': '3-0'}))
        self.assertIsNone(self.shape({}))


class SelectedTest(unittest.TestCase):
    """The bounds that a verdict uses follow from the run alone."""

    def limit(self, run, metric):
        judged = verdict.judge_result(record.Result((run,)))
        return judged.runs[0].bounds[metric].ratio

    def test_npb_over_two_hosts(self):
        run = runs.run([1.0], [1.0], bounds={})
        for host, limit in (('n1, n2', 1 / 1.17), ('n1', 1 / 1.03)):
            self.assertEqual(limit, self.limit(
                dataclasses.replace(run, host=host), 'mops_total'))

    def test_a_flavor_that_is_a_whole_host(self):
        run = with_facts(runs.run([1.0], [1.0], metric='score', bounds={},
                                  benchmark='hs06', shape='hpc.32c'),
                         {'cpu.online': '0-31'})
        self.assertEqual(0.94, self.limit(run, 'score'))

    def test_the_published_guests_of_s1_do_not_fail(self):
        noise = (0.999, 1.001, 1.0, 1.0005, 0.9995, 1.001, 0.999, 1.0)
        rows = {(row.case, row.metric): row
                for row in study_catalogue.get('S1').rows}
        for case, thp in (('small-on', NEVER), ('large-on', ALWAYS)):
            for metric in ('StarRandomAccess_GUPs', 'HPL_Tflops'):
                row = rows[case, metric]
                run = with_facts(runs.run(
                    [row.native * each for each in noise],
                    [row.guest * each for each in reversed(noise)],
                    metric=metric, benchmark='hpcc', bounds={}),
                    {'pages': 'large', 'pages.thp': thp})
                found = bounds.find_bounds(run)[metric]
                run = dataclasses.replace(run, bounds={metric: found},
                                          of_launch=True)
                self.assertNotEqual(judgement.VerdictResult.FAIL,
                                    verdict.judge([run]).result, row.id)


GIVEN = {'time_s': judgement.Bound(2.0)}
CONTEXT = {'pages': 'small', 'nodes': 'one'}


def ratios(given=None, overhead=None, context=None, **run):
    run.setdefault('bounds', {})
    host = run.pop('host', 'n17')
    measured = dataclasses.replace(runs.run([100, 100], [90, 90], **run),
                                   host=host)
    bounded = bounds.set_bounds(
        measured, given or {}, overhead,
        CONTEXT if context is None else context)
    return {name: round(bound.ratio, 4)
            for name, bound in bounded.bounds.items()}


class OverheadOfARunTest(unittest.TestCase):
    """What ``bench run --overhead`` leaves in the record."""

    def run_of(self, benchmark, metric='time_s', **more):
        return dataclasses.replace(
            runs.run([100, 100], [90, 90], benchmark=benchmark, metric=metric,
                     bounds={}), overhead_percent=25.0, **more)

    def test_it_replaces_the_bounds_of_the_benchmark(self):
        run = self.run_of('npb-cg', 'mops_total')
        found = bounds.find_bounds(run)
        self.assertEqual(['mops_total'], list(found))
        self.assertAlmostEqual(1 / 1.25, found['mops_total'].ratio)
        self.assertEqual('given by the user', found['mops_total'].source)
        self.assertEqual(found, bounds.foresee(run))

    def test_it_bounds_benchmarks_that_have_no_bound(self):
        run = self.run_of('ior', 'write_mib_s', samples=())
        self.assertEqual({'write_mib_s', 'read_mib_s'},
                         {*bounds.foresee(run)})
        self.assertEqual({}, bounds.foresee(dataclasses.replace(
            run, overhead_percent=None)))

    def test_every_message_size_has_it(self):
        run = self.run_of('osu-allreduce', 'latency_us[8]',
                          parameters={'max_size': '16'})
        self.assertEqual([f'latency_us[{2 ** power}]' for power in range(5)],
                         list(bounds.foresee(run)))
        self.assertEqual(['latency_us[8]'], list(bounds.find_bounds(run)))

    def test_bounds_of_the_user_go_before_it(self):
        run = self.run_of('npb-cg', 'mops_total')
        run = dataclasses.replace(
            run, bounds={'mops_total': judgement.Bound(0.5)})
        judged = verdict.judge_result(record.Result((run,)))
        self.assertEqual(0.5, judged.runs[0].bounds['mops_total'].ratio)


class WithBoundsTest(unittest.TestCase):
    def test_the_definition_bounds_a_run_that_has_no_bounds(self):
        self.assertEqual({'mops_total': round(1 / 1.03, 4)}, ratios())

    def test_the_definition_knows_runs_over_several_nodes(self):
        self.assertNotEqual(ratios(), ratios(
            context={'pages': 'small', 'nodes': 'several'}))

    def test_a_run_knows_the_hosts_that_it_spans(self):
        self.assertEqual({'mops_total': round(1 / 1.17, 4)},
                         ratios(context={}, host='n1, n2'))
        self.assertEqual({'mops_total': round(1 / 1.03, 4)},
                         ratios(context={'nodes': 'one'}, host='n1, n2'))

    def test_what_is_stated_selects_the_bounds_anew(self):
        stored = {'mops_total': judgement.Bound(
            0.5, kind=judgement.BoundKind.TRANSFERRED)}
        self.assertEqual({'mops_total': 0.5}, ratios(
            context={}, bounds=stored))
        self.assertEqual({'mops_total': round(1 / 1.17, 4)}, ratios(
            context={'nodes': 'several'}, bounds=stored))

    def test_bounds_of_the_run_go_before_those_of_the_definition(self):
        self.assertEqual({'mops_total': 0.5}, ratios(
            bounds={'mops_total': judgement.Bound(0.5)}))

    def test_bounds_of_the_user_go_before_those_of_the_run(self):
        self.assertEqual({'time_s': 2.0}, ratios(
            GIVEN, bounds={'mops_total': judgement.Bound(0.5)}))

    def test_an_overhead_follows_the_direction_of_the_metric(self):
        self.assertEqual({'mops_total': round(1 / 1.25, 4)},
                         ratios(overhead='25%'))
        self.assertEqual({'latency_us[8]': 1.25}, ratios(
            overhead='25', benchmark='osu-latency', metric='latency_us[8]',
            direction=outcome.Direction.DOWN))

    def test_an_overhead_is_for_primary_metrics_only(self):
        self.assertEqual({}, ratios(overhead='25', metric='time_s'))

    def test_a_bound_of_the_user_goes_before_the_overhead(self):
        self.assertEqual({'mops_total': 0.8, 'time_s': 2.0},
                         ratios(GIVEN, overhead='25'))

    def test_an_overhead_that_is_no_number_is_refused(self):
        self.assertRaises(exception.InvalidInput, ratios, overhead='much')
