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

"""``bench report``: an empty store, a page, a file that is in the way."""

import contextlib
import io
import pathlib
import shutil
import tempfile
import unittest

from hpcvirt.cmd import main


class ReportCommandTest(unittest.TestCase):

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.scratch)

    def report(self, *words):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main.main(['bench', 'report', '--data',
                                str(self.scratch / 'data'), *words])
        return status, out.getvalue(), err.getvalue()

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
        status, _, err = self.report('--html', str(page))
        self.assertEqual(2, status)
        self.assertIn('is no report', err)
        self.assertEqual('three years of work', page.read_text())

    def test_a_directory_that_is_missing_stays_missing(self):
        for words in (('bench', 'report'), ('study', 'compare', 'S1')):
            out = io.StringIO()
            with (contextlib.redirect_stdout(out),
                  contextlib.redirect_stderr(out)):
                main.main([*words, '--data', str(self.scratch / 'none')])
                main.main([*words, '--data', str(self.scratch / 'none'),
                           '--store', f'sqlite:///{self.scratch}/none/x'])
            self.assertEqual([], list(self.scratch.iterdir()))

    def test_a_store_that_cannot_be_used_is_one_line(self):
        for url in ('postgresql://db:port/x', 'postgresql://[::1/x',
                    'mysql+pymysql://me:pa55@db/x', 'x', 'sqlite:////dev/full',
                    'sqlite:////' + 'x' * 5000):
            with self.subTest(url):
                status, out, err = self.report('--store', url)
                self.assertRegex(err, r'^(hpcvirt: [^\n]*\n)?$')
                self.assertNotIn('internal', err)
                self.assertNotIn('pa55', err)
                if len(url) < 5000:
                    self.assertEqual((2, ''), (status, out))

    def test_an_unknown_result_is_named(self):
        status, _, err = self.report('deadbeef')
        self.assertEqual(2, status)
        self.assertIn('deadbeef', err)
