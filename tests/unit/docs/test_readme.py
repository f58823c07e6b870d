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

"""What the front page shows is what the command prints."""

import contextlib
import io
import os
import pathlib
import re
import shlex
import unittest
from unittest import mock

from demo import transcript
from hpcvirt.cmd import main

ROOT = pathlib.Path(__file__).parents[3]


def printed(words):
    """Run the command in the root of the clone."""
    output = io.StringIO()
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(output):
        status = main.main(words)
    return status, output.getvalue()


class ReadmeTest(unittest.TestCase):

    def test_commands_print_what_the_page_shows(self):
        self.enterContext(mock.patch.dict(os.environ, COLUMNS='80'))
        seen = 0
        for command, shown in transcript.commands(ROOT / 'README.rst'):
            name, *words = shlex.split(command)
            if name != 'hpcvirt' or not shown.strip():
                continue
            status, output = printed(words)
            self.assertEqual(0, status)
            self.assertTrue(transcript.is_printed(shown, output), output)
            seen += 1
        self.assertGreater(seen, 0)

    def test_links_lead_to_files(self):
        page = (ROOT / 'README.rst').read_text()
        links = re.findall(r'<([\w./-]+)>`_', page)
        self.assertGreater(len(links), 3)
        for link in links:
            self.assertTrue((ROOT / link).is_file(), link)
