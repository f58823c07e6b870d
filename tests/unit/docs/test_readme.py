# SPDX-License-Identifier: Apache-2.0

"""What the front page shows is what the command prints."""

import contextlib
import os
import pathlib
import re
import shlex
import unittest
from unittest import mock

from demo import transcript
from tests.builders import commands

ROOT = pathlib.Path(__file__).parents[3]


def printed(words):
    """Run the command in the root of the clone."""
    with contextlib.chdir(ROOT):
        return commands.run(*words)[:2]


class ReadmeTest(unittest.TestCase):
    def test_commands_print_what_the_page_shows(self):
        self.enterContext(mock.patch.dict(os.environ, COLUMNS='80'))
        seen = 0
        for command, shown in transcript.commands(ROOT / 'README.rst'):
            name, *words = shlex.split(command)
            if name != 'hpcvirt' or not shown.strip():
                continue
            status, output = printed(words)
            self.assertEqual(int(words[0] == 'explain'), status)
            self.assertTrue(transcript.is_printed(shown, output), output)
            seen += 1
        self.assertGreater(seen, 0)

    def test_links_lead_to_files(self):
        page = (ROOT / 'README.rst').read_text()
        links = re.findall(r'<([\w./-]+)>`_', page)
        self.assertGreater(len(links), 3)
        for link in links:
            self.assertTrue((ROOT / link).is_file(), link)
