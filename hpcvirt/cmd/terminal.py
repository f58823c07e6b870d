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
