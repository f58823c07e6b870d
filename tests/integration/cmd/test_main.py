# SPDX-License-Identifier: Apache-2.0

"""What the command loads, and what it says if a library is missing."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from hpcvirt.cmd import main

LOADED = """
import contextlib, io, json, sys
from hpcvirt.cmd import main
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()):
        with contextlib.suppress(SystemExit):
            main.main(words)
print(json.dumps(list(sys.modules)))
"""
WITHOUT = """
import sys
from hpcvirt.cmd import main
sys.modules[sys.argv[1]] = None
sys.exit(main.main(sys.argv[2:]))
"""
OUTPUT = (pathlib.Path(__file__).parents[2] /
          'data/bench/native_np1/hpccoutf.txt')
HEAVY = {'jinja2', 'keystoneauth1', 'novaclient', 'numpy', 'scipy',
         'sqlalchemy'}


def loaded(*commands):
    """Return what a process has loaded after some commands."""
    done = subprocess.run(
        [sys.executable, '-c', LOADED, json.dumps(commands)], check=True,
        capture_output=True)
    return set(json.loads(done.stdout))


class LoadTest(unittest.TestCase):
    def test_only_the_noun_of_the_command_is_loaded(self):
        modules = loaded(('host', 'show', '--help'))
        self.assertIn('hpcvirt.cmd.host.topology', modules)
        self.assertEqual([], [name for name in modules if name.startswith(
            ('hpcvirt.cmd.bench', 'hpcvirt.cmd.flavor', 'cmd2'))])

    def test_help_and_what_is_read_load_no_heavy_library(self):
        self.assertEqual(set(), HEAVY & loaded(
            *((*group.split(), '--help') for group in main.GROUPS),
            ('bench', 'parse', 'hpcc', str(OUTPUT)), ('bench', 'list')))


class MissingLibraryTest(unittest.TestCase):
    def test_one_line_names_what_to_install(self):
        for library, words in (
                ('sqlalchemy', ('bench', 'report')),
                ('jinja2', ('bench', 'report'))):
            with (self.subTest(library),
                  tempfile.TemporaryDirectory() as data):
                done = subprocess.run(
                    [sys.executable, '-c', WITHOUT, library, *words, '--data',
                     data], check=False, capture_output=True, text=True)
                self.assertEqual((2, ''), (done.returncode, done.stdout))
                self.assertEqual(
                    f'hpcvirt: {library} is not installed; it comes with the '
                    'extra bench (page install/packages)\n', done.stderr)

    def test_a_replay_names_its_own_extra(self):
        for library in ('numpy', 'jinja2'):
            done = subprocess.run(
                [sys.executable, '-c', WITHOUT, library, 'simulate',
                 '--workload', 'cloud', '/'], check=False,
                capture_output=True, text=True)
            self.assertEqual((2, ''), (done.returncode, done.stdout))
            self.assertEqual(
                f'hpcvirt: {library} is not installed; it comes with the '
                'extra simulate (page install/packages)\n', done.stderr)
