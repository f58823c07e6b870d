# SPDX-License-Identifier: Apache-2.0

import copy

import testtools

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.bench.catalogue import catalogue as benchmarks
from hpcvirt.bench.studies import catalogue as study_catalogue
from hpcvirt.bench.studies import study


class TestFind(testtools.TestCase):
    def test_a_study_is_found_by_its_id_in_any_case(self):
        self.assertEqual('S3', study_catalogue.get('s3').id)
        self.assertEqual(study_catalogue.get('S3'), study_catalogue.get('s3'))

    def test_an_unknown_study_is_refused_with_those_there_are(self):
        error = self.assertRaises(exception.InvalidInput,
                                  study_catalogue.get, 'S6')
        self.assertIn('S1, S2, S3, S4, S5', str(error))

    def test_all_studies_are_loaded_in_their_order(self):
        self.assertEqual(['S1', 'S2', 'S3', 'S4', 'S5'],
                         [study_.id for study_ in study_catalogue.studies()])


class TestStudies(testtools.TestCase):
    """What holds for every study."""

    def test_rows_and_cases_belong_together(self):
        for study_ in study_catalogue.studies():
            cases = {case.id for case in study_.cases}
            self.assertEqual(len(cases), len(study_.cases))
            ids = [row.id for row in study_.rows]
            self.assertEqual(len(set(ids)), len(ids))
            for row in study_.rows:
                self.assertIn(row.case, cases)

    def test_every_figure_has_its_place_in_the_document(self):
        for study_ in study_catalogue.studies():
            for each in (*study_.rows, *study_.statements):
                self.assertRegex(
                    each.place, r'^(last )?(table|slide|section|paragraph)',
                    f'{study_.id}: {each}')

    def test_a_figure_without_a_place_is_refused(self):
        plain = serialization.dump(study_catalogue.get('S5'))
        for kind in ('rows', 'statements'):
            broken = copy.deepcopy(plain)
            del broken[kind][0]['place']
            error = self.assertRaises(
                exception.InvalidInput, serialization.load,
                study.Study, broken, 'x')
            self.assertIn(f"{kind}[0]: the key 'place' is missing", str(error))

    def test_cases_name_existing_benchmarks(self):
        for study_ in study_catalogue.studies():
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
        for study_ in study_catalogue.studies():
            for row in study_.rows:
                known = benchmarks.output_source(row.benchmark)
                metrics = {
                    (figure.name, figure.direction)
                    for one in benchmarks.all_definitions()
                    if one.parser == known.parser for figure in one.metrics}
                self.assertIn((row.metric, row.direction), metrics)

    def test_shapes_are_those_of_the_study(self):
        shapes = {case.guests.shape
                  for case in study_catalogue.get('S4').cases}
        self.assertEqual({'4x8', '2x16', '1x24', '1x32'}, shapes)


#: Of an untuned guest, after the first optimization, and on the second type of
#: host: the score of one guest, and its spread.
SCORES = {'4x8': ('82.3 11', '87 11', '84 7'),
          '2x16': ('150 5', '163.5 1', '161 2'),
          '1x32': ('284 11', '311 1', '279 4')}


class TestScores(testtools.TestCase):
    """The nine scores of single guests of S4, as the slides print them."""

    def test_they_are_stored_and_add_up_to_the_totals(self):
        rows = {row.id: row for row in study_catalogue.get('S4').rows}
        for shape, scores in SCORES.items():
            for state, score in zip(('untuned', 'first', 'second'), scores,
                                    strict=True):
                row = rows[f'{shape}-{state}']
                each, spread = map(float, score.split())
                self.assertEqual((each, spread),
                                 (row.each_guest, row.each_spread))
                count = int(shape.partition('x')[0])
                self.assertAlmostEqual(row.guest, count * each, delta=0.5)
                self.assertIn(f'({each:g} +/- {spread:g} each)',
                              row.figures[1])

    def test_no_other_row_has_one(self):
        rows = [row for study_ in study_catalogue.studies()
                for row in study_.rows if row.each_guest is not None]
        self.assertEqual(9, len(rows))


class TestStudy(testtools.TestCase):
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

    def test_a_loss_below_a_percentage_is_a_ratio_above_another(self):
        for row_id, ratio in (('bandwidth', 'above 0.9800'),
                              ('latency-large', 'below 1.1000'),
                              ('qe-ethernet', 'above 6.0000')):
            self.assertEqual(ratio, self.row('S5', row_id).figures[2])
        self.assertEqual('at least 1.6300',
                         self.row('S2', 'nodes-virtio').figures[2])

    def test_a_mix_of_sizes_loses_what_the_slides_say(self):
        study_ = study_catalogue.get('S4')
        (mix,) = (each for each in study_.statements if each.mix)
        percent = study_.find_mix_percent(mix)
        # (348 + 327 + 311) / 3 of 357.
        self.assertAlmostEqual(100 * (1 - 986 / 3 / 357), percent)
        self.assertTrue(mix.value <= percent <= mix.to)

    def test_the_share_of_a_link_is_computed(self):
        figures = [each.figure for each in study_catalogue.get(
            'S5').statements if each.link]
        self.assertEqual(['3.8 GB/s, 95 % of the 4 GB/s of the link',
                          'about 400 MB/s, 32 % of the 1250 MB/s of the link'],
                         figures)

    def test_a_printed_number_may_be_a_range_or_a_limit(self):
        self.assertLessEqual(
            {'about 1 to 2 %', '7 to 8 %', '26 %', '6 %', '20 %',
             'above 100000 per second'},
            {each.figure for each in study_catalogue.get('S4').statements})
        self.assertLessEqual(
            {'25 times', 'about 10 to 50 %', 'at least 20 %',
             'below 10 times'},
            {each.figure for each in study_catalogue.get('S5').statements})

    def test_a_case_is_found_by_name(self):
        self.assertEqual('sriov', study_catalogue.get('S5').case('sriov').id)
        self.assertRaises(exception.InvalidInput,
                          study_catalogue.get('S5').case, 'x')

    def test_one_case_has_its_rows_only(self):
        limited = study_catalogue.get('S1').limited_to('small-on')
        self.assertEqual(['small-on'], [case.id for case in limited.cases])
        self.assertEqual(['ra-small-on', 'hpl-small-on'],
                         [row.id for row in limited.rows])
