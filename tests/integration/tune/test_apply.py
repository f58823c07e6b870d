# SPDX-License-Identifier: Apache-2.0

"""The command of an experiment that changes the settings of a host."""

import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest
from unittest import mock

from hpcvirt import child_process
from hpcvirt import exception
from hpcvirt import host_lock
from hpcvirt import waiting
from hpcvirt.tune import configurations
from hpcvirt.tune import experiment as experiments
from hpcvirt.tune import tuning
from tests.builders import folders
from tests.builders import hosts
from tests.integration import program_tests

DOCUMENT = {
    'kind': 'experiment', 'schema_version': 1,
    'name': 'demo', 'fleet': 'fleet.yaml',
    'host_class': 'n',
    'programs': {'npb-ep': {'benchmark': 'npb-ep', 'minutes': 1}},
    'choices': {'paging': {'off': {'host': {'ept': '0'}}}},
    'limits': {'hours': 1, 'reboots': 20},
    'apply': ['./apply.sh', '{host}', '{profile}', '{settings}']}

#: Around a program that applies the settings slowly, as Ansible does. It has
#: its own session, and closes what it has inherited, as programs in Python do.
APPLY = """\
#!/bin/sh
echo "begin $(cat "$3")" >> log
setsid {python} slow.py "$3" &
wait
"""
SLOW = """\
import os, pathlib, signal, sys, time
{ignore}
os.closerange(3, 64)
text = pathlib.Path(sys.argv[1]).read_text()
if text != '{{}}\\n':
    time.sleep({seconds})
with open('log', 'a') as log:
    log.write('applied ' + text)
pathlib.Path('settings').write_text(text)
"""
#: A process of hpcvirt that gives a host other settings, then restores it.
PROCESS = """\
import sys
from hpcvirt.cmd import command
from tests.integration.tune import test_apply
with command.interrupting_signals():
    test_apply.run(sys.argv[1], {minutes})
"""


def refuse(_process, _signal):
    """Stand in for a signal to a process of another user."""
    raise PermissionError


class Host:
    """A host without guests, whose quarantine is a file."""

    owner = 'n1'

    def __init__(self, folder):
        self.held = pathlib.Path(folder, 'held')

    def clear(self):
        pass

    def check_host(self, _host):
        pass

    def hold(self, _host, _hold):
        self.held.touch()

    def release(self, _host, _holder):
        self.held.unlink(missing_ok=True)


def make_tuning(folder, minutes=15.0, apply=None):
    """Make an experiment on one host."""
    space = configurations.plan(
        experiments.read(DOCUMENT, 'demo.yaml'), (hosts.build(cores=4),),
        {'base': 'default'}, 'demo.yaml')
    # The command may take ten times as long as a reboot.
    space = dataclasses.replace(space, experiment=dataclasses.replace(
        space.experiment, reboot_minutes=minutes,
        apply=space.experiment.apply if apply is None else apply))
    host = Host(folder)
    return tuning.Tuning(
        space=space, folder=str(folder), cloud=host, hosts=[host], store=None,
        data=f'{folder}/data', record=tuning.TuneRecord('demo', 'd'),
        connect=None, connect_native=None, show=None, say=print)


def run(folder, minutes, only_restore=False):
    """Give the host other settings, and restore it."""
    made = make_tuning(folder, minutes)
    other = next(levels for levels in made.space.configurations
                 if levels != made.space.today)

    def make_trials():
        made.cloud.hold('n1', None)
        made._set(made.hosts[0], other)

    with mock.patch.object(made, '_make_trials', make_trials):
        made.run(only_restore)


class ApplyTest(program_tests.ProgramTests, unittest.TestCase):
    def call(self, argv, limit_s):
        folder = folders.make(self)
        os.makedirs(folder / 'data' / 'tunes')
        made = make_tuning(folder, limit_s / 600, tuple(argv))
        with (mock.patch.object(host_lock, 'GRACE_S', 1.0),
              open(os.devnull, 'w') as nowhere,
              mock.patch.object(tuning, 'STDERR', nowhere.fileno())):
            made._apply('n1', made.space.configurations[made.space.today])
        return 0

    def bound(self, most_bytes):
        return mock.patch.object(tuning, 'MAX_APPLY_BYTES', most_bytes)

    def test_its_output_is_shown_as_it_comes(self):
        read, write = os.pipe()
        with (open(read, 'rb', 0) as shown, open(write, 'wb', 0) as stream,
              mock.patch.object(tuning, 'STDERR', stream.fileno())):
            folder = folders.make(self)
            os.makedirs(folder / 'data' / 'tunes')
            made = make_tuning(folder, apply=(
                'sh', '-c', 'echo one; echo two >&2'))
            made._apply('n1', made.space.configurations[made.space.today])
            self.assertEqual(b'one\ntwo\n', shown.read(100))

    def test_a_reader_that_stops_reading_holds_nobody(self):
        read, write = os.pipe()
        with (open(read, 'rb', 0), open(write, 'wb', 0) as stream,
              mock.patch.object(tuning, 'STDERR', stream.fileno())):
            folder = folders.make(self)
            os.makedirs(folder / 'data' / 'tunes')
            made = make_tuning(folder, 1 / 600, ('yes',))
            with self.assertRaisesRegex(exception.Unreachable,
                                        'did not end within 1 s'):
                made._apply('n1', made.space.configurations[made.space.today])


class EndTest(unittest.TestCase):
    """No host is restored while its settings are still being changed."""

    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)
        self.held = self.folder / 'held'
        self.write(seconds=3)

    def write(self, seconds, ignore=''):
        for name, text in (('apply.sh', APPLY.format(python=sys.executable)),
                           ('slow.py', SLOW.format(seconds=seconds,
                                                   ignore=ignore))):
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)

    def start(self, minutes=15.0):
        process = subprocess.Popen(
            [sys.executable, '-c', PROCESS.format(minutes=minutes),
             str(self.folder)], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertTrue(waiting.poll(
            lambda: self.log()[:1] == ["begin ept: '0'"], bool, 30, 0.05))
        # The program has begun to apply the settings.
        time.sleep(0.5)
        return process

    def log(self):
        path = self.folder / 'log'
        return path.read_text().splitlines() if path.exists() else []

    def check_restored(self):
        """Check that today's settings are the last, and stay so."""
        self.assertFalse(self.held.exists())
        time.sleep(5)
        self.assertEqual(["begin ept: '0'", 'begin {}', 'applied {}'],
                         self.log())
        self.assertEqual('{}\n', (self.folder / 'settings').read_text())
        self.assertEqual(['demo.json'], os.listdir(
            self.folder / 'data' / 'tunes'))

    def test_sigterm_ends_what_applies_a_trial_before_the_host_is_restored(
            self):
        process = self.start()
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        self.check_restored()

    def test_the_limit_ends_what_applies_a_trial_before_the_host_is_restored(
            self):
        process = self.start(minutes=2 / 600)
        out, _ = process.communicate(timeout=60)
        self.assertIn('did not end within 2 s', out)
        self.check_restored()

    def test_periodic_a_program_that_ignores_sigterm_is_killed_before(self):
        self.write(11, 'signal.signal(signal.SIGTERM, signal.SIG_IGN)')
        process = self.start()
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        self.check_restored()

    def test_what_a_killed_process_has_left_is_ended_by_the_next(self):
        process = self.start()
        process.kill()
        process.wait()
        self.assertTrue(self.held.exists())
        run(self.folder, 15.0, only_restore=True)
        self.check_restored()

    def test_no_second_process_changes_a_host_that_is_being_changed(self):
        process = self.start()
        path = tuning.locate(str(self.folder / 'data'), 'n1', 'apply')
        with (self.assertRaisesRegex(
                exception.Unreachable,
                f'^n1 is being changed by process {process.pid}$'),
              host_lock.lock(path, 'n1')):
            pass
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        self.check_restored()

    def test_a_host_is_not_restored_beside_what_cannot_be_ended(self):
        process = self.start()
        process.kill()
        process.wait()
        with (mock.patch.object(os, 'kill', refuse),
              mock.patch.object(host_lock, 'GRACE_S', 0.1),
              mock.patch('hpcvirt.process_tree.KILL_S', 0.1),
              self.assertRaisesRegex(exception.Unreachable,
                                     'n1 may still be changed by what an '
                                     'earlier run has started: process')):
            run(self.folder, 15.0, only_restore=True)
        self.assertTrue(self.held.exists())
        self.assertEqual(["begin ept: '0'"], self.log())
        run(self.folder, 15.0, only_restore=True)
        self.check_restored()

    def test_what_a_run_could_not_end_keeps_its_host(self):
        path = str(self.folder / 'lock')
        words = ['sh', '-c', 'setsid env -i sleep 300 & sleep 300']
        with (mock.patch.object(os, 'kill', refuse),
              mock.patch.object(os, 'killpg', refuse),
              mock.patch('hpcvirt.process_tree.KILL_S', 0.1),
              self.assertRaisesRegex(exception.Unreachable,
                                     'was ended, but not what it has started'),
              host_lock.lock(path, 'n1') as lock):
            child_process.run(words, where='apply', limit_s=1, environment={},
                              lock=lock)
        left = json.loads(pathlib.Path(path).read_text())['left']
        self.assertLess(1, len(left))
        with host_lock.lock(path, 'n1'):
            pass
        self.assertFalse(os.path.exists(path))
        for pid, _ in left:
            self.assertFalse(waiting.poll(
                lambda pid=pid: program_tests.is_running(pid),
                lambda found: not found, 10, 0.05))

    def test_a_lock_of_another_machine_is_not_broken(self):
        path = self.folder / 'lock'
        path.write_text(json.dumps({
            'machine': 'other', 'mark': 'm', 'owner': [7, 1], 'left': []}))
        with (self.assertRaisesRegex(
                exception.Unreachable, '^n1 is changed by process 7 on other'),
              host_lock.lock(str(path), 'n1')):
            pass
        self.assertTrue(path.exists())
