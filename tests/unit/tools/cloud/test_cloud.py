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

"""The parts of the one-machine cloud that need no cloud."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

from tools.cloud import errors
from tools.cloud import fleet
from tools.cloud import inifile
from tools.cloud import processes
from tools.cloud import settings as cloud_settings


class TemporaryTest(unittest.TestCase):

    def setUp(self):
        directory = tempfile.TemporaryDirectory(dir='/tmp')
        self.addCleanup(directory.cleanup)
        self.path = pathlib.Path(directory.name)
        self.settings = cloud_settings.Settings(state=self.path)
        self.settings.prepare()


class SettingsTest(TemporaryTest):

    def load(self, **variables):
        with mock.patch.dict(os.environ, variables):
            return cloud_settings.load()

    def test_choices_are_checked(self):
        for name, value in (('DIR', 'relative'), ('DIR', '/' + 50 * 'x'),
                            ('PORT_BASE', 'http'), ('PORT_BASE', '80'),
                            ('PAGES', '-1'), ('VIRT_TYPE', 'xen'),
                            ('FILTER', 'none')):
            with self.subTest(name=name, value=value):
                self.assertRaises(errors.CloudError, self.load,
                                  **{f'HPCVIRT_CLOUD_{name}': value})

    def test_password_stays_the_same_and_is_private(self):
        before = self.settings.password
        self.settings.prepare()
        self.assertEqual(before, self.settings.password)
        mode = (self.settings.cache / 'password').stat().st_mode
        self.assertEqual(0o600, mode & 0o777)

    def test_no_two_listeners_share_a_port(self):
        ports = list(cloud_settings.PORTS.values())
        self.assertEqual(len(ports), len(set(ports)))


class InifileTest(TemporaryTest):

    def test_option_given_several_times(self):
        path = self.path / 'x.conf'
        inifile.write(path, inifile.merge(
            {'a': {'one': '1', 'two': ['x', 'y']}},
            {'a': {'one': True}, 'b': {'three': 3}}))
        self.assertEqual('[a]\none = true\ntwo = x\ntwo = y\n\n'
                         '[b]\nthree = 3\n', path.read_text())


class ProcessesTest(TemporaryTest):

    def setUp(self):
        super().setUp()
        self.running = processes.Processes(self.settings)
        self.addCleanup(lambda: self.running.stop(self.running.names(), 0.1))

    def start(self, script):
        self.running.start('one', ['sh', '-c', script])

    def test_started_program_is_known_and_stopped(self):
        self.start('echo hello; exec sleep 60')
        pid = self.running.pid('one')
        deadline = time.monotonic() + 20
        while self.running.tail('one') != 'hello':
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        self.running.stop(['one'])
        self.assertIsNone(processes.stat(pid))
        self.assertEqual([], self.running.names())

    def test_children_of_a_dead_program_are_ended(self):
        self.start('sleep 60 & echo $!; exit 0')
        deadline = time.monotonic() + 20
        while self.running.alive('one') or 'no' in self.running.tail('one'):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        child = int(self.running.tail('one'))
        self.assertIsNotNone(processes.stat(child))
        self.running.stop(['one'])
        self.assertIsNone(processes.stat(child))

    def test_second_start_is_no_second_program(self):
        self.start('exec sleep 60')
        pid = self.running.pid('one')
        self.start('exec sleep 60')
        self.assertEqual(pid, self.running.pid('one'))

    def test_number_of_somebody_else_is_left_alone(self):
        other = subprocess.Popen(['sleep', '60'])
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        directory = self.settings.run / 'pid'
        directory.mkdir()
        (directory / 'one').write_text(f'{other.pid} 12345\n')
        self.assertFalse(self.running.alive('one'))
        self.running.stop(['one'])
        self.assertIsNone(other.poll())

    def test_program_that_leaves_the_session_is_swept(self):
        script = ('import os, subprocess as s; '
                  'p = s.Popen(["sleep", "9"], start_new_session=True); '
                  'print(p.pid, flush=True); os._exit(0)')
        self.running.start('one', [sys.executable, '-c', script])
        deadline = time.monotonic() + 20
        while not self.running.tail('one').isdigit():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        child = int(self.running.tail('one'))
        while self.running.sweep() == 0:
            self.assertLess(time.monotonic(), deadline)
        while processes.stat(child) is not None:
            self.assertLess(time.monotonic(), deadline)


class FleetTest(TemporaryTest):

    def test_hosts_are_shipped_topologies(self):
        fleet.write_topologies(self.settings)
        for host in fleet.FLEET:
            self.assertIn(f'"{host}"',
                          fleet.topology(self.settings, host).read_text())

    def test_cpu_list(self):
        self.assertEqual({0, 1, 2, 8}, fleet.cpu_list('0-2,8'))
        self.assertEqual(set(), fleet.cpu_list(''))
