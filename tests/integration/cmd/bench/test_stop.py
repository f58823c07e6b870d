# SPDX-License-Identifier: Apache-2.0

"""Runs that go on or were interrupted, listed and stopped: real processes."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from tests.integration.bench import run_case

LIST = ('bench', 'report', '--unfinished')
STOP = ('bench', 'run', '--stop')


class StopTest(run_case.RunCase):
    def setUp(self):
        super().setUp()
        self.slow = self.scratch / 'slow'
        self.data = ('--data', str(self.scratch / 'data'))

    def started(self):
        """Start a run; its samples take long as soon as there is a file."""
        words = self.words(pairs=2)
        program = self.source / 'program.sh'
        first, rest = program.read_text().split('\n', 1)
        program.write_text(
            f'{first}\nwhile [ -e {self.slow} ]; do sleep 0.1; done\n{rest}')
        process = subprocess.Popen(
            [sys.executable, '-m', 'hpcvirt.cmd.main', *words],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait_for_samples(3)
        self.slow.touch()
        (entry,) = self.store().entries()
        deadline = time.monotonic() + 60
        before = set()
        # A process that stays belongs to the sample that takes long.
        while not before & (now := set(self.left(entry.id))):
            self.assertLess(time.monotonic(), deadline)
            before = now
            time.sleep(1)
        return words, process, entry.id

    def left(self, name):
        """The processes in the directories of a result."""
        for process in pathlib.Path('/proc').glob('[0-9]*'):
            try:
                where = os.readlink(process / 'cwd')
            except OSError:
                continue
            if f'/run-{name}' in where:
                yield process.name

    def listed(self):
        status, out, err = self.run_(*LIST, *self.data, '--format', 'json')
        self.assertEqual(0, status, err)
        return json.loads(out)

    def test_a_run_that_goes_on_is_listed_and_stopped(self):
        words, process, name = self.started()
        (run,) = self.listed()
        kept = self.samples()
        self.assertEqual(
            (name, f'process {process.pid} on {os.uname().nodename}',
             len(kept), 6, ['local', self.server.url]),
            (run['id'], run['state'], run['samples'],
             run['planned_samples'], run['targets']))
        self.assertGreater(run['remaining_s'], 0)
        # The same command is not run twice at once.
        status, _, err = self.run_(*words)
        self.assertEqual(2, status)
        self.assertIn(f'result {name} is being measured by process '
                      f'{process.pid} on ', err)
        status, out, err = self.run_(*STOP, name, '--host-key', 'accept-new',
                                     *self.data)
        self.assertEqual(0, status, err)
        self.assertIn(f'process {process.pid}: ended', out)
        self.assertIn('stopped 1', out)
        self.assertEqual(-signal.SIGTERM, process.wait(20))
        self.assertEqual([], list(self.left(name)))
        self.assertEqual([], self.list_left(name))
        (run,) = self.listed()
        self.assertEqual('interrupted', run['state'])
        self.assertRegex(self.run_(*LIST, *self.data)[1],
                         f'{name} .*interrupted .* {len(kept)} of 6 .*left')
        # It is continued as if nothing had happened.
        self.slow.unlink()
        result = self.result(*words, status=1)
        samples = result['runs'][0]['samples']
        self.assertEqual([sample.started_at for sample in kept],
                         [sample['started_at']
                          for sample in samples[:len(kept)]])
        self.assertEqual(6, len(samples))
        self.assertIn('No run is in', self.run_(*LIST, *self.data)[1])
        status, _, err = self.run_(*STOP, name, *self.data)
        self.assertEqual(2, status)
        self.assertIn('is finished', err)

    def test_periodic_what_an_interrupted_run_left_is_stopped(self):
        _, process, name = self.started()
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=60)[1].splitlines()
        self.assertEqual(130, process.returncode)
        self.assertIn('continues on its target', err[-1])
        self.assertIn('the same command continues the run', err[-1])
        self.assertIn(f'"hpcvirt bench run --stop {name}" ends it', err[-1])
        self.assertIn('left', err[-2])
        self.assertNotEqual([], list(self.left(name)))
        status, out, err = self.run_(*STOP, name, '--host-key', 'accept-new',
                                     *self.data)
        self.assertEqual(0, status, err)
        self.assertNotIn('process', out)
        self.assertEqual([], list(self.left(name)))
        # A target that is gone is named, and the others are stopped.
        self.server.close()
        status, out, err = self.run_(*STOP, name, '--host-key', 'accept-new',
                                     *self.data)
        self.assertEqual(2, status)
        self.assertIn('local: stopped nothing', out)
        self.assertIn('hpcvirt: not stopped: ', err)

    def test_periodic_what_is_not_continued_does_not_disturb_the_next(self):
        words, process, name = self.started()
        process.kill()
        process.wait()
        self.assertNotEqual([], list(self.left(name)))
        program = self.source / 'program.sh'
        program.write_text(program.read_text().replace(
            'while [', 'while false && ['))
        status, _, err = self.run_(*words)
        self.assertEqual(1, status, err)
        self.assertIn(f'result {name} is not continued', err)
        self.assertEqual([], list(self.left(name)))

    def test_a_result_that_is_not_there_is_named(self):
        status, _, err = self.run_(*STOP, 'x', *self.data)
        self.assertEqual((2, 'hpcvirt: x: the store has no such result\n'),
                         (status, err))
        self.assertEqual(0, self.run_(*LIST, *self.data)[0])
        self.assertFalse((self.scratch / 'data').exists())
