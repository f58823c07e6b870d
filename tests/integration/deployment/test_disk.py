# SPDX-License-Identifier: Apache-2.0

"""Files that root writes where another user owns the folders.

"hpcvirt host config --apply" and the Ansible module of the collection, which
writes for the role, pass the same tests.
"""

import contextlib
import functools
import importlib.util
import os
import pathlib
import signal
import stat
import time
import unittest

from hpcvirt import exception
from hpcvirt import rooted_files
from hpcvirt.cmd.host import config
from hpcvirt.deployment import disk
from hpcvirt.deployment import host_files
from hpcvirt.deployment import steps
from hpcvirt.deployment import tree
from tests.builders import folders
from tests.builders import strangers

OWN = host_files.NOVA_CONF
OPTIONAL = host_files.OPTIONAL[0]
BACKUPS = config.HOST_BACKUPS
SECRET = f'{tree.MARK}\nonly for root\n'


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def call_or_die(function, calls, *args, **more):
    if next(calls, None) is None:
        os.kill(os.getpid(), signal.SIGKILL)
    return function(*args, **more)


def load_module():
    """Load the Ansible module."""
    path = (pathlib.Path(__file__).parents[3] / 'ansible' / 'plugins'
            / 'modules' / 'host_files.py')
    spec = importlib.util.spec_from_file_location('host_files', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MODULE = load_module()


class ApplyWriter:
    """Writes as "hpcvirt host config --apply" does."""

    refused = exception.InvalidInput

    def write_text(self, text):
        """Write the file of Nova; return the folder of copies."""
        found = steps.compare([tree.File(OWN, text)],
                              disk.read_present(self.root, [OWN]))
        return disk.write(self.root, found, BACKUPS)

    def remove(self):
        """Remove the virtual functions; return the folder of copies."""
        found = steps.compare([], disk.read_present(self.root, [OPTIONAL]))
        return disk.write(self.root, found, BACKUPS)


def make_parameters(root, **given):
    """Make the parameters of the module, with the defaults of the others."""
    return {'root': str(root), 'files': [], 'absent': [], 'site_files': [],
            'replace': False, 'read': [], 'times': [], **given}


class RoleWriter:
    """Writes as the role of the Ansible collection does."""

    refused = rooted_files.FileRefused

    def write_text(self, text, **more):
        result = MODULE.write(make_parameters(
            self.root, **{'files': [{'path': f'/{OWN}', 'content': text}],
                          **more}), False)
        return pathlib.Path(result['backup']) if 'backup' in result else None

    def remove(self):
        return self.write_text('', files=[], absent=[f'/{OPTIONAL}'])


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
        return self.write_text(f'{tree.MARK}\n{self.number}\n')


class WriteTests:
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

    def test_a_file_that_is_removed_is_copied_for_its_owner_only(self):
        place = self.root / OPTIONAL
        place.parent.mkdir(parents=True)
        place.write_text(SECRET)
        place.chmod(0o600)
        kept = self.remove()
        self.assertFalse(place.exists())
        self.assertEqual(SECRET, (kept / OPTIONAL).read_text())
        self.assertEqual(0o600, mode(kept / OPTIONAL))
        self.assertEqual([kept / OPTIONAL], [
            path for path in self.root.rglob('*') if path.is_file()])

    def test_a_file_that_hpcvirt_did_not_write_is_left_alone(self):
        self.place.parent.mkdir(parents=True)
        self.place.write_text('[DEFAULT]\n')
        with self.assertRaisesRegex(self.refused, 'was not written by'):
            self.write()
        self.assertEqual('[DEFAULT]\n', self.place.read_text())
        self.assertFalse((self.root / BACKUPS).exists())

    def test_a_folder_that_leads_out_of_the_root_is_not_followed(self):
        for linked in (self.place.parents[1], self.place.parent):
            linked.parent.mkdir(parents=True, exist_ok=True)
            linked.symlink_to(self.outside)
            with self.assertRaisesRegex(self.refused, 'leads out of'):
                self.write()
            self.assertEqual([], list(self.outside.iterdir()))
            linked.unlink()

    def test_a_link_to_a_file_is_not_followed(self):
        target = self.outside / 'target'
        target.write_text(SECRET)
        self.place.parent.mkdir(parents=True)
        self.place.symlink_to(target)
        with self.assertRaisesRegex(self.refused, 'is a symbolic link'):
            self.write()
        self.assertEqual(SECRET, target.read_text())

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
        with self.assertRaisesRegex(self.refused,
                                    'link that others can change'):
            self.write()


class ApplyWriteTest(WriteTests, ApplyWriter, Case):
    def test_what_was_not_compared_is_not_replaced(self):
        self.write()
        found = steps.compare([tree.File(OWN, 'x')],
                              disk.read_present(self.root, [OWN]))
        self.place.write_text('changed\n')
        with self.assertRaisesRegex(exception.InvalidInput, 'has changed'):
            disk.write(self.root, found, BACKUPS)
        self.assertEqual('changed\n', self.place.read_text())
        self.assertFalse((self.root / BACKUPS).exists())


class RoleWriteTest(WriteTests, RoleWriter, Case):
    def test_it_says_what_was_written_and_when_something_was_removed(self):
        parameters = make_parameters(
            self.root, absent=[f'/{OPTIONAL}'],
            files=[{'path': f'/{OWN}', 'content': SECRET}])
        place = self.root / OPTIONAL
        place.parent.mkdir(parents=True)
        place.write_text(SECRET)
        for is_check in (True, False):
            result = MODULE.write(parameters, is_check)
            self.assertTrue(result['changed'])
            self.assertEqual([f'/{OWN}'], result['written'])
            self.assertEqual({f'/{OPTIONAL}': SECRET}, result['contents'])
            self.assertEqual(is_check, place.exists())
        removed_at = result['removed_at']
        self.assertAlmostEqual(time.time(), removed_at[f'/{OPTIONAL}'],
                               delta=60)
        again = MODULE.write(parameters, False)
        self.assertFalse(again['changed'])
        self.assertEqual(removed_at, again['removed_at'])

    def test_settings_of_the_site_keep_the_mode_of_their_file(self):
        path = self.root / 'etc/sysctl.d/99-site.conf'
        path.parent.mkdir(parents=True)
        path.write_text('vm.swappiness=60\nvm.panic_on_oom=0\n')
        path.chmod(0o640)
        parameters = make_parameters(self.root, replace=True, site_files=[{
            'folder': '/etc/sysctl.d', 'names': '*.conf', 'after': '',
            'pattern': '(?m)^vm.swappiness=.*$', 'why': '', 'notify': [],
            'replacement': r'# hpcvirt: \g<0>'}])
        kept = pathlib.Path(MODULE.write(parameters, False)['backup'])
        self.assertEqual('# hpcvirt: vm.swappiness=60\nvm.panic_on_oom=0\n',
                         path.read_text())
        self.assertEqual(0o640, mode(path))
        self.assertEqual(0o600, mode(kept / 'etc/sysctl.d/99-site.conf'))
        outside = self.outside / 'site'
        path.unlink()
        outside.write_text('vm.swappiness=60\n')
        path.symlink_to(outside)
        self.assertFalse(MODULE.write(parameters, False)['changed'])
        self.assertEqual('vm.swappiness=60\n', outside.read_text())

    def test_it_knows_its_files_as_the_command_does(self):
        self.assertEqual(tree.MARK, MODULE.MARK)
        self.assertEqual(config.HOST_BACKUPS, MODULE.BACKUPS)


class RaceTests:
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
                with contextlib.suppress(self.refused, OSError):
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


@unittest.skipIf(os.geteuid(), 'only root can become another user')
class ApplyRaceTest(RaceTests, ApplyWriter, Case):
    pass


@unittest.skipIf(os.geteuid(), 'only root can become another user')
class RoleRaceTest(RaceTests, RoleWriter, Case):
    pass
