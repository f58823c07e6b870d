# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt host watch`` and ``supervise`` as processes."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import unittest
import urllib.request

from tests.builders import folders
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
        done = subprocess.run(
            [*HPCVIRT, *supervised.write(self.folder, 'n1', score), *words],
            capture_output=True, text=True, check=False, env=environment)
        self.assertEqual(status, done.returncode, done)
        return done.stdout

    def test_a_slow_host_is_named_until_it_is_over(self):
        self.assertEqual('', self.supervise(0.0))
        self.assertIn('n1: cpu-shootdowns on cpu7 at 1.7 times its limit',
                      self.supervise(1.7))
        self.supervise(0.0)
        self.assertIn('n1: cpu-shootdowns is over', self.supervise(0.0))

    def test_what_the_cloud_does_not_have_yet_is_status_2(self):
        out = self.supervise(1.7, '--apply', status=2)
        self.assertIn('n1: quarantine failed, next attempt in', out)
        self.assertFalse(json.loads((self.folder / 'state').read_text())[
            'hosts']['n1']['held'])

    def test_a_supervisor_ends_at_sigterm(self):
        words = supervised.write(self.folder, 'n1', 1.7)[:-1]
        with subprocess.Popen([*HPCVIRT, *words], stdout=subprocess.PIPE,
                              text=True) as process:
            self.addCleanup(process.kill)
            self.assertIn('n1: cpu-shootdowns', process.stdout.readline())
            process.send_signal(signal.SIGTERM)
            self.assertEqual(0, process.wait(30))
