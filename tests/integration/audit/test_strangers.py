# SPDX-License-Identifier: Apache-2.0

"""What other users of the machine can make root's audit read."""

import contextlib
import fcntl
import multiprocessing
import os
import pathlib
import shutil
import subprocess
import unittest

from hpcvirt.audit import fact
from hpcvirt.audit.reading import files
from hpcvirt.audit.reading import host
from hpcvirt.audit.reading import nova
from tests.builders import folders
from tests.builders import strangers

TEXT = '[compute]\ncpu_dedicated_set = {}\n'


def read(pipe):
    try:
        found = nova.read(files.Files(pathlib.Path('/')))
    except fact.NotKnown as exc:
        pipe.send(str(exc))
    else:
        pipe.send(found and found.get('compute', 'cpu_dedicated_set'))


@unittest.skipIf(os.geteuid(), 'only root can become another user')
class StrangerTest(unittest.TestCase):
    """A process that calls itself nova-compute."""

    def setUp(self):
        super().setUp()
        # Each test looks at all processes of the machine: one at a time.
        lock = self.enterContext(open(__file__, 'rb'))
        fcntl.flock(lock, fcntl.LOCK_EX)
        # The audit reads nothing below /dev, where memory is.
        self.folder = folders.make(self, '/tmp')
        self.folder.chmod(0o755)
        self.program = self.folder / 'nova-compute'
        shutil.copy('/bin/sh', self.program)

    @contextlib.contextmanager
    def process(self, name, user):
        with subprocess.Popen(
                [self.program, '-c', 'echo ready; read x',
                 f'--config-file={name}'], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, user=user, group=user,
                extra_groups=[]) as process:
            process.stdout.readline()
            try:
                yield
            finally:
                process.kill()

    def found(self):
        """Read the configuration in a process that may hang or grow."""
        context = multiprocessing.get_context('fork')
        reader, writer = context.Pipe(duplex=False)
        child = context.Process(target=read, args=(writer,))
        child.start()
        try:
            self.assertTrue(reader.poll(20), 'the audit hangs')
            return reader.recv()
        finally:
            child.kill()
            child.join()

    def own(self, user):
        path = self.folder / 'own.conf'
        path.write_text(TEXT.format('4-7'))
        os.chown(path, user, user)
        return path

    def test_that_of_a_stranger_does_not_count(self):
        before = self.found()
        for name in ('/proc/kmsg', '/proc/self/pagemap',
                     self.own(strangers.SOMEBODY)):
            with self.process(name, strangers.SOMEBODY):
                self.assertEqual(before, self.found(), name)

    def test_a_name_that_is_no_text_hides_no_other_process(self):
        self.program = os.fsencode(self.folder) + b'/\xff'
        shutil.copy('/bin/sh', self.program)
        with self.process('none', 0):
            self.assertIn('\ufffd', host.read().kernel.programs)

    def test_only_programs_of_root_count(self):
        self.program = self.folder / 'hpcvirt-numad'
        shutil.copy('/bin/sh', self.program)
        for user in (strangers.SOMEBODY, 0):
            with self.process('none', user):
                self.assertEqual(user == 0, self.program.name
                                 in host.read().kernel.programs)

    def test_a_program_that_became_root_for_a_stranger_does_not_count(self):
        before = self.found()
        self.program.unlink()
        self.program.symlink_to('/bin/su')
        with subprocess.Popen(
                [self.program, '--', 'root',
                 f'--config-file={self.own(0)}'], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                user=strangers.SOMEBODY, group=strangers.SOMEBODY,
                extra_groups=[]) as process:
            try:
                self.assertIn(b'Password', process.stdout.read(9))
                self.assertEqual(before, self.found())
            finally:
                process.kill()

    def test_that_of_root_counts(self):
        with self.process(self.own(0), 0):
            self.assertEqual('4-7', self.found())

    def test_a_file_of_a_stranger_is_unknown(self):
        with self.process(self.own(strangers.SOMEBODY), 0):
            self.assertIn('another user', self.found())

    def test_what_is_no_file_is_unknown(self):
        link = self.folder / 'link'
        link.symlink_to('/proc/kmsg')
        fifo = self.folder / 'fifo'
        os.mkfifo(fifo)
        for name in ('/proc/kmsg', '/etc/../proc/kmsg', '/dev/zero', link,
                     fifo, '/sys/kernel/notes'):
            with self.process(name, 0):
                self.assertRegex(self.found(), 'no file|not a file')
