# SPDX-License-Identifier: Apache-2.0

"""A cloud that exists only as an empty state directory."""

import pathlib
import tempfile
import unittest

from tests.system.cloud import settings as cloud_settings


class CloudCase(unittest.TestCase):
    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory(dir='/tmp')
        self.addCleanup(directory.cleanup)
        self.path = pathlib.Path(directory.name)
        self.settings = cloud_settings.Settings(state=self.path)
        self.settings.prepare()
