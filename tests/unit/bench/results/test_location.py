# SPDX-License-Identifier: Apache-2.0

import os
import unittest
from unittest import mock

import testtools

from hpcvirt import exception
from hpcvirt.bench.results import location
from tests.builders import folders


class TestDefaultDirectory(testtools.TestCase):
    def find(self, **variables):
        with mock.patch.dict(os.environ, {'HOME': '/home/u', **variables}):
            return location.default_directory()

    def test_the_directory_of_data_is_used(self):
        self.assertEqual('/data/hpcvirt', self.find(XDG_DATA_HOME='/data'))

    def test_a_relative_one_is_ignored(self):
        # It would be another one in each working directory.
        for path in ('', 'data', './data'):
            self.assertEqual('/home/u/.local/share/hpcvirt',
                             self.find(XDG_DATA_HOME=path))


class MakeDirectoryTest(unittest.TestCase):
    def setUp(self):
        self.path = folders.make(self) / 'data'

    def make(self):
        location.make_directory(str(self.path))

    def test_a_new_directory_is_private_whatever_the_umask(self):
        self.addCleanup(os.umask, os.umask(0))
        self.make()
        self.assertEqual(0o700, self.path.stat().st_mode & 0o777)

    def test_a_directory_of_the_caller_stays_as_it_is(self):
        self.path.mkdir(0o775)
        self.path.chmod(0o775)
        self.make()
        self.assertEqual(0o775, self.path.stat().st_mode & 0o777)

    def test_one_that_everybody_writes_to_is_refused(self):
        for mode in (0o777, 0o1777):
            self.path.mkdir(exist_ok=True)
            self.path.chmod(mode)
            self.assertRaisesRegex(exception.InvalidInput, 'everybody',
                                   self.make)

    @unittest.skipIf(os.geteuid(), 'only root can give directories away')
    def test_one_of_another_user_is_refused(self):
        self.path.mkdir()
        os.chown(self.path, 65534, 65534)
        self.assertRaisesRegex(exception.InvalidInput, 'another user',
                               self.make)
