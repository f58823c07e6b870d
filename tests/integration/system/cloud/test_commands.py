# SPDX-License-Identifier: Apache-2.0

import os
import socket
import subprocess
import sys

from hpcvirt import waiting
from tests.unit.system.cloud import cloud_case
from tests.system.cloud import commands
from tests.system.cloud import errors
from tests.system.cloud import probes
from tests.system.cloud import processes


class CommandsTest(cloud_case.CloudCase):
    def run_script(self, script, **options):
        commands.run(self.settings, 'one', ['sh', '-c', script], **options)

    def failure(self, script, **options):
        with self.assertRaises(errors.ServiceError) as caught:
            self.run_script(script, **options)
        return str(caught.exception)

    def test_output_is_appended_to_the_log(self):
        self.run_script('echo first')
        self.run_script('cat', text='second')
        self.assertEqual('first\nsecond',
                         (self.settings.log / 'one.log').read_text())

    def test_failure_quotes_only_its_own_output(self):
        self.run_script('echo before')
        text = self.failure('echo reason; exit 3')
        self.assertIn('status 3', text)
        self.assertIn('reason', text)
        self.assertNotIn('before', text)

    def test_program_that_takes_too_long_is_killed(self):
        self.assertIn('did not end within 0 s',
                      self.failure('exec sleep 60', limit_s=0.1))

    def test_error_of_the_watch_ends_the_program(self):
        def watch():
            raise errors.CloudError('a service ended')
        self.assertRaisesRegex(errors.CloudError, 'a service ended',
                               self.run_script, 'exec sleep 60', watch=watch)

    def test_arguments_of_a_script_are_not_those_of_its_process(self):
        (self.settings.venv / 'bin').mkdir(parents=True)
        os.symlink(sys.executable, self.settings.program('python'))
        script = self.path / 'script'
        script.write_text('import pathlib, sys\n'
                          'print(sys.argv[1:], __name__)\n'
                          'print(pathlib.Path("/proc/self/cmdline")'
                          '.read_bytes().count(b"pa55"))\n')
        commands.run_unseen(self.settings, 'two', [str(script), 'pa55', 'b'])
        self.assertEqual("['pa55', 'b'] __main__\n0\n",
                         (self.settings.log / 'two.log').read_text())


class ProbesTest(cloud_case.CloudCase):
    def setUp(self):
        super().setUp()
        self.running = processes.Processes(self.settings)
        self.addCleanup(lambda: self.running.stop(self.running.names(), 0.1))

    def wait(self, script, answers, limit_s=30):
        self.running.start('one', ['sh', '-c', script])
        results = iter(answers)
        probes.wait_for_service(self.running, 'one',
                                lambda: next(results, False), limit_s)

    def test_wait_ends_when_the_service_answers(self):
        self.wait('exec sleep 60', [False, True])

    def test_service_that_ends_is_an_error_with_its_log(self):
        self.assertRaisesRegex(errors.ServiceError, '(?s)one ended.*reason',
                               self.wait, 'echo reason', [])

    def test_service_that_does_not_answer_is_an_error(self):
        self.assertRaisesRegex(errors.ServiceError, 'did not answer within',
                               self.wait, 'exec sleep 60', [], limit_s=0.1)

    def test_port_is_open_while_a_program_listens(self):
        with socket.create_server(('127.0.0.1', 0)) as listener:
            port = listener.getsockname()[1]
            self.assertTrue(probes.port_open(port))
        self.assertFalse(probes.port_open(port))


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
