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

"""``openstack hpc ...`` in the real OpenStackClient, without any cloud."""

import argparse
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from hpcvirt.osc import commands

ROOT = pathlib.Path(__file__).parents[3]
HOST = ROOT / 'etc/hpcvirt/topologies/hs06-2s-16c.json'
USAGE = ROOT / 'etc/hpcvirt/fleets/three-hosts.json'
LOG = ROOT / 'tests/data/logs/nova-scheduler.log'
PROGRAM = pathlib.Path(sys.executable).with_name('openstack')

#: Runs several commands in one process, which loads OpenStackClient once.
SEVERAL = """
import contextlib, io, json, sys
from openstackclient import shell
found = []
for words in json.load(sys.stdin):
    with (contextlib.redirect_stdout(io.StringIO()) as out,
          contextlib.redirect_stderr(io.StringIO()) as err):
        status = shell.OpenStackShell().run(words)
    found.append((status, out.getvalue(), err.getvalue()))
options = sorted(shell.OpenStackShell().parser._option_string_actions)
print(json.dumps([found, options]))
"""


class OpenStackClientTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = {
            **{name: value for name, value in os.environ.items()
               if not name.startswith('OS_')}, 'HOME': folder.name}

    def run_python(self, program, words=()):
        done = subprocess.run(
            [sys.executable, '-c', program], input=json.dumps(words),
            capture_output=True, text=True, env=self.environment,
            cwd=self.folder, check=False)
        self.assertEqual(0, done.returncode, done.stderr)
        return json.loads(done.stdout)

    def test_every_command_answers_with_the_formatters(self):
        plan = self.folder / 'plan.json'
        fleet = [f'--topology={name}={HOST}' for name in ('n1', 'n2', 'n3')]
        fleet += [f'--usage={USAGE}', f'--flavors={plan}']
        wanted = ['--flavor', 'hpc.16c1n.2m', *fleet]
        hosts = [f'{name}={HOST}' for name in ('n1', 'n2', 'n3')]
        plan.write_text(subprocess.run(
            [sys.executable, '-m', 'hpcvirt.cmd.main', 'flavor', 'plan',
             '--profile', 'dense', '--format', 'json', *hosts], check=True,
            capture_output=True, text=True).stdout)
        log = self.folder / 'nova-scheduler.log'
        log.write_bytes(LOG.read_bytes())
        columns = ['-f', 'json', '-c', 'Name', '-c', 'code', '-c', 'fits']
        found, options = self.run_python(SEVERAL, [
            ['hpc', 'explain', *wanted, *columns],
            ['hpc', 'explain', '--hpc-log', str(log), *columns],
            ['hpc', 'explain', '--flavor', 'none', *fleet],
            ['hpc', 'capacity', *fleet, '-f', 'value', '-c', 'total'],
            ['hpc', 'make', 'room', *wanted, '-f', 'json', '-c', 'id',
             '-c', 'from', '-c', 'to', '-c', 'cells'],
            ['hpc', 'make', 'room', '--standing', 'hpc.16c1n.2m=1', *fleet],
            ['hpc', 'flavor', 'plan', '--profile', 'dense', str(HOST),
             '-f', 'value', '-c', 'vcpus'],
            ['hpc', 'flavor', 'lint', str(plan), '-f', 'json'],
            ['hpc', 'flavor', 'apply', '--profile', 'dense', str(HOST)]])
        self.assertEqual([1, 1, 2, 0, 0, 0, 0, 0, 1],
                         [status for status, *_ in found])
        explained, refused, none, total, moves, standing, vcpus, lint, _ = (
            text for _, text, _ in found)
        self.assertEqual([
            {'Name': 'n1', 'Fits': False, 'Code': 'no-cell'},
            {'Name': 'n2', 'Fits': False, 'Code': 'resources'},
            {'Name': 'n3', 'Fits': False, 'Code': 'no-cell'}],
            json.loads(explained))
        self.assertEqual(9, len(json.loads(refused)))
        self.assertEqual(LOG.read_bytes(), log.read_bytes())
        self.assertEqual('', none)
        self.assertEqual(['4', '0', '0', '0'], total.split())
        self.assertEqual([{'Id': 'ana', 'From': 'n1', 'To': 'n3',
                           'Cells': [1]}], json.loads(moves))
        self.assertIn('| ana | n1   | n3', standing)
        self.assertEqual('hpc.16c1n.2m, 1 of them: then on n1\n',
                         found[5][2])
        self.assertEqual(['8', '16', '24', '32'], vcpus.split())
        self.assertEqual([], json.loads(lint))
        self.assertIn('--log-file', options)
        self.assert_not_taken(options)

    def test_the_program_itself_has_the_commands(self):
        done = subprocess.run(
            [PROGRAM, 'hpc', 'make', 'room', '--help'], check=True,
            capture_output=True, text=True, env=self.environment)
        self.assertIn('usage: openstack hpc make room', done.stdout)
        self.assertIn('--moves K', done.stdout)

    def assert_not_taken(self, usual):
        """No option is one of OpenStackClient, or short for one."""
        found = importlib.metadata.entry_points(group='openstack.hpc.v1')
        self.assertEqual(6, len(found))
        for entry in found:
            command = entry.load()
            parser = argparse.ArgumentParser()
            command.arguments(commands._Adapted(parser))
            for option in parser._option_string_actions:
                with self.subTest(command=entry.name, option=option):
                    # --os-cloud has the same meaning in both.
                    self.assertTrue(
                        option in ('-h', '--help', '--os-cloud') or not any(
                            name.startswith(option) for name in usual))


class WithoutTest(unittest.TestCase):

    def test_hpcvirt_does_not_need_it(self):
        program = ('import sys\nfor name in ("cliff", "osc_lib", '
                   '"openstackclient"):\n    sys.modules[name] = None\n'
                   'from hpcvirt.cmd import main\nmain.build_parser()')
        subprocess.run([sys.executable, '-c', program], check=True)
