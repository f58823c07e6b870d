# SPDX-License-Identifier: Apache-2.0

"""Other users of the machine, while root runs jobs on it."""

import contextlib
import os
import pathlib
import random
import shutil
import subprocess
import threading
import unittest

from hpcvirt import exception
from hpcvirt.bench.execute import job
from hpcvirt.bench.execute import local
from hpcvirt.bench.run import runner
from tests.builders import folders

#: A user without rights.
SOMEBODY = 65534
USUAL_CASES, MANY_CASES = 100, 10_000
#: Of these, half are processes of the job.
CASES_OF_A_JOB = 50


@unittest.skipIf(os.geteuid(), 'only root starts processes of other users')
class StopTest(unittest.TestCase):
    """Only processes of the job get a signal when it is stopped."""

    def setUp(self):
        self.scratch = folders.make(self)
        self.scratch.chmod(0o755)
        self.job = job.Job(local.LocalExecutor(),
                           str(self.scratch / 'run' / '1'))
        self.addCleanup(self.job.remove)

    def start(self, directory, user=None, program='/bin/sleep'):
        directory.mkdir(parents=True, exist_ok=True)
        process = subprocess.Popen(
            ['sleep', '300'], executable=program, cwd=directory, user=user,
            start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_the_name_of_a_folder_names_no_process(self):
        self.job.prepare(['true'], {}, {})
        victim = self.start(self.scratch)
        stranger = self.start(self.scratch / (
            f'a -> {self.job.directory}/b /proc/{victim.pid}/c'), SOMEBODY)
        self.job.stop()
        self.assertEqual((None, None), (victim.poll(), stranger.poll()))

    def test_folders_that_have_gone_name_no_directory(self):
        # The kernel writes " (deleted)" behind the path of such a folder.
        self.job.prepare(['true'], {}, {})
        directory = pathlib.Path(self.job.directory)
        beside = [self.start(directory.parent / name)
                  for name in ('1x', '1 (deleted)')]
        own = self.start(directory / 'sub')
        (directory / 'sub').rmdir()
        self.job.stop()
        self.assertEqual([None, None], [each.poll() for each in beside])
        self.assertIsNotNone(own.wait(10))

    def test_a_process_of_another_user_in_the_directory_gets_no_signal(self):
        # A user can give any name to a folder in a mount namespace of his.
        self.job.prepare(['true'], {}, {})
        directory = pathlib.Path(self.job.directory)
        stranger, own = self.start(directory, SOMEBODY), self.start(directory)
        self.job.stop()
        self.assertIsNone(stranger.poll())
        self.assertIsNotNone(own.wait(10))

    def test_any_names_of_folders_and_programs(self):
        self.check(USUAL_CASES)

    def test_periodic_many_names_of_folders_and_programs(self):
        self.check(MANY_CASES)

    def check(self, cases):
        chance = random.Random(211)
        for _ in range(cases // CASES_OF_A_JOB):
            self.job.prepare(['true'], {}, {})
            victim = self.start(self.scratch)
            words = [' -> ', self.job.directory, f'/proc/{victim.pid}/cwd',
                     '\n', ' ', ')', ' (', '\\', '$(kill 1)', '*', "'", '"',
                     f'{victim.pid}', ') S 1 2 3 0', '/../', '\x1b[2J', '1',
                     f'{self.job.directory}/b /proc/{victim.pid}/c', '\udcff']
            strangers, own = [victim], []
            for _ in range(CASES_OF_A_JOB // 2):
                folder = ''.join(chance.choices(words, k=6))
                strangers.append(self.start(
                    self.scratch / f'other{folder}'.replace('/../', '/'),
                    SOMEBODY, self.program(chance, words)))
                own.append(self.start(
                    pathlib.Path(self.job.directory,
                                 'x' + folder.replace('/', '')[:200]),
                    program=self.program(chance, words)))
            self.job.remove()
            self.assertEqual({None}, {each.poll() for each in strangers})
            self.assertNotIn(None, [each.wait(10) for each in own])
            self.assertFalse(os.path.exists(self.job.directory))
            for each in strangers:
                each.kill()
                each.wait()

    def program(self, chance, words):
        """A program whose name Linux cuts after 15 bytes."""
        name = 'p' + ''.join(chance.choices(words, k=3)).replace('/', '')
        link = self.scratch / name[:60]
        if not os.path.lexists(link):
            link.symlink_to('/bin/sleep')
        return link


def refusals(exchange, act, least):
    """Count how often an act is refused while something is exchanged.

    :param least: how often to act at least; up to 150 times until it is
        refused once
    """
    done = threading.Event()

    def repeat():
        while not done.is_set():
            exchange()

    thread = threading.Thread(target=repeat)
    thread.start()
    refused = 0
    try:
        for number in range(max(least, 150)):
            if refused and number >= least:
                break
            try:
                act()
            except exception.Unreachable:
                refused += 1
    finally:
        done.set()
        thread.join()
    return refused


@unittest.skipIf(os.geteuid(), 'only root gives links away')
class PlantedProgramTest(unittest.TestCase):
    """Links on the way to a binary that root copies."""

    def setUp(self):
        self.scratch = folders.make(self)
        self.scratch.chmod(0o755)
        self.target = self.scratch / 'target'
        self.target.mkdir(0o755)
        self.link = self.scratch / 'every user' / 'sw'
        self.link.parent.mkdir()
        self.link.symlink_to(self.target)
        self.program = self.link / 'npb' / 'bin' / 'cg'

    def install(self):
        runner.install(local.LocalExecutor(), str(self.program), b'program')

    def test_nothing_is_made_behind_the_link_of_another_user(self):
        # The kernel may protect links in sticky directories only.
        self.link.parent.chmod(0o777)
        os.lchown(self.link, SOMEBODY, SOMEBODY)
        with self.assertRaisesRegex(exception.Unreachable,
                                    f'sw is a symbolic link of user '
                                    f'{SOMEBODY}'):
            self.install()
        self.assertEqual([], os.listdir(self.target))

    def test_a_link_of_root_is_followed(self):
        for _ in range(2):
            self.install()
            self.assertEqual(b'program', (
                self.target / 'npb' / 'bin' / 'cg').read_bytes())

    def test_nothing_is_made_behind_a_link_that_appears_meanwhile(self):
        self.assert_nothing_is_made(40)

    def test_periodic_nothing_is_made_in_many_attempts(self):
        self.assert_nothing_is_made(1000)

    def assert_nothing_is_made(self, attempts):
        self.link.unlink()
        self.link.parent.chmod(0o1777)
        planted = self.scratch / 'planted'

        def exchange():
            shutil.rmtree(self.link, ignore_errors=True)
            planted.symlink_to(self.target)
            os.lchown(planted, SOMEBODY, SOMEBODY)
            with contextlib.suppress(OSError):
                planted.rename(self.link)
                self.link.unlink()
            planted.unlink(missing_ok=True)

        refused = refusals(exchange, self.install, attempts)
        self.assertEqual([], os.listdir(self.target))
        self.assertGreater(refused, 0)
