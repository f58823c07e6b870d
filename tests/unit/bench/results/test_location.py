# SPDX-License-Identifier: Apache-2.0

import os
from unittest import mock

import testtools

from hpcvirt.bench.results import location


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
