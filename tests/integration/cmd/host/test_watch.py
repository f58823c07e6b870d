# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt host watch`` and ``supervise`` as processes."""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
import unittest
import urllib.request
from unittest import mock

from tests.builders import commands
from tests.builders import folders
from tests.builders import strangers
from tests.builders import supervised

HPCVIRT = (sys.executable, '-m', 'hpcvirt.cmd.main')


@contextlib.contextmanager
def watching(*words):
    """Watch this machine, and check that SIGTERM is obeyed."""
    with subprocess.Popen([*HPCVIRT, 'host', 'watch', '--interval=1', *words],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as process:
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            if process.wait(30):
                raise AssertionError(process.stderr.read())
        finally:
            process.kill()


class WatchTest(unittest.TestCase):
    def setUp(self):
        self.folder = folders.make(self)

    def test_this_machine_is_exported_on_a_port_and_in_a_file(self):
        path = self.folder / 'n1.prom'
        with watching('--serve=127.0.0.1:0', '--dedicated=0',
                      f'--textfile={path}') as process:
            url = process.stdout.readline().split()[1]
            opener = urllib.request.build_opener(
                urllib.request.ProxyHandler({}))
            text = ''
            while 'hpcvirt_host_rate{' not in text:
                with opener.open(url, timeout=30) as answer:
                    text = answer.read().decode()
                time.sleep(0.1)
        for found in (text, path.read_text()):
            for line in ('quantity="interrupts",sign="shootdowns"',
                         'quantity="foreign_tasks",sign="foreign-tasks"',
                         'hpcvirt_host_sample_timestamp_seconds 1.',
                         'hpcvirt_host_slab_bytes '):
                self.assertIn(line, found)
            # That takes ten minutes.
            self.assertNotIn('hpcvirt_host_score{', found)

    def test_what_is_not_known_here_is_said_and_not_exported(self):
        if os.path.exists('/sys/devices/system/edac/mc/mc0'):
            self.skipTest('this machine counts memory errors')
        path = self.folder / 'n1.prom'
        with watching(f'--textfile={path}') as process:
            line = ''
            while 'memory-errors cannot be known here' not in line:
                line = process.stderr.readline()
        self.assertNotIn('memory-errors', path.read_text())


class SuperviseTest(unittest.TestCase):
    def setUp(self):
        self.folder = folders.make(self)

    def supervise(self, score, *words, status=0):
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith('OS_')}
        environment['OS_CLIENT_CONFIG_FILE'] = '/nowhere'
        with mock.patch.dict(os.environ, environment, clear=True):
            done = commands.run(
                *supervised.write(self.folder, 'n1', score), *words)
        self.assertEqual(status, done.status, done)
        return done.out

    def test_a_slow_host_is_named_until_it_is_over(self):
        self.assertEqual('', self.supervise(0.0))
        self.assertIn('n1: cpu-shootdowns on cpu7 at 1.7 times its limit',
                      self.supervise(1.7))
        self.supervise(0.0)
        self.assertIn('n1: cpu-shootdowns is over', self.supervise(0.0))

    def test_what_the_cloud_does_not_have_yet_is_status_2(self):
        out = self.supervise(1.7, '--apply', status=2)
        self.assertIn('n1: quarantine failed, and is tried again', out)
        # The cloud may have got it.
        self.assertTrue(json.loads((self.folder / 'state').read_text())[
            'hosts']['n1']['changing'])

    def test_a_supervisor_ends_at_sigterm(self):
        words = supervised.write(self.folder, 'n1', 1.7)[:-1]
        with subprocess.Popen([*HPCVIRT, *words], stdout=subprocess.PIPE,
                              text=True) as process:
            self.addCleanup(process.kill)
            self.assertIn('n1: cpu-shootdowns', process.stdout.readline())
            process.send_signal(signal.SIGTERM)
            self.assertEqual(0, process.wait(30))


class SecondSupervisorTest(unittest.TestCase):
    """One state has one supervisor, whatever other users do."""

    def setUp(self):
        self.folder = folders.make(self)
        self.words = supervised.write(self.folder, 'n1', 1.7)
        self.state, self.lock = (self.folder / name
                                 for name in ('state', 'state.lock'))

    @contextlib.contextmanager
    def supervising(self):
        with subprocess.Popen([*HPCVIRT, *self.words[:-1]],
                              stdout=subprocess.DEVNULL) as process:
            try:
                while 'over_s' not in self.state.read_text():
                    time.sleep(0.1)
                    self.assertIsNone(process.poll())
                yield process
            finally:
                process.kill()

    def run_once(self, words=None):
        done = commands.run(*(words or self.words))
        return done.status, done.err

    def check_refused(self, said, words=None):
        before = self.state.read_text()
        status, line = self.run_once(words)
        self.assertEqual((2, 1), (status, line.count('\n')), line)
        self.assertIn(said, line)
        self.assertEqual(before, self.state.read_text())

    def test_a_second_one_is_refused(self):
        alias = self.folder / 'alias'
        alias.symlink_to(self.state)
        linked = [str(alias) if word == str(self.state) else word
                  for word in self.words]
        with self.supervising() as process:
            for words in (self.words, linked):
                self.check_refused(
                    f'is used by process {process.pid} on ', words)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(0, process.wait(30))
        self.assertEqual((0, ''), self.run_once())

    def test_the_lock_of_one_that_was_killed_does_not_block(self):
        with self.supervising() as process:
            process.kill()
        self.assertTrue(self.lock.exists())
        self.assertEqual((0, ''), self.run_once())

    @unittest.skipIf(os.geteuid(), 'only root can become another user')
    def test_a_stranger_can_neither_misuse_the_lock_nor_hold_it(self):
        self.folder.chmod(0o1777)
        target = self.folder / 'target'
        target.write_text('of root')
        target.chmod(0o600)

        def plant(make):
            child = os.fork()
            if not child:
                strangers.become_somebody()
                make()
                os._exit(0)
            os.waitpid(child, 0)

        for make in (
                lambda: self.lock.symlink_to(target),
                lambda: os.mkfifo(self.lock),
                lambda: self.lock.write_text('x') and self.lock.chmod(0o666)):
            plant(make)
            self.assertTrue(os.path.lexists(self.lock))
            self.check_refused(f'{self.lock}: ')
            self.assertEqual(('of root', 0o100600), (
                target.read_text(), target.stat().st_mode))
            self.lock.unlink()

        def hold():
            with contextlib.suppress(OSError), open(self.lock, 'rb') as held:
                fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
                time.sleep(60)

        with strangers.acting(hold):
            self.assertEqual((0, ''), self.run_once())

    @unittest.skipIf(os.geteuid(), 'only root can become another user')
    def test_root_may_use_the_state_of_a_service(self):
        for path in (self.folder, self.lock):
            path.touch()
            os.chown(path, strangers.SOMEBODY, strangers.SOMEBODY)
        self.assertEqual((0, ''), self.run_once())
        self.lock.touch()
        self.assertEqual((0, ''), self.run_once())
