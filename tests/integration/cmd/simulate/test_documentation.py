# SPDX-License-Identifier: Apache-2.0

"""The operator's page shows what the command prints, or parts of it."""

import contextlib
import os
import re
import shlex
import textwrap
import unittest
from unittest import mock

from demo import transcript
from tests import pages
from tests.builders import commands

ROOT = pages.ROOT
PAGE = pages.read('user/simulate')


class DocumentationTest(unittest.TestCase):
    def test_the_first_example_prints_what_is_shown(self):
        command, shown = re.search(
            r'   \$ (hpcvirt simulate .*?[^\\])\n\n\.\. code-block:: text\n\n'
            r'((?:   [^\n]*\n|\n)+)', PAGE, re.DOTALL).groups()
        _, *words = shlex.split(command.replace('\\\n', ' '))
        with (contextlib.chdir(ROOT),
              mock.patch.dict(os.environ, COLUMNS='80')):
            status, out, _ = commands.run(*words)
        self.assertEqual(0, status)
        self.assertTrue(transcript.is_printed(textwrap.dedent(shown), out))
