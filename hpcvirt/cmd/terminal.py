# SPDX-License-Identifier: Apache-2.0

"""The width of the terminal."""

import os
import shutil
import sys


def width() -> int | None:
    """Return the columns of the terminal, or of the variable COLUMNS.

    :returns: None for a pipe or a file, which take lines of any length
    """
    if os.environ.get('COLUMNS') or sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    return None
