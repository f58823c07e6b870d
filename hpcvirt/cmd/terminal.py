# SPDX-License-Identifier: Apache-2.0

"""The width that text is drawn for."""

import os
import shutil
import sys


def width() -> int | None:
    """Return the columns of the terminal.

    The variable COLUMNS has the last word. None if the output goes to a pipe
    or a file, whose readers take lines of any length.
    """
    if os.environ.get('COLUMNS') or sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    return None
