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

import testtools

from hpcvirt import bibliography
from hpcvirt import exception
from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.bench.studies import catalogue as study_catalogue


class TestDefaults(testtools.TestCase):
    """The table of default bounds, as the studies give them."""

    def limit(self, benchmark, metric, **context):
        definition = catalogue.get(benchmark)
        found = bounds.of_definition(definition, [metric], context)
        if metric not in found:
            return None
        name, _ = bounds.split(metric)
        direction = next(figure.direction for figure in definition.metrics
                         if figure.name == name)
        return round(found[metric].limit(direction), 4)

    def test_memory_by_page_size(self):
        for pages, limit in (('large', 0.03805 / 0.03956),
                             ('small', 0.01561 / 0.01842)):
            self.assertEqual(round(limit, 4), self.limit(
                'hpcc', 'StarRandomAccess_GUPs', pages=pages))
        self.assertEqual(0.973, self.limit('hpcc', 'HPL_Tflops'))
        self.assertEqual(0.97, self.limit('hpcc', 'HPL_Tflops',
                                          pages='large'))

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
                self.assertEqual(limit, self.limit(name, 'score',
                                                   shape=shape))

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
        for definition in catalogue.all_definitions():
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
        return {bound.kind.value for bound in bounds.of_definition(
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
        found = bounds.of_definition(catalogue.get('hpcc'), ['HPL_Tflops'],
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
        self.assertEqual(1.05, bounds.of_overhead(
            '5%', outcome.Direction.DOWN).ratio)
        self.assertEqual(1 / 1.05, bounds.of_overhead(
            '5', outcome.Direction.UP).ratio)
        for text in ('x', '-1', 'nan', ''):
            self.assertRaises(exception.InvalidInput, bounds.of_overhead,
                              text, outcome.Direction.UP)
