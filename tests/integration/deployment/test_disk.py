# SPDX-License-Identifier: Apache-2.0

"""Files that root writes where another user owns the folders."""

import contextlib
import functools
import os
import signal
import stat
import unittest

from hpcvirt import exception
from hpcvirt.deployment import disk
from hpcvirt.deployment import host_files
from hpcvirt.deployment import steps
from hpcvirt.deployment import tree
from tests.builders import folders
from tests.builders import strangers

OWN = host_files.NOVA_CONF
BACKUPS = 'var/lib/hpcvirt/backups'
SECRET = f'{tree.MARK}\nonly for root\n'


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def call_or_die(function, calls, *args, **more):
    if next(calls, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)
    return function(*args, **more)


class Case(unittest.TestCase):
    def setUp(self):
        super().setUp()
        folder = folders.make(self)
        folder.chmod(0o755)
        self.root = folder / 'root'
        self.outside = folder / 'outside'
        for made in (self.root, self.outside):
            made.mkdir()
        self.place = self.root / OWN
        self.number = 0

    def write(self):
        self.number += 1
        wanted = [tree.File(OWN, f'{tree.MARK}\n{self.number}\n')]
        found = steps.compare(wanted, disk.read_present(self.root, [OWN]))
        return disk.write(self.root, found, BACKUPS)


class WriteTest(Case):
    def test_modes_do_not_depend_on_the_umask(self):
        for umask in (0, 0o022, 0o027, 0o077):
            with self.subTest(umask=oct(umask)):
                self.root = folders.make(self)
                before = os.umask(umask)
                try:
                    self.write()
                    kept = self.write()
                    self.assertEqual(umask, os.umask(0o022))
                finally:
                    os.umask(before)
                self.assertEqual(0o644, mode(self.root / OWN))
                self.assertEqual({0o755}, {
                    mode(self.root / path) for path in (
                        'etc', 'etc/nova', 'etc/nova/nova.conf.d',
                        'var', 'var/lib', 'var/lib/hpcvirt')})
                self.assertEqual(0o600, mode(kept / OWN))
                while kept.name != 'hpcvirt':
                    self.assertEqual(0o700, mode(kept), kept)
                    kept = kept.parent

    def test_mode_and_owner_are_kept(self):
        self.write()
        self.place.chmod(0o640)
        if not os.geteuid():
            os.chown(self.place, 3, strangers.SOMEBODY)
        before = self.place.stat()
        kept = self.write()
        after = self.place.stat()
        self.assertEqual((before.st_mode, before.st_uid, before.st_gid),
                         (after.st_mode, after.st_uid, after.st_gid))
        self.assertEqual((0o600, os.geteuid()), (
            mode(kept / OWN), (kept / OWN).stat().st_uid))

    def test_what_was_not_compared_is_not_replaced(self):
        self.write()
        found = steps.compare([tree.File(OWN, 'x')],
                              disk.read_present(self.root, [OWN]))
        self.place.write_text('changed\n')
        with self.assertRaisesRegex(exception.InvalidInput, 'has changed'):
            disk.write(self.root, found, BACKUPS)
        self.assertEqual('changed\n', self.place.read_text())
        self.assertFalse((self.root / BACKUPS).exists())

    def test_a_run_that_was_killed_leaves_nothing_after_the_next(self):
        for moment in range(40):
            self.write()
            child = os.fork()
            if not child:
                # The number of calls of the system until it is killed.
                calls = iter(range(moment))
                self.kill_at('fsync', 'rename', 'open', calls=calls)
                try:
                    self.write()
                finally:
                    os._exit(0)
            os.waitpid(child, 0)
            self.number += 1
            self.write()
            self.assertEqual([], list(self.root.rglob('.hpcvirt-*')), moment)
            for path in self.root.rglob('*.conf'):
                self.assertTrue(path.read_text().startswith(tree.MARK))

    @staticmethod
    def kill_at(*names, calls):
        for name in names:
            setattr(os, name, functools.partial(
                call_or_die, getattr(os, name), calls))

    def test_a_link_is_followed_only_where_nobody_else_can_change_it(self):
        (self.root / 'opt/nova').mkdir(parents=True)
        (self.root / 'etc').mkdir()
        (self.root / 'etc/nova').symlink_to('../opt/nova')
        self.write()
        self.assertTrue(
            (self.root / 'opt/nova/nova.conf.d/90-hpcvirt.conf').is_file())
        (self.root / 'etc').chmod(0o777)
        with self.assertRaisesRegex(exception.InvalidInput,
                                    'link that others can change'):
            self.write()


@unittest.skipIf(os.geteuid(), 'only root can become another user')
class RaceTest(Case):
    """An exchange of names while root writes: the owner of /etc/nova."""

    ROUNDS = 150

    def setUp(self):
        super().setUp()
        self.write()
        for path in (self.place.parents[1], self.place.parent, self.place):
            os.chown(path, strangers.SOMEBODY, strangers.SOMEBODY)
        self.secret = self.outside / 'secret'
        self.secret.write_text(SECRET)
        self.secret.chmod(0o600)

    def attack(self, name, target):
        """Write many times, while a name is exchanged for a link."""
        link, fresh = name.with_name('link'), name.with_name('fresh')

        def act():
            # What root has written may have replaced the link.
            if not link.is_symlink() and not name.is_symlink():
                fresh.symlink_to(target)
                fresh.rename(link)
            for _ in range(9):
                strangers.exchange(name, link)

        written = tried = 0
        with strangers.acting(act):
            # On a busy machine, nearly every write meets an exchange.
            while tried < self.ROUNDS or (not written
                                          and tried < 100 * self.ROUNDS):
                tried += 1
                with contextlib.suppress(exception.InvalidInput, OSError):
                    self.write()
                    written += 1
        self.assertLess(0, written)

    def test_a_file_exchanged_for_a_link_is_never_copied(self):
        self.attack(self.place, self.secret)
        self.assertEqual(SECRET, self.secret.read_text())
        for path in self.root.rglob('*'):
            if path.is_file() and not path.is_symlink():
                self.assertNotIn('only for root', path.read_text(), path)

    def test_a_folder_exchanged_for_a_link_is_never_left(self):
        self.attack(self.place.parent, self.outside)
        self.assertEqual(['secret'], os.listdir(self.outside))
        self.assertEqual(SECRET, self.secret.read_text())

    def test_somebody_cannot_read_the_copies(self):
        kept = self.write()
        child = os.fork()
        if not child:
            try:
                strangers.become_somebody()
                (kept / OWN).read_text()
                os._exit(0)
            finally:
                os._exit(1)
        self.assertEqual(1, os.waitstatus_to_exitcode(
            os.waitpid(child, 0)[1]))
