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
import unittest

from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.analysis import conditions
from hpcvirt.bench.analysis import verdict
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from hpcvirt.bench.results import aggregation
from hpcvirt.bench.studies import catalogue as study_catalogue
from tests.unit.bench import runs

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
            facts if sample.arm is record.Arm.GUEST else native or {}))
        for sample in run.samples))


def of(benchmark, *guests, hosts='n17', **more):
    run = runs.run([1.0], [1.0], benchmark=benchmark, **more)
    run = with_facts(dataclasses.replace(run, host=hosts), *guests)
    return conditions.of_run(run, catalogue.get(benchmark))


class NodesTest(unittest.TestCase):

    def test_a_job_over_two_hosts_is_one_over_several_nodes(self):
        self.assertEqual('several', of('npb-cg', hosts='n1, n2')['nodes'])
        self.assertEqual('one', of('npb-cg', hosts='n1')['nodes'])

    def test_copies_on_two_hosts_stay_on_one_node_each(self):
        run = dataclasses.replace(runs.run([1.0], [1.0]), host='n1, n2',
                                  variant='openmp')
        self.assertEqual('one', conditions.of_run(
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
        self.assertEqual('4x8', self.shape({'cpu.online': '0-3'},
                                           shape='4x8'))

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
                found = bounds.of_run(run)[metric]
                run = dataclasses.replace(run, bounds={metric: found},
                                          of_launch=True)
                self.assertNotEqual(judgement.Word.FAIL,
                                    verdict.judge([run]).word, row.id)
