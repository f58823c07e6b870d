# SPDX-License-Identifier: Apache-2.0

"""Directories of single tests."""

import pathlib
import tempfile
import unittest


def make(case: unittest.TestCase) -> pathlib.Path:
    """Create a directory that goes when the test ends."""
    directory = tempfile.TemporaryDirectory()
    case.addCleanup(directory.cleanup)
    return pathlib.Path(directory.name)
