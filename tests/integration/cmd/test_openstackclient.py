# SPDX-License-Identifier: Apache-2.0

"""``openstack hpc ...`` in the real OpenStackClient, without any cloud."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

from hpcvirt.cmd import main
from tests.builders import folders

ROOT = pathlib.Path(__file__).parents[3]
HOST = ROOT / 'etc/hpcvirt/topologies/hs06-2s-16c.json'
FLEET = ROOT / 'etc/hpcvirt/fleets/three-hosts.json'
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
        self.folder = folders.make(self)
        self.environment = {
            **{name: value for name, value in os.environ.items()
               if not name.startswith('OS_')}, 'HOME': str(self.folder)}

    def run_python(self, program, words=()):
        done = subprocess.run(
            [sys.executable, '-c', program], input=json.dumps(words),
            capture_output=True, text=True, env=self.environment,
            cwd=self.folder, check=False)
        self.assertEqual(0, done.returncode, done.stderr)
        return json.loads(done.stdout)

    def test_every_command_answers_with_the_formatters(self):
        fleet = ['--fleet', str(FLEET)]
        wanted = ['--flavor', 'hpc.16c1n.2m', *fleet]
        log = self.folder / 'nova-scheduler.log'
        log.write_bytes(LOG.read_bytes())
        found, options = self.run_python(SEVERAL, [
            ['hpc', 'explain', *wanted, '-f', 'json'],
            ['hpc', 'explain', '--scheduler-log', str(log), '-f', 'json'],
            ['hpc', 'explain', '--flavor', 'none', *fleet],
            ['hpc', 'make-room', '--standing', 'hpc.16c1n.2m=1', *fleet],
            ['hpc', 'flavor', 'plan', '--profile', 'dense', str(HOST),
             '-f', 'json'],
            ['hpc', 'host', 'show', str(HOST), '-f', 'value', '-c', 'id'],
            ['hpc', 'bench', 'list', '-f', 'json'],
            ['hpc', 'flavor', 'apply', '--profile', 'dense', str(HOST)]])
        self.assertEqual([1, 1, 2, 0, 0, 0, 0, 2],
                         [status for status, *_ in found])
        explained, refused, none, standing, planned, cells, listed, _ = (
            text for _, text, _ in found)
        self.assertEqual(
            [('n1', False), ('n2', False), ('n3', False)],
            [(host['name'], host['fits'])
             for host in json.loads(explained)['hosts']])
        self.assertEqual(['n7', 'n4', 'm1'], [
            host['name'] for host in json.loads(refused)['hosts']])
        self.assertEqual(LOG.read_bytes(), log.read_bytes())
        self.assertEqual('', none)
        self.assertIn('n1', standing)
        self.assertEqual([8, 16, 24, 32], [
            flavor['vcpus'] for flavor in json.loads(planned)['flavors']])
        self.assertEqual(['0', '1'], cells.split())
        self.assertIn('stream', listed)
        for _, _, err in found:
            self.assertLessEqual(len([
                line for line in err.splitlines()
                if not line.startswith('Warning: ')]), 1, err)
        self.assertIn('--log-file', options)
        self.assert_not_taken(options)

    def test_periodic_the_program_itself_has_the_commands(self):
        done = subprocess.run(
            [PROGRAM, 'hpc', 'make-room', '--help'], check=True,
            capture_output=True, text=True, env=self.environment)
        self.assertIn('usage: openstack hpc make-room', done.stdout)
        self.assertIn('--moves K', done.stdout)

    def assert_not_taken(self, usual):
        """No option is one of OpenStackClient, or short for one."""
        for name in main.COMMANDS:
            parser = main.build_parser(name)
            for option in parser._option_string_actions:
                with self.subTest(command=name, option=option):
                    # --os-cloud has the same meaning in both.
                    self.assertTrue(
                        option in ('-h', '--help', '--os-cloud') or not any(
                            name.startswith(option) for name in usual))
