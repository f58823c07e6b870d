# SPDX-License-Identifier: Apache-2.0

"""Files for readers of workloads."""

import unittest

from hpcvirt.simulate import read
from tests.builders import folders
from tests.builders import refusals


class FilesTestCase(unittest.TestCase):
    """A test case that writes files and reads them as workloads."""

    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)

    def write(self, content, name='log'):
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str)
                         else content)
        return str(path)

    def read(self, content):
        return read.workload(self.write(content))

    def fails(self, content):
        """Return the message for what cannot be read, which is one line."""
        return refusals.message(self, self.read, content)
