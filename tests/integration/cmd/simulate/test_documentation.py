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

"""The operator's page shows what the command prints."""

import contextlib
import io
import os
import pathlib
import re
import shlex
import textwrap
import unittest
from unittest import mock

from hpcvirt.cmd import main

ROOT = pathlib.Path(__file__).parents[4]
PAGE = (ROOT / 'docs' / 'source' / 'simulate.rst').read_text()


class DocumentationTest(unittest.TestCase):

    def test_the_first_example_prints_what_is_shown(self):
        command, shown = re.search(
            r'   \$ (hpcvirt simulate .*?[^\\])\n\n\.\. code-block:: text\n\n'
            r'((?:   [^\n]*\n|\n)+)', PAGE, re.DOTALL).groups()
        _, *words = shlex.split(command.replace('\\\n', ' '))
        with (contextlib.chdir(ROOT / 'etc' / 'hpcvirt'),
              contextlib.redirect_stdout(io.StringIO()) as out,
              contextlib.redirect_stderr(io.StringIO()),
              mock.patch.dict(os.environ, COLUMNS='80')):
            self.assertEqual(0, main.main(words))
        self.assertEqual(out.getvalue(), textwrap.dedent(shown).strip('\n')
                         + '\n')
