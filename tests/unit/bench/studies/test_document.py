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

import json

import testtools

from hpcvirt.bench.model import outcome
from hpcvirt.bench.studies import document
from hpcvirt.bench.studies import study
from tests.unit.bench.studies import study_runs

CASE = study.Case('one', 'one guest', study.Guests(1, 8), (
    study.StudyBenchmark('hpcc', 'mpi'),))
ROW = study.Row('hpl', 'one', 'HPL', 'hpcc', 'HPL_Tflops', 'Gflop/s',
                outcome.Direction.UP, 'table 1', native=50.0, guest=45.0)
STUDY = study.Study(
    'S9', 'A study', 'CERN-HEPiX-2015', ('one machine',), (CASE,), (ROW,), (
        study.Claim('the guest reaches', 'table 1', '0.9', study.Kind.RATIO,
                    ('hpl.guest', 'hpl.native')),
        study.Claim('it loses', 'table 1', '20', study.Kind.LOSS,
                    ('hpl.guest', 'hpl.native'), disputed='a slip')),
    ('measure it',))


class TestOfStudy(testtools.TestCase):
    def test_it_can_be_written_as_json(self):
        found = document.of_study(STUDY)
        self.assertEqual(found, json.loads(json.dumps(found)))
        self.assertEqual('S9', found['id'])
        self.assertEqual(['one'], [case['id'] for case in found['cases']])

    def test_it_says_where_the_study_was_published(self):
        found = document.of_study(STUDY)['document']
        self.assertEqual('CERN-HEPiX-2015', found['key'])
        self.assertIn('title', found)
        self.assertNotIn('file', found)

    def test_a_row_has_its_ratio(self):
        row, = document.of_study(STUDY)['rows']
        self.assertEqual((50.0, 45.0), (row['native'], row['guest']))
        self.assertAlmostEqual(0.9, row['ratio'])

    def test_a_claim_has_the_number_that_follows_and_whether_it_agrees(self):
        ratio, loss = document.of_study(STUDY)['claims']
        self.assertAlmostEqual(0.9, ratio['computed'])
        self.assertTrue(ratio['agrees'])
        self.assertEqual('0.9', ratio['printed'])
        self.assertAlmostEqual(10.0, loss['computed'])
        self.assertFalse(loss['agrees'])


class TestOfComparison(testtools.TestCase):
    def test_a_published_figure_stands_next_to_the_results(self):
        compared = study_runs.of_row([study_runs.hpcc(0.04, 0.038)],
                                     'S1', 'hpl-small-on')
        found = document.of_comparison(compared)
        self.assertEqual(found, json.loads(json.dumps(found)))
        self.assertAlmostEqual(compared.row.guest / compared.row.native,
                               found['row']['ratio'])
        result, = found['results']
        self.assertAlmostEqual(0.95, result['interval']['ratio'])

    def test_a_case_without_a_published_figure_has_no_row(self):
        _, compared = study_runs.compared('S5', [])
        found = [document.of_comparison(each) for each in compared]
        self.assertEqual(
            ['passthrough', 'virtio'],
            [each['case']['id'] for each in found if each['row'] is None])
