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

import testtools

from hpcvirt import exception
from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import claim_check
from hpcvirt.bench.studies import study


class TestClaims(testtools.TestCase):
    def test_every_printed_number_follows_or_is_disputed(self):
        for study_ in study_catalogue.studies():
            for checked in claim_check.check(study_):
                self.assertEqual(
                    not checked.claim.disputed, checked.agrees,
                    f'{study_.id}: {checked.claim.text}: '
                    f'{checked.computed}')

    def test_every_printed_ratio_of_the_tables_is_recomputed(self):
        def count(name, kind):
            return sum(claim.kind is kind and claim.relation is None
                       for claim in study_catalogue.get(name).claims)
        self.assertEqual(8, count('S1', study.Kind.RATIO))
        self.assertEqual(9, count('S4', study.Kind.TOTAL))
        self.assertEqual(9, count('S4', study.Kind.LOSS))
        self.assertEqual(3, count('S4', study.Kind.REDUCTION))

    def test_these_claims_do_not_follow_from_the_figures(self):
        found = {(study_.id, checked.claim.printed,
                  round(checked.computed, 3))
                 for study_ in study_catalogue.studies()
                 for checked in claim_check.check(study_)
                 if not checked.agrees}
        self.assertEqual({
            ('S1', '0.848', 0.847), ('S1', '4', 6.104),
            ('S3', '1.17', 1.179), ('S3', '1.17', 1.16),
            ('S3', '12', 6.257), ('S3', '12', 18.404), ('S3', '12', 11.481),
            ('S4', '52', 47.368), ('S5', '95', 76.0),
            ('S5', '95', 95.0)}, found)

    def test_a_number_below_or_above_the_printed_one_is_not_equal_to_it(self):
        study_ = study_catalogue.get('S1')
        for relation, agreeing in (('below', 'l'), ('at most', 'le'),
                                   ('above', 'g'), ('at least', 'eg')):
            for computed, sign in (('94.9', 'l'), ('95', 'e'), ('95.1', 'g')):
                claim = study.Claim('x', 'table 1', '95', study.Kind.SHARE,
                                    (computed, '100'),
                                    relation=study.Relation(relation))
                checked, = claim_check.check(dataclasses.replace(
                    study_, claims=(claim,)))
                self.assertEqual(sign in agreeing, checked.agrees,
                                 f'{computed} {relation} 95')

    def test_what_studies_say_of_their_figures_is_there(self):
        found = {(study_.id, checked.claim.printed, checked.claim.relation,
                  round(checked.computed, 2))
                 for study_ in study_catalogue.studies()
                 for checked in claim_check.check(study_) if checked.agrees}
        self.assertLessEqual({
            ('S1', '2', 'below', 1.89), ('S1', '2', 'above', 2.15),
            ('S1', '2', 'above', 2.44), ('S4', '20', 'about', 20.45),
            ('S5', '35', 'below', 32.0), ('S5', '9', None, 9.5)}, found)

    def test_a_claim_about_a_missing_figure_is_an_error(self):
        study_ = study_catalogue.get('S1')
        claim = study.Claim('x', 'table 1', '1', study.Kind.RATIO,
                            ('nobody.guest', '1'))
        self.assertRaises(exception.InvalidInput, claim_check.compute,
                          study_, claim)
