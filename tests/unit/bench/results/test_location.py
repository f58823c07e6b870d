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

import os
import pathlib
import tempfile
import unittest

from hpcvirt import exception
from hpcvirt.bench.results import location


class MakeDirectoryTest(unittest.TestCase):

    def setUp(self):
        self.path = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory())) / 'data'

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
