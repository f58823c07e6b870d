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

"""Guests that are rebooted before a sample."""

import dataclasses
import os
import pathlib
import shutil
import tempfile
import unittest
import unittest.mock

from hpcvirt import exception
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import local
from hpcvirt.bench.execute import reboot
from hpcvirt.bench.model import record
from hpcvirt.bench.run import run_spec
from hpcvirt.bench.run import sampler
from hpcvirt.bench.run import schedule
from hpcvirt.bench.run import target
from hpcvirt.cmd.bench import targets
from tests.unit.bench import run_case


class Guest:
    """A place whose kernel is another after each reboot.

    :ivar silent: commands that are not answered while it boots
    :ivar done: what was done to it, in order
    """

    name = 'guest'

    def __init__(self, silent=0, deaf=False):
        self._inner = local.LocalExecutor()
        self._boots = 0
        self._coming_up = 0
        self._silent = silent
        self._deaf = deaf
        self.done = []

    def run(self, argv, stdin=b'', timeout_s=executor.SHORT_S):
        if self._coming_up:
            self._coming_up -= 1
            raise exception.ConnectionLost('guest: no route')
        if argv[-1] == reboot.BOOT_ID:
            return executor.Completed(0, b'boot %d\n' % self._boots, b'')
        if argv[0] == 'sync':
            self.done.append('sync')
            return executor.Completed(0, b'', b'')
        return self._inner.run(argv, stdin, timeout_s)

    def reboot(self):
        self.done.append('reboot')
        if not self._deaf:
            self._boots += 1
            self._coming_up = self._silent

    def close(self):
        pass


class RebootTest(unittest.TestCase):

    def test_it_waits_for_another_kernel(self):
        guest = Guest(silent=3)
        reboot.reboot(guest, guest, pause_s=0)
        self.assertEqual(['sync', 'reboot'], guest.done)
        self.assertEqual(0, guest.run(['true']).status)

    def test_a_guest_that_does_not_reboot_differs_from_one_that_is_lost(self):
        for guest, cause in (
                (Guest(deaf=True), 'it is still running as before'),
                (Guest(silent=10 ** 6), 'no route')):
            with self.assertRaisesRegex(exception.Unreachable,
                                        f'did not reboot.*{cause}'):
                reboot.reboot(guest, guest, 0.05, 0.01)


class SampleTest(unittest.TestCase):

    def setUp(self):
        self.scratch = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.scratch)

    def job(self, place, others=(), files=None, **known):
        script = self.scratch / 'script'
        script.write_text('#!/bin/sh\necho "HS06: 300"\n')
        script.chmod(0o755)
        spec = run_spec.make(catalogue.get('hs06'), None,
                             sizing.Machine(2, 1024), {'script': str(script)})
        if files:
            spec = dataclasses.replace(spec, inputs=files)
        return run_spec.JobSpec(spec, self.target(place, 'a', **known),
                                others)

    def target(self, place, label, **known):
        return target.Target(place, label, directory=self.directory('here'),
                             **known)

    def directory(self, name):
        return str(self.scratch / name)

    def sample(self, *jobs, launch=None, position=0):
        slot = schedule.Slot(position, record.Arm.GUEST, 0, warm_up=False)
        return sampler.sample(
            jobs, 'run', slot, [{} for _ in jobs],
            lambda name, content: record.RawOutput(name, name, '',
                                                   len(content)),
            launch=launch)

    def test_a_cold_sample_is_the_first_of_a_new_guest(self):
        guest = Guest()
        for position in range(2):
            sample = self.sample(self.job(guest, rebooter=guest),
                                 launch=record.Launch.COLD, position=position)
            self.assertIs(record.Launch.COLD, sample.launch)
            self.assertTrue(sample.outcome.valid, sample.outcome.reason)
        self.assertEqual(['sync', 'reboot'] * 2, guest.done)

    def test_a_warm_one_is_left_alone(self):
        guest = Guest()
        sample = self.sample(self.job(guest, rebooter=guest),
                             launch=record.Launch.WARM)
        self.assertIs(record.Launch.WARM, sample.launch)
        self.assertEqual([], guest.done)

    def test_a_guest_whose_job_runs_is_not_rebooted_again(self):
        guest = Guest()
        job = self.job(guest, rebooter=guest)
        self.sample(job, launch=record.Launch.COLD)
        self.sample(job, launch=record.Launch.COLD)
        self.assertEqual(['sync', 'reboot'], guest.done)

    def test_all_guests_of_a_sample_are_rebooted(self):
        first, second = Guest(), Guest()
        other = self.target(second, 'b', rebooter=second)
        self.sample(self.job(first, (other,), rebooter=first),
                    launch=record.Launch.COLD)
        self.assertEqual([['sync', 'reboot']] * 2,
                         [first.done, second.done])

    def test_a_machine_that_is_no_instance_cannot_be_rebooted(self):
        with self.assertRaisesRegex(exception.InvalidInput,
                                    'local: cannot be rebooted'):
            self.sample(self.job(local.LocalExecutor()),
                        launch=record.Launch.COLD)

    def test_files_of_a_job_that_spans_lie_in_every_place(self):
        there = Elsewhere(self.directory('here'), self.directory('there'))
        job = self.job(
            local.LocalExecutor(),
            (self.target(there, 'b'),),
            {'data': b'\x00'})
        sample = self.sample(job)
        for name in ('here', 'there'):
            path = self.scratch / name / 'run' / '0000.0' / 'data'
            self.assertEqual(b'\x00', path.read_bytes())
        self.assertEqual('elsewhere', sample.environment['place@b'])
        sampler.clean(job, 'run')
        self.assertEqual([], os.listdir(self.scratch / 'here'))
        self.assertEqual([], os.listdir(self.scratch / 'there'))


class Elsewhere:
    """A machine whose disk is another directory."""

    name = 'elsewhere'

    def __init__(self, asked, real):
        self._asked = asked
        self._real = real

    def run(self, argv, stdin=b'', timeout_s=executor.SHORT_S):
        return local.LocalExecutor().run(
            [word.replace(self._asked, self._real) for word in argv], stdin,
            timeout_s)

    def close(self):
        pass


class LaunchCommandTest(run_case.RunCase):

    def setUp(self):
        super().setUp()
        self.guest = Guest()
        find = targets.find

        def instead(text, cloud):
            if text == 'server:hpc-1':
                return target.Target(self.guest, 'hpc-1', 'hpc-1', 'n17',
                                     'hpc.2c', rebooter=self.guest)
            return find(text, cloud)
        self.enterContext(unittest.mock.patch.object(
            targets, 'find', instead))

    def words(self, *more, native='local', where='server:hpc-1'):
        words = super().words(pairs=2, native=native)
        words[words.index('--where') + 1] = where
        return [*words, *more]

    def launches(self, run):
        return [(sample['arm'], sample['warm_up'], sample['launch'])
                for sample in run['samples']]

    def test_cold_guests_are_not_warmed_up_and_native_ones_are(self):
        run = self.result(*self.words('--launch', 'cold'), status=1)['runs'][0]
        native, guest = ('native', False, None), ('guest', False, 'cold')
        self.assertEqual([('native', True, None), native, guest, guest,
                          native], self.launches(run))
        self.assertEqual('cold', run['launch'])
        self.assertEqual(['sync', 'reboot'] * 2, self.guest.done)

    def test_warm_is_what_happens_otherwise(self):
        run = self.result(*self.words(), status=1)['runs'][0]
        self.assertEqual(
            [('native', True, None), ('guest', True, None),
             ('native', False, None), ('guest', False, 'warm'),
             ('guest', False, 'warm'), ('native', False, None)],
            self.launches(run))
        self.assertEqual([], self.guest.done)

    def test_both_are_two_runs_that_are_judged_together(self):
        result = self.result(*self.words('--launch', 'both'), status=1)
        self.assertEqual(['warm', 'cold'],
                         [run['launch'] for run in result['runs']])
        self.assertEqual(
            ['npb-ep serial hpc.2c warm', 'npb-ep serial hpc.2c cold'],
            [made['label'] for made in result['verdict']['judgements']])

    def test_reports_tell_cold_from_warm(self):
        words = [word for word in self.words('--launch', 'both')
                 if word not in ('--format', 'json')]
        _, out, err = self.run_(*words)
        self.assertIn('npb-ep serial hpc.2c cold', out, err)
        self.assertIn('npb-ep serial hpc.2c warm', out)
        self.assertIn('cold: the guest was relaunched before each', out)
        page = self.scratch / 'page.html'
        status, _, err = self.run_('bench', 'report', '--data',
                                   str(self.scratch / 'data'), '--html',
                                   str(page))
        self.assertEqual(0, status, err)
        text = page.read_text()
        self.assertIn('npb-ep serial hpc.2c cold', text)
        self.assertIn('relaunched before each', text)

    def test_a_guest_that_cannot_be_rebooted_is_refused(self):
        for words, said in (
                (self.words('--launch', 'cold', where=self.server.url),
                 'it is not given as server:'),
                (self.words('--launch', 'both', native='server:hpc-1'),
                 'the native place is the guest itself')):
            with self.subTest(said=said):
                status, out, err = self.run_(*words)
                self.assertEqual((2, ''), (status, out))
                self.assertEqual(1, len(err.splitlines()), err)
                self.assertIn(said, err)
        self.assertFalse((self.scratch / 'data').exists())
