# SPDX-License-Identifier: Apache-2.0

"""The page of simulated results, as a reader of its elements sees it."""

import re

import testtools

from hpcvirt.bench.report import page
from hpcvirt.bench.report import summary
from hpcvirt.bench.studies import catalogue as study_catalogue
from tests.builders import page_reader
from tests.builders import shown_results

Reader = page_reader.Reader
words = page_reader.words


class TestPage(testtools.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shown = shown_results.shown()
        cls.text = page.page(cls.shown, 'Guest against native')
        cls.root = Reader(cls.text).root

    def section(self, id_):
        return next(section for section in self.root.iter('section')
                    if section.get('aria-labelledby') == id_)

    def result(self, benchmark):
        shown = next(each for each in self.shown
                     if each.result.runs[0].benchmark == benchmark)
        return self.section(shown.id)

    def test_it_is_the_same_each_time(self):
        some = self.shown[4:12]
        self.assertEqual(page.page(some, 'x'), page.page(some[::-1], 'x'))

    def test_a_pass_says_for_which_runs_it_holds(self):
        self.assertIn('PASS for at least', words(self.root))

    def test_the_summary_is_first_and_worst_first(self):
        self.assertEqual('Summary', words(next(self.root.iter('h2'))))
        section = self.section('summary')
        self.assertIn(f'{len(self.shown)} results: ', words(section))
        table = next(section.iter('table'))
        found = [words(row[0]) for row in table.find('tbody')]
        self.assertEqual(
            [word for word in summary.ORDER for line in found
             if (word or 'not judged') in line], [
                 line.split()[-1] if line != 'not judged' else ''
                 for line in found])
        lines = {words(row[1]): words(row[5]) for row in table.find('tbody')}
        self.assertIn('Differs between the sides: CPU model',
                      lines['osu-latency mpi'])
        self.assertTrue(any('StarRandomAccess_GUPs 0.70' in words(row[5])
                            for row in table.find('tbody')))
        self.assertIn('more message sizes', lines['osu-latency mpi'])
        self.assertIn('Less noise', lines['npb-cg mpi'])
        self.assertIn('without --pairs', lines['npb-ft mpi'])
        self.assertIn('1 of 24 samples failed', lines['npb-sp mpi'])
        self.assertIn('fix the cause', lines['npb-sp mpi'])
        self.assertIn('--native TARGET', lines['npb-ep mpi'])

    def test_hosts_that_stand_out_are_in_the_summary(self):
        self.assertRegex(
            words(self.section('summary')),
            r'compute7\S+: stream openmp hpc.24c warm triad_mb_s, native: '
            r'.*worse')

    def test_a_heading_names_what_was_measured(self):
        heading = words(next(self.result('netpipe').iter('h3')))
        for part in ('netpipe mpi', 'hpc.24c', shown_results.HOST,
                     'AMD EPYC 9654', 'AMD EPYC-Genoa',
                     'kernel 6.12.48+deb13-amd64', 'large pages',
                     'transparent huge pages always'):
            self.assertIn(part, heading)

    def test_verdicts_stand_beside_their_figures(self):
        rows = self.result('hpcc').find('table').findall('.//tr')
        self.assertEqual(['Figure', 'Verdict'],
                         [words(cell) for cell in rows[0][:2]])
        self.assertEqual(['HPL_Tflops Tflop/s', '✓ PASS'],
                         [words(cell) for cell in rows[2][:2]])

    def test_what_has_no_native_arm_is_not_judged(self):
        section = self.result('npb-ep')
        self.assertNotIn('INCONCLUSIVE', words(section))
        self.assertIn('not judged', words(next(section.iter('h3'))))
        self.assertIn('mops_total', words(section.find('table')))
        self.assertIn('--native TARGET', words(section))

    def test_a_figure_over_sizes_is_one_curve(self):
        section = self.result('netpipe')
        figures = section.findall('.//figure')
        self.assertEqual(2, len(figures))
        for figure in figures:
            drawing = figure.find('svg')
            kinds = {line.get('class') for line in drawing.iter('polyline')}
            self.assertLessEqual({'native', 'path'}, kinds)
            self.assertLess(90, len(figure.findall('.//details//tr')))
        table = section.find('table')
        self.assertGreater(6, len(table.findall('.//tr')))

    def test_sizes_without_figures_have_no_curve(self):
        section = self.result('osu-bandwidth')
        self.assertEqual([], section.findall('.//figure/svg'))
        self.assertIn('INVALID', words(section.find('table')))
        self.assertIn('(23 figures): 1 of 24 samples failed', words(section))

    def test_a_row_of_sizes_shows_the_worst(self):
        rows = self.result('osu-latency').find('table').findall('.//tbody/tr')
        self.assertEqual('latency_us, 1 B to 64 B us', words(rows[1][0]))
        self.assertIn('PASS', words(rows[1][1]))
        self.assertRegex(words(rows[-1][1]), 'FAIL [0-9]+ of [0-9]+ sizes')

    def test_a_study_has_a_drawing_beside_its_table(self):
        section = self.section('S1')
        drawing = section.find('div/figure/svg')
        self.assertIn('small-on', drawing.get('aria-label'))
        self.assertEqual(
            8, len([dot for dot in drawing.iter('circle')
                    if dot.get('class') == 'published']))
        self.assertIsNotNone(section.find('div/div/table'))

    def test_a_study_lists_what_it_printed_without_figures(self):
        found = study_catalogue.get('S2').statements
        self.assertTrue(found)
        shown = words(self.section('S2'))
        for statement in found:
            self.assertIn(f'{statement.text}: {statement.figure}', shown)

    def test_what_was_measured_once_is_folded_away(self):
        section = self.section('hosts')
        for card in section.findall("div[@class='cards']/div"):
            self.assertGreater(len(card.findall('.//circle')), 1)
        self.assertIn('npb-mg', words(section.find('details')))

    def test_many_hosts_that_do_not_stand_out_are_folded_away(self):
        hosts = [{'benchmark': 'npb-cg', 'host': f'n{number}'}
                 for number in range(page.MAX_CARDS)]
        root = Reader(page.page(shown_results.shown(hosts * 2), 'x')).root
        section = next(each for each in root.iter('section')
                       if each.get('aria-labelledby') == 'hosts')
        self.assertIsNone(section.find('div'))
        self.assertEqual(2 * page.MAX_CARDS, len(
            section.findall("details/div[@class='cards']/div")))

    def test_many_sizes_have_one_line_over_time(self):
        lines = [words(row) for row in
                 self.section('hosts').findall('details//tbody/tr')]
        self.assertEqual(2, sum('netpipe' in line and 'latency' in line
                                for line in lines))

    def test_tables_can_be_read_aloud(self):
        for table in self.root.iter('table'):
            self.assertIsNotNone(table.find('caption'))
            for cell in table.iter('th'):
                self.assertIn(cell.get('scope'), ('col', 'row', 'rowgroup'))
        for drawing in self.root.iter('svg'):
            self.assertEqual('img', drawing.get('role'))
            self.assertTrue(drawing.get('aria-label'))

    def test_a_verdict_has_more_than_a_colour(self):
        for word in self.root.iter('span'):
            if word.get('class', '').startswith('word'):
                self.assertIn(words(word), (
                    '✓ PASS', '✗ FAIL', '? INCONCLUSIVE', '! INVALID'))

    def test_links_lead_somewhere(self):
        ids = [element.get('id') for element in self.root.iter()
               if element.get('id')]
        self.assertEqual(sorted(set(ids)), sorted(ids))
        for link in self.root.iter('a'):
            self.assertIn(link.get('href')[1:], ids)

    def test_names_are_text(self):
        self.assertEqual([], [*self.root.iter('script'),
                              *self.root.iter('img')])
        self.assertNotIn('bold', map(words, self.root.iter('b')))
        self.assertIn('<b>bold</b> & "quoted"', words(self.result('npb-sp')))

    def test_it_needs_nothing_else(self):
        for word in ('http://', 'https://', 'src="', '@import', '<link',
                     'url('):
            self.assertNotIn(word, self.text)
        self.assertEqual([], re.findall(r'<\w+[^>]* on\w+=', self.text))
