# SPDX-License-Identifier: Apache-2.0

"""Which tests are loaded."""

import contextlib

import testtools

from tests.builders import folders
from tools import run_tests


class TestFolder(testtools.TestCase):
    def setUp(self):
        super().setUp()
        tree = folders.make(self)
        (tree / 'tests/unit/audit/rules').mkdir(parents=True)
        (tree / 'tests/unit/audit/test_report.py').write_text('')
        directory = contextlib.chdir(tree)
        directory.__enter__()
        self.addCleanup(directory.__exit__, None, None, None)

    def find(self, *arguments):
        return run_tests.find_folder('tests/unit', arguments)

    def test_a_name_is_loaded_from_its_folder(self):
        self.assertEqual('tests/unit/audit/rules',
                         self.find('tests.unit.audit.rules'))
        for name in ('tests.unit.audit', 'tests.unit.audit.test_report',
                     'tests.unit.audit.test_report.TestPage.test_a_title'):
            self.assertEqual('tests/unit/audit', self.find(
                '--exclude-regex', 'test_periodic_', name))

    def test_what_can_be_anywhere_is_searched_in_all_folders(self):
        for words in ((), ('audit',), ('tests.unit.test_words',),
                      ('tests.unit.(audit|fit)',), ('tests.functional',),
                      ('--concurrency', '4'), ('',), ('..',),
                      ('tests.unit.audit', '--serial')):
            self.assertEqual('tests/unit', self.find(*words), words)
