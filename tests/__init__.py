# SPDX-License-Identifier: Apache-2.0

import os

from tests import limit

limit.install()

# Commands print to the tests as to a pipe, which has no width. tox passes on
# that of its terminal, and where the debugger uses readline (from Python 3.13
# on), it sets a width as soon as testtools is imported.
os.environ.pop('COLUMNS', None)
