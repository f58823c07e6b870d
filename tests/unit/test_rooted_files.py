# SPDX-License-Identifier: Apache-2.0

"""What the hosts of a site run of hpcvirt without having it."""

import ast
import pathlib
import sys
import unittest

from hpcvirt import rooted_files

COLLECTION = pathlib.Path(__file__).parents[2] / 'ansible'


class HostPythonTest(unittest.TestCase):
    """The files run on the oldest Python of a host, with nothing else."""

    def setUp(self):
        super().setUp()
        self.paths = [pathlib.Path(rooted_files.__file__),
                      COLLECTION / 'plugins/modules/host_files.py']

    def test_they_are_written_for_python_3_8(self):
        for path in self.paths:
            ast.parse(path.read_text(), feature_version=(3, 8))

    def test_the_writer_needs_only_the_standard_library(self):
        tree = ast.parse(self.paths[0].read_text())
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module]
            for name in names:
                self.assertIn(name.partition('.')[0],
                              sys.stdlib_module_names)

    def test_the_collection_has_the_same_file(self):
        link = COLLECTION / 'plugins/module_utils/rooted_files.py'
        self.assertEqual(self.paths[0].read_bytes(), link.read_bytes())
