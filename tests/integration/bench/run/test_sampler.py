# SPDX-License-Identifier: Apache-2.0

"""Samples of real jobs on this machine."""

import dataclasses
import os
import shutil
import unittest
from unittest import mock

from hpcvirt import exception
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.catalogue import sizing
from hpcvirt.bench.execute import environment
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import job_scripts
from hpcvirt.bench.execute import local
from hpcvirt.bench.model import record
from hpcvirt.bench.parsers import text
from hpcvirt.bench.run import run_request
from hpcvirt.bench.run import run_spec
from hpcvirt.bench.run import sampler
from hpcvirt.bench.run import schedule
from hpcvirt.bench.run import target
from tests.builders import folders
from tests.integration.bench import rebooting


class Elsewhere(local.LocalExecutor):
    """A machine whose disk is another directory."""

    name = 'elsewhere'

    def __init__(self, wanted, real):
        self._wanted = wanted
        self._real = real

    def run(self, argv, *more, **limits):
        done = super().run([word.replace(self._wanted, self._real)
                            for word in argv], *more, **limits)
        return dataclasses.replace(done, stdout=done.stdout.replace(
            self._real.encode(), self._wanted.encode()))


class OtherHome(local.LocalExecutor):
    """A machine on which the user has another home."""

    def __init__(self, home):
        self.name = home
        self._home = home

    def run(self, argv, *more, **limits):
        return super().run(['env', f'XDG_STATE_HOME={self._home}', *argv],
                           *more, **limits)


class RestartsOnce(local.LocalExecutor):
    """A machine that goes down before the job starts, and loses its disk."""

    def __init__(self, disk):
        self._disk = disk
        self._is_new = False

    def run(self, argv, *more, **limits):
        if not self._is_new and job_scripts.START in argv:
            self._is_new = True
            shutil.rmtree(self._disk)
            os.mkdir(self._disk)
        return super().run(argv, *more, **limits)


class Busy(local.LocalExecutor):
    """A machine that does not tell the state of a running job at first."""

    def __init__(self):
        self.rest = 2
        self._started = False

    def run(self, argv, *more, **limits):
        self._started |= job_scripts.START in argv
        if self._started and self.rest and job_scripts.POLL in argv:
            self.rest -= 1
            raise exception.TimedOut('sh did not end')
        return super().run(argv, *more, **limits)


#: What a program does.
GOOD = 'echo "HS06: 300"'
KILL_ALL = 'kill -KILL 0'


class SampleTest(unittest.TestCase):
    def setUp(self):
        self.scratch = folders.make(self)
        for name in ('here', 'there'):
            (self.scratch / name).mkdir()

    def job(self, place, others=(), files=None, label='a', program=GOOD,
            changes=None, **known):
        script = self.scratch / f'script-{label}'
        script.write_text(f'#!/bin/sh\n{program}\n')
        script.chmod(0o755)
        spec = run_spec.make(
            run_request.RunRequest(*catalogue.find('hs06'),
                                   {'script': str(script)}),
            sizing.Machine(2, 1024))
        if files:
            spec = dataclasses.replace(spec, inputs=files)
        spec = dataclasses.replace(spec, **changes or {})
        return run_spec.JobSpec(spec, self.target(place, label, **known),
                                others)

    def target(self, place, label, **known):
        return target.Target(place, label, directory=self.directory('here'),
                             **known)

    def directory(self, name):
        return str(self.scratch / name)

    def sample(self, *jobs, launch=None, position=0):
        due = schedule.PlannedSample(position, record.Side.GUEST, 0,
                                     warm_up=False,
                                     relaunch=launch is record.Launch.COLD)
        return sampler.sample(
            jobs, 'run', due, [{} for _ in jobs], environment.Environments(),
            lambda name, content: record.RawOutput(name, name, '',
                                                   len(content)),
            launch=launch)

    def test_a_cold_sample_is_the_first_of_a_new_guest(self):
        guest = rebooting.Guest()
        for position in range(2):
            sample = self.sample(self.job(guest, rebooter=guest),
                                 launch=record.Launch.COLD, position=position)
            self.assertIs(record.Launch.COLD, sample.launch)
            self.assertTrue(sample.outcome.valid, sample.outcome.reason)
        self.assertEqual(['sync', 'reboot'] * 2, guest.done)

    def test_a_guest_is_not_rebooted_before_a_warm_sample(self):
        guest = rebooting.Guest()
        sample = self.sample(self.job(guest, rebooter=guest),
                             launch=record.Launch.WARM)
        self.assertIs(record.Launch.WARM, sample.launch)
        self.assertEqual([], guest.done)

    def test_a_guest_whose_job_runs_is_not_rebooted_again(self):
        guest = rebooting.Guest()
        job = self.job(guest, rebooter=guest)
        self.sample(job, launch=record.Launch.COLD)
        self.sample(job, launch=record.Launch.COLD)
        self.assertEqual(['sync', 'reboot'], guest.done)

    def test_all_guests_of_a_sample_are_rebooted(self):
        first, second = rebooting.Guest(), rebooting.Guest()
        other = self.target(second, 'b', rebooter=second)
        self.sample(self.job(first, (other,), rebooter=first),
                    launch=record.Launch.COLD)
        self.assertEqual([['sync', 'reboot']] * 2, [first.done, second.done])

    def test_a_machine_that_is_no_instance_cannot_be_rebooted(self):
        with self.assertRaisesRegex(exception.InvalidInput,
                                    'local: cannot be rebooted'):
            self.sample(self.job(local.LocalExecutor()),
                        launch=record.Launch.COLD)

    def test_files_of_a_job_that_spans_are_in_every_place(self):
        there = Elsewhere(self.directory('here'), self.directory('there'))
        job = self.job(
            local.LocalExecutor(), (self.target(there, 'b'),),
            {'data': b'\x00'})
        sample = self.sample(job)
        for name in ('here', 'there'):
            path = self.scratch / name / 'run-run' / '0000.0' / 'data'
            self.assertEqual(b'\x00', path.read_bytes())
        self.assertEqual('elsewhere', sample.environment['place@b'])
        sampler.clean(job, 'run')
        self.assertEqual([], os.listdir(self.scratch / 'here'))
        self.assertEqual([], os.listdir(self.scratch / 'there'))

    def test_a_job_that_spans_needs_the_same_directory_everywhere(self):
        places = [OtherHome(str(self.scratch / name))
                  for name in ('here', 'there')]
        job = self.job(places[0], (self.target(places[1], 'b'),))
        job = dataclasses.replace(
            job, target=dataclasses.replace(job.target, directory=''))
        with self.assertRaisesRegex(
                exception.InvalidInput,
                'HPCVIRT_JOB_DIRECTORY: MPI needs the same directory'):
            self.sample(job)

    def reason(self, *jobs):
        sample = self.sample(*jobs)
        self.assertFalse(sample.outcome.valid)
        return sample.outcome.reason, sample.exit_status

    def test_a_job_that_is_always_lost_is_started_three_times(self):
        trace = self.scratch / 'trace'
        place = local.LocalExecutor()
        reason, status = self.reason(self.job(
            place, program=f'echo x >> {trace}\n{KILL_ALL}'))
        self.assertEqual('the job was lost 3 times: it was killed, or its '
                         'machine went down', reason)
        self.assertIsNone(status)
        self.assertEqual('x\nx\nx\n', trace.read_text())

    def test_a_job_that_is_lost_once_is_measured_after_all(self):
        once = self.scratch / 'once'
        sample = self.sample(self.job(
            local.LocalExecutor(),
            program=f'[ -e {once} ] || {{ : > {once}; {KILL_ALL}; }}\n'
            + GOOD))
        self.assertTrue(sample.outcome.valid, sample.outcome.reason)
        self.assertEqual(0, sample.exit_status)

    def test_a_job_whose_machine_restarts_before_it_starts_is_measured(self):
        sample = self.sample(self.job(RestartsOnce(self.directory('here'))))
        self.assertTrue(sample.outcome.valid, sample.outcome.reason)

    def test_the_other_jobs_are_stopped_if_one_is_lost(self):
        place = local.LocalExecutor()
        reason, status = self.reason(
            self.job(place, label='a', program=KILL_ALL),
            self.job(place, label='b', program='sleep 60'))
        self.assertIn('a: the job was lost 3 times', reason)
        self.assertIn('b: was stopped, since another job was lost', reason)
        self.assertIsNone(status)

    def test_a_job_that_takes_too_long_is_ended(self):
        definition = dataclasses.replace(catalogue.get('hs06'), time_limit_s=1)
        self.assertEqual(
            ('did not end within 1 s', 124),
            self.reason(self.job(local.LocalExecutor(), program='sleep 60',
                                 changes={'definition': definition})))

    def test_a_program_that_is_missing_is_named(self):
        for command in (('no-such-program',),
                        ('mpirun', '--allow-run-as-root', '-np', '1',
                         'no-such-program')):
            job = self.job(local.LocalExecutor(), changes={'command': command})
            with self.assertRaisesRegex(
                    sampler.JobNotStarted,
                    '^local: hs06 could not be started: .*no-such-program'):
                self.sample(job)
            # Once the program is there, its job is started anew.
            sample = self.sample(self.job(local.LocalExecutor()))
            self.assertTrue(sample.outcome.valid, sample.outcome.reason)
            sampler.clean(job, 'run')

    def test_a_program_that_prints_too_much_is_ended_with_its_sample(self):
        job = self.job(local.LocalExecutor(), program=(
            f'head -c {text.LIMIT_BYTES + 1} /dev/zero\necho $$ > '
            f'{self.scratch}/pid\nexec sleep 300'))
        with self.assertRaisesRegex(
                exception.Unreachable,
                '^local: the benchmark printed more than 64 MiB'):
            self.sample(job)
        pid = (self.scratch / 'pid').read_text().strip()
        try:
            with open(f'/proc/{pid}/status') as status:
                self.assertIn('State:\tZ', status.read())
        except FileNotFoundError:
            pass
        self.assertEqual([], os.listdir(os.path.join(
            self.directory('here'), 'run-run')))

    def test_the_errors_of_a_program_are_named(self):
        reason, _ = self.reason(self.job(
            local.LocalExecutor(), changes={'output': 'figures.txt'},
            program='echo "no licence" >&2; echo ---- >&2; exit 3'))
        self.assertEqual('left no figures.txt (exit status 3): no licence',
                         reason)

    def test_a_place_that_is_too_busy_to_answer_loses_no_sample(self):
        place = Busy()
        sample = self.sample(self.job(place, program=f'sleep 1; {GOOD}'))
        self.assertTrue(sample.outcome.valid, sample.outcome.reason)
        self.assertEqual(0, place.rest)
        place.rest = 1000
        with (mock.patch.object(executor, 'PATIENCE_S', 0.1),
              self.assertRaises(exception.TimedOut)):
            self.sample(self.job(place, program=f'sleep 1; {GOOD}'),
                        position=1)

    def test_an_output_that_is_missing_is_named(self):
        self.assertEqual(
            ('left no figures.txt (exit status 3)', 3),
            self.reason(self.job(local.LocalExecutor(), program='exit 3',
                                 changes={'output': 'figures.txt'})))
