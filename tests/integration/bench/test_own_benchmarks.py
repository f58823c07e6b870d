# SPDX-License-Identifier: Apache-2.0

"""The page about benchmarks of a site, followed to the letter.

The sample package is below ``~/hpcvirt/contrib``; the commands of the page
are run, and what they print must be what the page shows; ``...`` stands for
anything. Two commands are stand-ins: ``pip install`` writes the metadata that
it would write, since no test may need an index of packages, and ``podman``
runs a command on this machine.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap
import tomllib

import testtools

from tests.builders import folders
from tests.builders import packages

PAGE = (pathlib.Path(__file__).parents[3]
        / 'doc' / 'source' / 'user' / 'own-benchmarks.rst')
SESSION = re.compile(r'^\.\. code-block:: console\n\n((?:   .*\n|\n)+)',
                     re.MULTILINE)
#: Continued by a backslash at the end of a line.
COMMAND = re.compile(r'^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)', re.MULTILINE)

CONTRIB = pathlib.Path(__file__).parents[3] / 'contrib'
PODMAN = '#!/bin/sh\nshift 3\nexec "$@"\n'


def read_page():
    """Return the commands with what they print."""
    text = PAGE.read_text()
    commands = []
    for session in SESSION.findall(text):
        plain = textwrap.dedent(session).rstrip('\n') + '\n'
        commands += COMMAND.findall(plain)
    return commands


class TestPageOfOwnBenchmarks(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.home = folders.make(self)
        tools = self.home / 'tools'
        tools.mkdir()
        (tools / 'podman').write_text(PODMAN)
        (tools / 'podman').chmod(0o755)
        shutil.copytree(CONTRIB, self.home / 'hpcvirt' / 'contrib')
        self.environment = {
            **os.environ, 'HOME': str(self.home), 'COLUMNS': '80',
            'PYTHONPATH': os.pathsep.join(
                [str(self.home / 'installed'), *sys.path[1:]]),
            'PATH': os.pathsep.join((
                str(tools), str(pathlib.Path(sys.executable).parent),
                os.environ['PATH']))}

    def install(self, project):
        """Write what "pip install" would write for a project."""
        document = tomllib.loads((project / 'pyproject.toml').read_text())
        points = ''.join(
            f'[{group}]\n' + ''.join(f'{name} = {value}\n'
                                     for name, value in entries.items())
            for group, entries in
            document['project']['entry-points'].items())
        (self.home / 'installed').mkdir()
        packages.write(self.home / 'installed',
                       (project / 'site_hpc.py').read_text(), points)

    def run_command(self, line):
        if line.startswith('pip install '):
            self.install(pathlib.Path(line.split()[-1].replace(
                '~', str(self.home), 1)))
            return 0, ''
        ended = subprocess.run(
            ['sh', '-c', line + '\nstatus=$?; env > .environment; '
             'exit $status'], cwd=self.home, env=self.environment,
            capture_output=True, text=True, timeout=300, check=False)
        kept = (self.home / '.environment').read_text()
        found = re.search('^HPCVIRT_CATALOGUE=(.*)$', kept, re.MULTILINE)
        if found:
            self.environment['HPCVIRT_CATALOGUE'] = found[1]
        self.assertLess(ended.returncode, 2, f'{line}: {ended.stderr}')
        return ended.returncode, ended.stdout

    def test_all_commands_print_what_the_page_shows(self):
        commands = read_page()
        self.assertLess(8, len(commands))
        for line, shown in commands:
            status, printed = self.run_command(line)
            pattern = re.escape(shown.rstrip('\n')).replace(
                re.escape('...'), r'[\s\S]*')
            self.assertRegex(printed.rstrip('\n') + '\n',
                             rf'\A{pattern}\n*\Z', line)
            # What only "..." stands for may be PASS or not.
            if shown != '...\n':
                self.assertEqual(int('INVALID' in shown), status, line)

    def test_the_audit_has_the_rule_of_the_package(self):
        self.install(CONTRIB / 'site_hpc')
        ended = subprocess.run(
            ['hpcvirt', 'host', 'audit', '--format', 'json'], cwd=self.home,
            env=self.environment, capture_output=True, text=True, timeout=300,
            check=False)
        self.assertIn(ended.returncode, (0, 1), ended.stderr)
        self.assertIn('site-cells', ended.stdout)
