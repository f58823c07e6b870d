# SPDX-License-Identifier: Apache-2.0

"""The directories of jobs, and those of programs."""

import os
import pathlib
import subprocess
import unittest
from unittest import mock

from hpcvirt import exception
from hpcvirt import waiting
from hpcvirt.bench.execute import job
from hpcvirt.bench.execute import job_scripts
from hpcvirt.bench.execute import local
from hpcvirt.bench.execute import program_directory
from tests.builders import folders

#: Any user but the one that runs the tests.
SOMEBODY = 65534


class JobDirectoryTest(unittest.TestCase):
    def setUp(self):
        self.scratch = folders.make(self)
        self.enterContext(mock.patch.dict(os.environ, {
            'HOME': str(self.scratch / 'home'), 'XDG_STATE_HOME': ''}))

    def prepare(self, directory):
        made = job.Job(local.LocalExecutor(), str(directory))
        return made, pathlib.Path(made.prepare(['true'], {'data': b'x'}, {}))

    def test_it_is_below_the_home_of_the_user(self):
        _, place = self.prepare('run-1/0001.0')
        self.assertEqual(self.scratch / 'home/.local/state/hpcvirt/run-1'
                         / '0001.0', place)

    def test_it_is_below_the_state_home_if_there_is_one(self):
        state = self.scratch / 'state'
        for given, wanted in ((str(state), state),
                              ('state', self.scratch / 'home/.local/state')):
            with mock.patch.dict(os.environ, XDG_STATE_HOME=given):
                _, place = self.prepare('run-1/0001.0')
            self.assertEqual(wanted / 'hpcvirt/run-1/0001.0', place)

    def test_only_its_user_can_enter_it_whatever_the_umask(self):
        self.addCleanup(os.umask, os.umask(0))
        for directory in ('run-1/1', self.scratch / 'disk' / 'run-1' / '1'):
            _, place = self.prepare(directory)
            for path in (place, place.parent, place.parents[1]):
                self.assertEqual(0o700, path.stat().st_mode & 0o777)
            for name in ('command', 'data'):
                self.assertEqual(0, (place / name).stat().st_mode & 0o077)

    def test_one_that_others_can_change_is_not_used(self):
        parent = self.scratch / 'disk'
        parent.mkdir()
        for mode in (0o777, 0o1777, 0o770, 0o720, 0o702):
            parent.chmod(mode)
            with self.assertRaisesRegex(
                    exception.Unreachable, f'{parent} belongs to user '
                    f'{os.getuid()} with mode .*nobody else may write'):
                self.prepare(parent / 'run-1' / '1')
            self.assertEqual([], os.listdir(parent))
        for mode in (0o700, 0o755, 0o750):
            parent.chmod(mode)
            self.prepare(parent / 'run-1' / '1')

    @unittest.skipIf(os.geteuid(), 'only root can give directories away')
    def test_one_of_another_user_is_not_used(self):
        parent = self.scratch / 'disk'
        parent.mkdir()
        os.chown(parent, SOMEBODY, SOMEBODY)
        with self.assertRaisesRegex(exception.Unreachable,
                                    f'belongs to user {SOMEBODY}'):
            self.prepare(parent / 'run-1' / '1')

    def test_a_stopped_run_leaves_nothing(self):
        place = local.LocalExecutor()
        for parent in ('', str(self.scratch / 'disk')):
            run = job_scripts.make_path(parent, 'one')
            for name in ('0000.0', '0001.0', '0002.0'):
                made = job.Job(place, f'{run}/{name}')
                made.prepare(['true'] if name == '0000.0' else
                             ['sleep', '60'], {}, {})
                made.start(0)
            ended = job.Job(place, f'{run}/0000.0')
            waiting.poll(ended.poll, lambda state: isinstance(
                state, job.Ended), 20, 0.05)
            self.assertEqual(job.Stopped(2, 1),
                             job.stop_run(place, 'one', parent))
            self.assertEqual(job.Stopped(),
                             job.stop_run(place, 'one', parent, {0}))
            state = parent or f'{self.scratch}/home/.local/state/hpcvirt'
            self.assertEqual([], os.listdir(state))

    def test_the_runs_that_left_something_are_found(self):
        place = local.LocalExecutor()
        for parent in ('', str(self.scratch / 'a disk')):
            self.assertEqual((), job.find_runs(place, ['one'], parent))
            made = job.Job(place, job_scripts.make_path(
                parent, 'one') + '/0000.0')
            made.prepare(['true'], {}, {})
            self.assertEqual(('one',), job.find_runs(
                place, ['two', 'one', 'on'], parent))

    def test_jobs_of_another_machine_with_this_home_are_left_alone(self):
        made, place = self.prepare('run-one/0000.0')
        made.start(0)
        (place / 'host').write_text('other\n')
        self.assertEqual(job.Stopped(),
                         job.stop_run(made.place, 'one'))
        self.assertTrue(place.exists())
        made.remove()


class TrustTest(unittest.TestCase):
    def setUp(self):
        self.scratch = folders.make(self)
        self.leaf = self.scratch / 'a b' / 'bin'
        self.leaf.mkdir(parents=True)

    def trust(self):
        return subprocess.run(
            ['sh', '-c', program_directory.TRUST + 'trust "$1"', 'test',
             str(self.leaf)], capture_output=True, text=True, check=False)

    def test_a_directory_of_the_caller_is_trusted(self):
        self.assertEqual((0, ''), (self.trust().returncode,
                                   self.trust().stderr))

    def test_its_group_is_trusted(self):
        self.leaf.chmod(0o775)
        self.assertEqual(0, self.trust().returncode)

    def test_others_must_not_write_to_it_or_to_one_above_it(self):
        for path in (self.leaf, self.leaf.parent):
            for mode in (0o777, 0o1777, 0o707):
                with self.subTest(path=path.name, mode=oct(mode)):
                    path.chmod(mode)
                    done = self.trust()
                    # What is in a sticky directory belongs to its owner,
                    # and only root's is not removed by its owner.
                    if (path, mode) == (self.leaf.parent, 0o1777) and (
                            not os.geteuid()):
                        self.assertEqual(0, done.returncode)
                        continue
                    self.assertEqual(job_scripts.REFUSED,
                                     done.returncode)
                    self.assertIn(f'{path} belongs to user', done.stderr)
            path.chmod(0o755)

    @unittest.skipIf(os.geteuid(), 'only root can give directories away')
    def test_no_other_user_may_own_it(self):
        os.chown(self.leaf.parent, SOMEBODY, SOMEBODY)
        self.assertIn(f'belongs to user {SOMEBODY}', self.trust().stderr)
