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

import copy

import testtools

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.bench.catalogue import catalogue as benchmarks
from hpcvirt.bench.studies import catalogue
from hpcvirt.bench.studies import study


class TestFind(testtools.TestCase):
    def test_a_study_is_found_by_its_id_in_any_case(self):
        self.assertEqual('S3', catalogue.get('s3').id)
        self.assertEqual(catalogue.get('S3'), catalogue.get('s3'))

    def test_an_unknown_study_is_refused_with_those_there_are(self):
        error = self.assertRaises(exception.InvalidInput, catalogue.get, 'S6')
        self.assertIn('S1, S2, S3, S4, S5', str(error))

    def test_all_studies_are_loaded_in_their_order(self):
        self.assertEqual(['S1', 'S2', 'S3', 'S4', 'S5'],
                         [study_.id for study_ in catalogue.studies()])


class TestStudies(testtools.TestCase):
    """What holds for every study."""

    def test_rows_and_cases_belong_together(self):
        for study_ in catalogue.studies():
            cases = {case.id for case in study_.cases}
            self.assertEqual(len(cases), len(study_.cases))
            ids = [row.id for row in study_.rows]
            self.assertEqual(len(set(ids)), len(ids))
            for row in study_.rows:
                self.assertIn(row.case, cases)

    def test_every_figure_has_its_place_in_the_document(self):
        for study_ in catalogue.studies():
            for each in (*study_.rows, *study_.claims, *study_.statements):
                self.assertRegex(
                    each.place, r'^(last )?(table|slide|section|paragraph)',
                    f'{study_.id}: {each}')

    def test_a_figure_without_a_place_is_refused(self):
        plain = serialization.to_plain(catalogue.get('S5'))
        for kind in ('rows', 'claims', 'statements'):
            broken = copy.deepcopy(plain)
            del broken[kind][0]['place']
            error = self.assertRaises(
                exception.InvalidInput, serialization.from_plain,
                study.Study, broken, 'x')
            self.assertIn(f"{kind}[0]: the key 'place' is missing",
                          str(error))

    def test_cases_name_existing_benchmarks(self):
        for study_ in catalogue.studies():
            for case in study_.cases:
                self.assertTrue(case.benchmarks)
                for use in case.benchmarks:
                    found = benchmarks.get(use.benchmark)
                    self.assertEqual(use.variant,
                                     found.variant(use.variant).name)
                    known = {'ranks', 'threads', *found.size}
                    self.assertLessEqual(set(use.parameters), known)
                    for other in use.stand_ins:
                        benchmarks.get(other)

    def test_rows_name_metrics_of_their_benchmark(self):
        for study_ in catalogue.studies():
            for row in study_.rows:
                known = benchmarks.output_source(row.benchmark)
                metrics = {
                    (figure.name, figure.direction)
                    for one in benchmarks.all_definitions()
                    if one.parser == known.parser for figure in one.metrics}
                self.assertIn((row.metric, row.direction), metrics)

    def test_shapes_are_those_of_the_study(self):
        shapes = {case.guests.shape
                  for case in catalogue.get('S4').cases}
        self.assertEqual({'4x8', '2x16', '1x24', '1x32'}, shapes)
