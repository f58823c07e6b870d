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
from hpcvirt.bench.studies import claim_check
from hpcvirt.bench.studies import study


class TestClaims(testtools.TestCase):
    def test_what_the_documents_print_follows_or_is_known_not_to(self):
        for made in study_catalogue.every():
            for checked in claim_check.check(made):
                self.assertEqual(
                    not checked.claim.disputed, checked.agrees,
                    f'{made.id}: {checked.claim.text}: '
                    f'{checked.computed}')

    def test_every_printed_ratio_of_the_tables_is_recomputed(self):
        def count(name, kind):
            return sum(claim.kind is kind
                       for claim in study_catalogue.get(name).claims)
        self.assertEqual(8, count('S1', study.Kind.RATIO))
        self.assertEqual(9, count('S4', study.Kind.TOTAL))
        self.assertEqual(9, count('S4', study.Kind.LOSS))
        self.assertEqual(3, count('S4', study.Kind.REDUCTION))

    def test_these_are_at_odds_with_their_own_figures(self):
        found = {(made.id, checked.claim.printed,
                  round(checked.computed, 3))
                 for made in study_catalogue.every()
                 for checked in claim_check.check(made) if not checked.agrees}
        self.assertEqual({
            ('S1', '0.848', 0.847), ('S1', '4', 6.104),
            ('S3', '1.17', 1.179), ('S3', '1.17', 1.16),
            ('S3', '12', 6.257), ('S3', '12', 18.404), ('S3', '12', 11.481),
            ('S4', '52', 47.368), ('S5', '95', 76.0)}, found)

    def test_a_claim_about_nothing_is_an_error(self):
        made = study_catalogue.get('S1')
        claim = study.Claim('x', '1', study.Kind.RATIO,
                            ('nobody.guest', '1'))
        self.assertRaises(exception.InvalidInput, claim_check.compute, made,
                          claim)


class TestStudies(testtools.TestCase):
    def row(self, name, row_id):
        return next(row for row in study_catalogue.get(name).rows
                    if row.id == row_id)

    def test_ratios_are_guest_by_native(self):
        self.assertAlmostEqual(0.01561 / 0.01842,
                               self.row('S1', 'ra-small-on').ratio)
        self.assertAlmostEqual(926 / 915, self.row('S3', 'off-1vm-8').ratio)

    def test_a_percentage_alone_counts_in_the_direction_of_its_metric(self):
        self.assertAlmostEqual(0.967, self.row('S4', '4x8-tuned').ratio)
        self.assertAlmostEqual(1.28, self.row('S5', 'qe').ratio)
        self.assertAlmostEqual(1.4, self.row('S2', 'numa-host-warm').ratio)

    def test_rows_and_cases_belong_together(self):
        for made in study_catalogue.every():
            cases = {case.id for case in made.cases}
            self.assertEqual(len(cases), len(made.cases))
            ids = [row.id for row in made.rows]
            self.assertEqual(len(set(ids)), len(ids))
            for row in made.rows:
                self.assertIn(row.case, cases)

    def test_cases_run_benchmarks_that_there_are(self):
        for made in study_catalogue.every():
            for case in made.cases:
                self.assertTrue(case.uses)
                for use in case.uses:
                    found = catalogue.get(use.benchmark)
                    self.assertEqual(use.variant,
                                     found.variant(use.variant).name)
                    known = {'ranks', 'threads', *found.size}
                    self.assertLessEqual(set(use.parameters), known)
                    for other in use.instead:
                        catalogue.get(other)

    def test_rows_are_figures_of_their_benchmark(self):
        for made in study_catalogue.every():
            for row in made.rows:
                known = catalogue.output_source(row.benchmark)
                metrics = {
                    (figure.name, figure.direction)
                    for one in catalogue.all_definitions()
                    if one.parser == known.parser for figure in one.metrics}
                self.assertIn((row.metric, row.direction), metrics)

    def test_shapes_are_those_of_the_study(self):
        shapes = {case.guests.shape for case in study_catalogue.get('S4').cases}
        self.assertEqual({'4x8', '2x16', '1x24', '1x32'}, shapes)

    def test_a_study_and_a_case_are_found_by_name(self):
        self.assertEqual('S3', study_catalogue.get('s3').id)
        self.assertRaises(exception.InvalidInput, study_catalogue.get, 'S6')
        self.assertEqual('sriov', study_catalogue.get('S5').case('sriov').id)
        self.assertRaises(exception.InvalidInput,
                          study_catalogue.get('S5').case, 'x')
