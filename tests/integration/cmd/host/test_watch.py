# SPDX-License-Identifier: Apache-2.0

"""``hpcvirt host watch`` as systemd, Prometheus and operators see it."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest
import urllib.request

from benchmarks import host_samples
from hpcvirt.health import recording
from tests.builders import folders

WATCH = (sys.executable, '-m', 'hpcvirt.cmd.main', 'host', 'watch',
         '--host=n1')


class WatchTest(unittest.TestCase):
    def setUp(self):
        self.folder = folders.make(self)
        self.state = self.folder / 'state'
        self.samples = self.folder / 'samples'

    def run_watch(self, *words, status=0):
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith('OS_')}
        environment['OS_CLIENT_CONFIG_FILE'] = '/nowhere'
        done = subprocess.run([*WATCH, *words], capture_output=True,
                              text=True, check=False, env=environment)
        self.assertEqual(status, done.returncode, done)
        return done

    def record(self, *minutes):
        for sample in host_samples.make_samples(minutes):
            recording.append(str(self.samples), sample)

    def test_this_machine_is_sampled_until_sigterm(self):
        with subprocess.Popen(
                [*WATCH, '--interval=1', '--serve=127.0.0.1:0',
                 f'--record={self.samples}', f'--state={self.state}',
                 '--dedicated=0'], stdout=subprocess.PIPE, text=True,
        ) as process:
            self.addCleanup(process.kill)
            url = process.stdout.readline().split()[1]
            opener = urllib.request.build_opener(
                urllib.request.ProxyHandler({}))
            text = ''
            while 'hpcvirt_host_rate{quantity="interrupts"}' not in text:
                with opener.open(url, timeout=30) as answer:
                    text = answer.read().decode()
            for line in ('hpcvirt_host_sign{sign="swapping"} 0.0',
                         ('hpcvirt_host_limit{quantity="system",'
                         'sign="shootdowns"} 0.3'),
                         'hpcvirt_host_quarantine_wanted 0.0',
                         'hpcvirt_host_quarantine_failures_total 0.0'):
                self.assertIn(line, text)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(0, process.wait(30))
        taken = list(recording.read(str(self.samples)))
        self.assertGreaterEqual(len(taken), 2)
        self.assertGreater(taken[-1].interrupts, taken[0].interrupts)
        self.assertEqual(taken[-1], recording.load(str(self.state)).last)
        self.assertIn('no sign is on', self.run_watch(
            f'--replay={self.samples}').stdout)

    def test_a_recording_is_replayed_and_goes_on_where_it_was(self):
        self.record(*[host_samples.SHOOTDOWNS] * 10)
        for _ in range(2):
            text = self.run_watch(f'--replay={self.samples}',
                                  f'--state={self.state}').stdout
            self.assertIn('n1: slow: system time 40%', text)
        self.samples.unlink()
        last = recording.load(str(self.state)).last
        for sample in host_samples.make_samples([{}] * 30, last):
            recording.append(str(self.samples), sample)
        text = self.run_watch(f'--replay={self.samples}',
                              f'--state={self.state}').stdout
        self.assertIn('n1: shootdowns is over', text)

    def test_what_the_cloud_does_not_have_yet_is_status_2(self):
        self.record(*[host_samples.SHOOTDOWNS] * 10)
        done = self.run_watch(f'--replay={self.samples}', '--apply',
                              f'--state={self.state}', status=2)
        self.assertIn('quarantine failed, next attempt in', done.stdout)
        self.assertIsNone(json.loads(self.state.read_text())['held'])

    def test_a_damaged_state_stops_nothing(self):
        self.record({}, {})
        self.state.write_text('{')
        done = self.run_watch(f'--replay={self.samples}',
                              f'--state={self.state}')
        self.assertIn('.unreadable', done.stderr)
        self.assertEqual('{', pathlib.Path(
            f'{self.state}.unreadable').read_text())
