# SPDX-License-Identifier: Apache-2.0

"""Files for readers of workloads."""

import unittest

from hpcvirt import exception
from hpcvirt.simulate import read
from tests.builders import folders


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
        with self.assertRaises(exception.InvalidInput) as caught:
            self.read(content)
        self.assertNotIn('\n', str(caught.exception))
        return str(caught.exception)
