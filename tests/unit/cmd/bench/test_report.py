# SPDX-License-Identifier: Apache-2.0

"""``bench report``: an empty store, a page, a file that is in the way."""

import os
import sqlite3
import unittest
from unittest import mock

from hpcvirt.bench.results import store
from tests.builders import commands
from tests.builders import folders
from tests.builders import runs


class ReportCommandTest(unittest.TestCase):
    def setUp(self):
        self.scratch = folders.make(self)

    def report(self, *words):
        return commands.run(
            'bench', 'report', '--data', str(self.scratch / 'data'), *words)

    def test_an_empty_store_is_no_error(self):
        self.assertEqual((0, 'No results yet.\n', ''), self.report())

    def test_a_page_is_whole_and_needs_nothing_from_elsewhere(self):
        page = self.scratch / 'page.html'
        self.assertEqual(0, self.report('--html', str(page))[0])
        text = page.read_text()
        self.assertTrue(text.rstrip().endswith('</html>'))
        for word in ('http://', 'https://', 'src=', '@import', '<link'):
            self.assertNotIn(word, text)

    def test_a_file_that_is_no_report_is_kept(self):
        page = self.scratch / 'thesis.html'
        page.write_text('three years of work')
        commands.check_refused(
            self, 'not a report', self.report('--html', str(page)))
        self.assertEqual('three years of work', page.read_text())

    def test_a_directory_that_is_missing_stays_missing(self):
        for words in (('bench', 'report'),
                      ('bench', 'study', 'compare', 'S1')):
            for url in ('', f'sqlite:///{self.scratch}/none/x'):
                with mock.patch.dict(os.environ, HPCVIRT_STORE=url):
                    commands.run(*words, '--data', self.scratch / 'none')
            self.assertEqual([], list(self.scratch.iterdir()))

    def test_a_store_that_cannot_be_used_is_one_line(self):
        for url in ('postgresql://db:port/x', 'postgresql://[::1/x',
                    'mysql+pymysql://me:pa55@db/x', 'x', 'sqlite:////dev/full',
                    'sqlite:////' + 'x' * 5000):
            with self.subTest(url):
                with mock.patch.dict(os.environ, HPCVIRT_STORE=url):
                    status, out, err = self.report()
                self.assertRegex(err, r'^(hpcvirt: [^\n]*\n)?$')
                self.assertNotIn('internal', err)
                self.assertNotIn('pa55', err)
                if len(url) < 5000:
                    self.assertEqual((2, ''), (status, out))

    def test_results_of_a_mix_have_parts(self):
        data = self.scratch / 'data'
        opened = store.Store(None, str(data))
        for name, speed in (('small', 98.0), ('large', 90.0)):
            opened.open_entry(store.Entry(
                name, name, '2026-11-20T10:00:00+00:00', None), {})
            measured = runs.run([100.0] * 10, [speed] * 10, id=f'of{name}')
            opened.add_run(name, 0, measured)
            for sample in measured.samples:
                opened.add_sample(measured.id, sample)
        opened.close()
        status, out, err = self.report('small*3', 'large')
        self.assertEqual((0, ''), (status, err))
        self.assertRegex(out, r'this mix loses 4[.]0 % \(its results '
                         r'(2[.]0, 10[.]0|10[.]0, 2[.]0) %\)[.]\n$')
        self.assertNotIn('mix', self.report('small', 'large').out)
        for words, said in ((['small*x'], r'small\*x: must end in a number'),
                            (['small*'], 'must end in a number of parts'),
                            (['small*nan'], 'must end in a number of parts'),
                            (['small*0'], 'must end in a number of parts'),
                            (['other*2'], 'other: the store has no such'),
                            (['small*2', '--html', 'x'], 'has no mix')):
            found = self.report(*words)
            self.assertEqual((2, ''), (found.status, found.out))
            self.assertRegex(found.err, f'^hpcvirt: [^\n]*{said}[^\n]*\n$')

    def test_an_unknown_result_is_named(self):
        commands.check_refused(self, 'deadbeef', self.report('deadbeef'))

    def test_results_beside_a_damaged_one_are_shown(self):
        data = self.scratch / 'data'
        opened = store.Store(None, str(data))
        for name in ('good', 'bad'):
            opened.open_entry(store.Entry(
                name, name, '2026-11-20T10:00:00+00:00', None), {})
            opened.add_run(name, 0, runs.stream(f'of{name}', host=name))
        opened.close()
        with sqlite3.connect(data / 'bench.sqlite') as connection:
            connection.execute(
                "UPDATE hpcvirt_runs SET document = '{' WHERE id = 'ofbad'")
        connection.close()
        status, out, err = self.report()
        self.assertEqual(0, status, err)
        self.assertIn('good', out)
        self.assertRegex(
            err, r'^[^\n]*run ofbad: [^\n]*the result bad is left out\n$')
        commands.check_refused(self, 'run ofbad', self.report('bad'))
        self.assertEqual(0, commands.run(
            'bench', 'study', 'compare', 'S1', '--data', data)[0])
        self.assertEqual(0, commands.run(
            'bench', 'report', '--unfinished', '--data', data)[0])
