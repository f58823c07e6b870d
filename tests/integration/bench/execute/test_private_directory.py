# SPDX-License-Identifier: Apache-2.0

"""Directories that another user of the machine made, or can change."""

import os
import subprocess
import unittest

from hpcvirt import exception
from hpcvirt.bench.execute import job
from hpcvirt.bench.execute import job_scripts
from hpcvirt.bench.execute import local
from hpcvirt.bench.execute import program_directory
from tests.builders import folders

#: Any user but the one that runs the tests.
SOMEBODY = 65534


class PrivateDirectoryTest(unittest.TestCase):
    def setUp(self):
        self.scratch = folders.make(self)
        self.run_directory = self.scratch / 'hpcvirt-run'
        self.directory = self.run_directory / 'job'
        self.job = job.Job(local.LocalExecutor(), str(self.directory))

    def make(self):
        self.run_directory.mkdir(0o700)
        self.directory.mkdir(0o700)

    def operations(self):
        return {'prepare': lambda: self.job.prepare(['true'], {}, {}),
                'start': lambda: self.job.start(0),
                'poll': self.job.poll,
                'read': lambda: self.job.read('stdout'),
                'stop': self.job.stop,
                'remove': self.job.remove}

    def assert_refused(self, what):
        for name, operation in self.operations().items():
            with self.subTest(operation=name):
                with self.assertRaises(exception.Unreachable) as caught:
                    operation()
                self.assertIn(what, str(caught.exception))

    def test_a_new_directory_is_private_whatever_the_umask(self):
        self.addCleanup(os.umask, os.umask(0))
        self.job.prepare(['true'], {'data': b'x'}, {})
        for path in (self.run_directory, self.directory):
            self.assertEqual(0o700, path.stat().st_mode & 0o777)
        for name in ('command', 'data'):
            self.assertEqual(0, (self.directory / name).stat().st_mode & 0o077)

    def test_a_directory_that_others_can_enter_is_refused(self):
        self.make()
        for path in (self.run_directory, self.directory):
            for mode in (0o710, 0o701, 0o720, 0o702, 0o740, 0o704, 0o1777):
                with self.subTest(path=path.name, mode=oct(mode)):
                    path.chmod(mode)
                    self.assert_refused(f'{path} belongs to user')
            path.chmod(0o700)

    @unittest.skipIf(os.geteuid(), 'only root can give directories away')
    def test_a_directory_of_another_user_is_refused(self):
        self.make()
        for path in (self.directory, self.run_directory):
            os.chown(path, SOMEBODY, SOMEBODY)
            self.assert_refused(f'{path} belongs to user {SOMEBODY}')
            os.chown(path, os.getuid(), os.getgid())

    def test_a_link_to_a_private_directory_is_refused(self):
        other = self.scratch / 'other'
        other.mkdir(0o700)
        (other / 'job').mkdir(0o700)
        self.run_directory.symlink_to(other)
        self.assert_refused(f'{self.run_directory} is a symbolic link')

    def test_nothing_is_written_to_a_refused_directory(self):
        self.make()
        self.directory.chmod(0o777)
        self.assertRaises(exception.Unreachable, self.job.prepare, ['true'],
                          {}, {})
        self.assertEqual([], os.listdir(self.directory))

    def test_a_place_without_ls_is_refused(self):
        self.make()
        done = subprocess.run(
            ['/bin/sh', '-c', job_scripts.ENTER + 'enter "$1"; echo in',
             'test', str(self.directory)], env={'PATH': '/nowhere'},
            capture_output=True, text=True, check=False)
        self.assertEqual('', done.stdout)
        self.assertNotEqual(0, done.returncode)


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
