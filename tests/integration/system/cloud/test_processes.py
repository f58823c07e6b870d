# SPDX-License-Identifier: Apache-2.0

import subprocess
import sys

from hpcvirt import waiting
from tests.system.cloud import processes
from tests.unit.system.cloud import cloud_case


class ProcessesTest(cloud_case.CloudCase):
    def setUp(self):
        super().setUp()
        self.running = processes.Processes(self.settings)
        self.addCleanup(lambda: self.running.stop(self.running.names(), 0.1))

    def wait_until(self, check):
        self.assertTrue(waiting.poll(check, bool, 20, 0.05))

    def start(self, script):
        self.running.start('one', ['sh', '-c', script])

    def test_started_program_is_found_and_stopped(self):
        self.start('echo hello; exec sleep 60')
        pid = self.running.pid('one')
        self.wait_until(lambda: self.running.tail('one') == 'hello')
        self.running.stop(['one'])
        self.assertIsNone(processes.stat(pid))
        self.assertEqual([], self.running.names())

    def test_children_of_a_program_that_ended_are_stopped(self):
        self.start('sleep 60 & echo $!; exit 0')
        self.wait_until(lambda: not self.running.alive('one')
                        and self.running.tail('one').isdigit())
        child = int(self.running.tail('one'))
        self.assertIsNotNone(processes.stat(child))
        self.running.stop(['one'], 0.1)
        self.assertIsNone(processes.stat(child))

    def test_running_program_is_not_started_again(self):
        self.start('exec sleep 60')
        pid = self.running.pid('one')
        self.start('exec sleep 60')
        self.assertEqual(pid, self.running.pid('one'))

    def test_other_program_with_the_same_pid_is_left_alone(self):
        other = subprocess.Popen(['sleep', '60'])
        self.addCleanup(other.wait)
        self.addCleanup(other.kill)
        directory = self.settings.run / 'pid'
        directory.mkdir()
        (directory / 'one').write_text(f'{other.pid} 12345\n')
        self.assertFalse(self.running.alive('one'))
        self.running.stop(['one'])
        self.assertIsNone(other.poll())

    def test_program_that_leaves_the_session_is_killed(self):
        script = ('import os, subprocess as s; '
                  'p = s.Popen(["sleep", "9"], start_new_session=True); '
                  'print(p.pid, flush=True); os._exit(0)')
        self.running.start('one', [sys.executable, '-c', script])
        self.wait_until(lambda: self.running.tail('one').isdigit())
        child = int(self.running.tail('one'))
        self.wait_until(self.running.sweep)
        self.wait_until(lambda: processes.stat(child) is None)
