# SPDX-License-Identifier: Apache-2.0

"""What a process saves, and how it keeps others away."""

import dataclasses
import errno
import json
import os
import pathlib
import subprocess
import sys
import threading
import unittest
from unittest import mock

from hpcvirt import exception
from hpcvirt import saved_document
from tests.builders import folders

HOLD = """
import sys
from hpcvirt import saved_document
with saved_document.lock(sys.argv[1], 'e1 is measured'):
    print('held', flush=True)
    sys.stdin.read()
"""


@dataclasses.dataclass(frozen=True)
class State:
    name: str
    schema_version: int = 3


class SaveTest(unittest.TestCase):
    def setUp(self):
        self.path = folders.make(self) / 'state'

    def find(self, version=3):
        return saved_document.find(State, version, str(self.path))

    def test_what_is_saved_is_found(self):
        self.assertIsNone(self.find())
        saved_document.save(str(self.path), State('é'))
        self.assertEqual(State('é'), self.find())
        self.assertEqual(0o100600, self.path.stat().st_mode)

    def test_another_version_or_form_is_refused_in_one_line(self):
        for text, said in (('{"name": "n"}', 'schema_version'), ('', 'JSON'),
                           ('{"schema_version": 2}', 'is 2; this version'),
                           ('{"schema_version": 3}', 'name')):
            self.path.write_text(text)
            with self.assertRaisesRegex(exception.InvalidInput,
                                        f'^{self.path}: .*{said}'):
                self.find()

    def test_what_was_there_stays_if_the_disk_is_full(self):
        saved_document.save(str(self.path), State('first'))
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with (mock.patch('os.fsync', autospec=True, side_effect=full),
              self.assertRaisesRegex(exception.InvalidInput, 'No space left')):
            saved_document.save(str(self.path), State('second'))
        self.assertEqual(State('first'), self.find())
        self.assertEqual(['state'], os.listdir(self.path.parent))


#: Leaves a child that has the lock a moment longer, as one has that is about
#: to execute its program.
LEAVE = """
import os, sys, time
from hpcvirt import saved_document
with saved_document.lock(sys.argv[1], 'e1 is measured'):
    if not os.fork():
        print('held', flush=True)
        time.sleep(0.5)
        os._exit(0)
    sys.stdin.read()
"""


class LockTest(unittest.TestCase):
    """Which process has a lock: seen by another one."""

    def setUp(self):
        self.folder = folders.make(self)
        self.path = str(self.folder / 'e1')

    def lock(self, path=None):
        return saved_document.lock(path or self.path, 'e1 is measured')

    def hold(self, script=HOLD):
        other = subprocess.Popen(
            [sys.executable, '-c', script, self.path], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE)
        self.addCleanup(other.communicate)
        self.addCleanup(other.kill)
        self.assertEqual(b'held\n', other.stdout.readline())
        return other

    def test_without_a_process_there_is_none(self):
        self.assertIsNone(saved_document.find_process(self.path))

    def test_it_is_named_as_long_as_it_lives(self):
        other = self.hold()
        self.assertEqual(
            saved_document.Process(other.pid, os.uname().nodename),
            saved_document.find_process(self.path))
        self.assertIsNone(saved_document.find_process(f'{self.path}2'))
        other.kill()
        other.wait()
        self.assertIsNone(saved_document.find_process(self.path))
        with self.lock() as real:
            self.assertEqual(self.path, real)
            self.assertEqual(os.getpid(),
                             saved_document.find_process(self.path).pid)
        self.assertEqual([], os.listdir(self.folder))

    def test_a_killed_one_has_it_no_longer_than_its_last_child(self):
        other = self.hold(LEAVE)
        other.kill()
        other.wait()
        self.assertIsNone(saved_document.find_process(self.path))
        with self.lock():
            pass

    def test_one_that_cannot_be_seen_is_named(self):
        """Another container may have its processes under other numbers."""
        with self.lock():
            text = json.dumps({'pid': 2 ** 22 + 1,
                               'host': os.uname().nodename})
            pathlib.Path(f'{self.path}.lock').write_text(text)
            self.assertEqual(2 ** 22 + 1,
                             saved_document.find_process(self.path).pid)

    def test_a_second_process_is_refused_whatever_it_calls_the_path(self):
        other = self.hold()
        alias = self.folder / 'alias'
        alias.symlink_to(self.path)
        for path in (self.path, str(alias)):
            with (self.assertRaisesRegex(
                    exception.Unreachable,
                    f'^e1 is measured by process {other.pid} on '),
                  self.lock(path)):
                self.fail('it is measured twice')
        self.assertIsNotNone(saved_document.find_process(self.path))

    def test_no_two_have_it_even_if_it_is_removed_and_taken_at_once(self):
        holders, most = [], []

        def work():
            for _ in range(50):
                try:
                    with self.lock():
                        holders.append(1)
                        most.append(len(holders))
                        holders.pop()
                except exception.Unreachable:
                    pass
        threads = [threading.Thread(target=work) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual({1}, set(most))

    def test_another_file_is_not_overwritten(self):
        precious = self.folder / 'precious'
        precious.write_text('kept')
        lock = self.folder / 'e1.lock'
        for make in (lock.symlink_to, lock.hardlink_to):
            make(precious)
            with (self.assertRaisesRegex(exception.InvalidInput,
                                         f'^{lock}: '), self.lock()):
                self.fail('it is locked')
            lock.unlink()
            self.assertEqual('kept', precious.read_text())
