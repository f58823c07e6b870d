# SPDX-License-Identifier: Apache-2.0

"""Which tests are loaded, and where they write."""

import contextlib
import os

import fixtures
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


class TestMemory(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)
        self.useFixture(fixtures.EnvironmentVariable('TMPDIR'))
        self.useFixture(fixtures.MonkeyPatch(
            'tools.run_tests.MEMORY_BYTES', 1 << 20))

    def choose(self):
        return run_tests.choose_folder(str(self.folder))

    def test_a_folder_with_room_is_chosen_unless_the_user_has(self):
        self.assertEqual(str(self.folder), self.choose())
        self.useFixture(fixtures.EnvironmentVariable('TMPDIR', '/var/tmp'))
        self.assertIsNone(self.choose())

    def test_a_folder_without_room_is_not(self):
        self.useFixture(fixtures.MonkeyPatch(
            'tools.run_tests.MEMORY_BYTES', 1 << 80))
        self.assertIsNone(self.choose())

    def test_a_folder_without_programs_is_not(self):
        """Docker mounts /dev/shm in this way."""
        found = list(os.statvfs(self.folder))
        found[8] |= os.ST_NOEXEC
        self.useFixture(fixtures.MonkeyPatch(
            'os.statvfs', lambda _: os.statvfs_result(found)))
        self.assertIsNone(self.choose())

    def test_where_there_is_no_such_folder_none_is(self):
        self.folder /= 'missing'
        self.assertIsNone(self.choose())
