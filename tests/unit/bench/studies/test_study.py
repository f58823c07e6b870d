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

from hpcvirt import exception
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.studies import catalogue as study_catalogue


class TestStudies(testtools.TestCase):
    def row(self, name, row_id):
        return next(row for row in study_catalogue.get(name).rows
                    if row.id == row_id)

    def test_ratios_are_guest_over_native(self):
        self.assertAlmostEqual(0.01561 / 0.01842,
                               self.row('S1', 'ra-small-on').ratio)
        self.assertAlmostEqual(926 / 915, self.row('S3', 'off-1vm-8').ratio)

    def test_a_stated_percentage_follows_the_direction_of_its_metric(self):
        self.assertAlmostEqual(0.967, self.row('S4', '4x8-tuned').ratio)
        self.assertAlmostEqual(1.28, self.row('S5', 'qe').ratio)
        self.assertAlmostEqual(1.4, self.row('S2', 'numa-host-warm').ratio)

    def test_rows_and_cases_belong_together(self):
        for study_ in study_catalogue.studies():
            cases = {case.id for case in study_.cases}
            self.assertEqual(len(cases), len(study_.cases))
            ids = [row.id for row in study_.rows]
            self.assertEqual(len(set(ids)), len(ids))
            for row in study_.rows:
                self.assertIn(row.case, cases)

    def test_cases_name_existing_benchmarks(self):
        for study_ in study_catalogue.studies():
            for case in study_.cases:
                self.assertTrue(case.benchmarks)
                for use in case.benchmarks:
                    found = catalogue.get(use.benchmark)
                    self.assertEqual(use.variant,
                                     found.variant(use.variant).name)
                    known = {'ranks', 'threads', *found.size}
                    self.assertLessEqual(set(use.parameters), known)
                    for other in use.stand_ins:
                        catalogue.get(other)

    def test_rows_name_metrics_of_their_benchmark(self):
        for study_ in study_catalogue.studies():
            for row in study_.rows:
                known = catalogue.output_source(row.benchmark)
                metrics = {
                    (figure.name, figure.direction)
                    for one in catalogue.all_definitions()
                    if one.parser == known.parser for figure in one.metrics}
                self.assertIn((row.metric, row.direction), metrics)

    def test_shapes_are_those_of_the_study(self):
        shapes = {case.guests.shape
                  for case in study_catalogue.get('S4').cases}
        self.assertEqual({'4x8', '2x16', '1x24', '1x32'}, shapes)

    def test_a_study_and_a_case_are_found_by_name(self):
        self.assertEqual('S3', study_catalogue.get('s3').id)
        self.assertRaises(exception.InvalidInput, study_catalogue.get, 'S6')
        self.assertEqual('sriov', study_catalogue.get('S5').case('sriov').id)
        self.assertRaises(exception.InvalidInput,
                          study_catalogue.get('S5').case, 'x')

    def test_one_case_has_its_rows_and_claims_only(self):
        limited = study_catalogue.get('S1').limited_to('small-on')
        self.assertEqual(['small-on'], [case.id for case in limited.cases])
        self.assertEqual(['ra-small-on', 'hpl-small-on'],
                         [row.id for row in limited.rows])
        self.assertEqual({'0.848', '0.973', '85'},
                         {claim.printed for claim in limited.claims})
