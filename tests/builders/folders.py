# SPDX-License-Identifier: Apache-2.0

"""Directories of single tests."""

import pathlib
import tempfile
import unittest


def make(case: unittest.TestCase, place: str | None = None) -> pathlib.Path:
    """Create a directory that goes when the test ends.

    :param place: where; by default where temporary files are, mostly in memory
    """
    directory = tempfile.TemporaryDirectory(dir=place)
    case.addCleanup(directory.cleanup)
    return pathlib.Path(directory.name)
