# SPDX-License-Identifier: Apache-2.0

import json

import testtools

from hpcvirt.bench.model import outcome
from hpcvirt.bench.studies import document
from hpcvirt.bench.studies import study
from tests.builders import study_runs

CASE = study.Case('one', 'one guest', study.CaseGuests(1, 8), (
    study.StudyBenchmark('hpcc', 'mpi'),))
ROW = study.PublishedComparison('hpl', 'one', 'HPL', 'hpcc', 'HPL_Tflops',
                                'Gflop/s', outcome.Direction.UP, 'table 1',
                                native=50.0, guest=45.0)
STUDY = study.Study(
    'S9', 'A study', 'CERN-HEPiX-2015', ('one machine',), (CASE,), (ROW,),
    ('measure it',))


class TestOfStudy(testtools.TestCase):
    def test_it_can_be_written_as_json(self):
        found = document.describe_study(STUDY)
        self.assertEqual(found, json.loads(json.dumps(found)))
        self.assertEqual('S9', found['id'])
        self.assertEqual(['one'], [case['id'] for case in found['cases']])

    def test_it_says_where_the_study_was_published(self):
        found = document.describe_study(STUDY)['document']
        self.assertEqual('CERN-HEPiX-2015', found['key'])
        self.assertIn('title', found)
        self.assertNotIn('file', found)

    def test_a_row_has_its_ratio(self):
        row, = document.describe_study(STUDY)['rows']
        self.assertEqual((50.0, 45.0), (row['native'], row['guest']))
        self.assertAlmostEqual(0.9, row['ratio'])


class TestOfComparison(testtools.TestCase):
    def test_a_published_figure_stands_next_to_the_results(self):
        compared = study_runs.of_row([study_runs.hpcc(0.04, 0.038)],
                                     'S1', 'hpl-small-on')
        found = document.describe_comparison(compared)
        self.assertEqual(found, json.loads(json.dumps(found)))
        self.assertAlmostEqual(compared.row.guest / compared.row.native,
                               found['row']['ratio'])
        result, = found['results']
        self.assertAlmostEqual(0.95, result['interval']['ratio'])

    def test_a_case_without_a_published_figure_has_no_row(self):
        _, compared = study_runs.compared('S5', [])
        found = [document.describe_comparison(each) for each in compared]
        self.assertEqual(
            ['passthrough', 'virtio', 'collectives'],
            [each['case']['id'] for each in found if each['row'] is None])
