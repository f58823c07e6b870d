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

"""Files for readers of workloads."""

import pathlib
import tempfile
import unittest

from hpcvirt import exception
from hpcvirt.simulate import read


class FilesTestCase(unittest.TestCase):
    """A test case that writes files and reads them as workloads."""

    def setUp(self):
        super().setUp()
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder = pathlib.Path(directory.name)

    def write(self, content, name='log'):
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str)
                         else content)
        return str(path)

    def read(self, content, **arguments):
        return read.workload(self.write(content), **arguments)

    def fails(self, content):
        """Return the message for what cannot be read, which is one line."""
        with self.assertRaises(exception.InvalidInput) as caught:
            self.read(content)
        self.assertNotIn('\n', str(caught.exception))
        return str(caught.exception)
