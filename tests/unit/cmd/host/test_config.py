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

import contextlib
import io
import pathlib
import tempfile
import unittest

from hpcvirt.cmd import main
from tests import hosts

NOVA = 'etc/nova/nova.conf.d/90-hpcvirt.conf'


class ConfigTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.root = self.folder / 'root'
        self.root.mkdir()

    def run_command(self, *words):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main.main(['host', 'config', *map(str, words)])
        return status, out.getvalue(), err.getvalue()

    def fails(self, message, *words):
        before = self.tree()
        status, out, err = self.run_command(*words)
        self.assertEqual((2, ''), (status, out))
        self.assertRegex(err, f'^hpcvirt: .*{message}.*\n$')
        self.assertEqual(before, self.tree())

    def tree(self):
        return {str(path): path.read_bytes()
                for path in self.folder.rglob('*') if path.is_file()}

    def host(self, name='host', **more):
        path = self.folder / f'{name}.json'
        return hosts.as_json(hosts.build(name=name, **more), path)

    def apply(self, *words):
        return self.run_command(*words, '--root', self.root, '--apply')

    def test_without_apply_files_are_only_printed(self):
        before = self.tree(), self.host()
        status, out, err = self.run_command(before[1], '--root', self.root)
        self.assertEqual((0, ''), (status, err))
        self.assertIn(f'==> {NOVA} (new)\n', out)
        self.assertIn('cpu_dedicated_set = 1-15,17-31\n', out)
        self.assertFalse(any(self.root.iterdir()))

    def test_the_second_apply_changes_nothing(self):
        path = self.host()
        self.assertIn('tuned-adm profile hpcvirt', self.apply(path)[1])
        before = self.tree()
        status, out, _ = self.apply(path)
        self.assertEqual(0, status)
        self.assertIn('nothing to change\n', out)
        self.assertEqual(before, self.tree())

    def test_a_copy_of_what_is_replaced_or_removed_is_kept(self):
        path = self.host()
        self.apply(path)
        before = (self.root / NOVA).read_text()
        status, out, _ = self.run_command(path, '--profile', 'dense',
                                          '--root', self.root)
        for line in ('-cpu_dedicated_set = 1-15,17-31',
                     '+cpu_dedicated_set = 0-31'):
            self.assertIn(line, out.splitlines())
        status, out, _ = self.apply(path, '--profile', 'dense')
        self.assertEqual(0, status)
        (kept,) = (self.root / 'var/lib/hpcvirt/backups').iterdir()
        self.assertIn(str(kept), out)
        self.assertEqual(before, (kept / NOVA).read_text())
        affinity = 'etc/systemd/system.conf.d/90-hpcvirt.conf'
        self.assertTrue((kept / affinity).exists())
        self.assertFalse((self.root / affinity).exists())

    def test_a_file_of_somebody_else_is_not_replaced(self):
        place = self.root / NOVA
        place.parent.mkdir(parents=True)
        place.write_text('[DEFAULT]\n')
        self.fails('90-hpcvirt.conf: was not written by hpcvirt',
                   self.host(), '--root', self.root, '--apply')

    def test_nothing_is_written_through_links(self):
        elsewhere = self.folder / 'elsewhere'
        elsewhere.mkdir()
        (self.root / 'etc').symlink_to(elsewhere)
        self.fails('leads out of', self.host(), '--root', self.root,
                   '--apply')
        (self.root / 'etc').unlink()
        self.apply(self.host())
        (self.root / NOVA).rename(elsewhere / 'own')
        (self.root / NOVA).symlink_to(elsewhere / 'own')
        self.fails('is a symbolic link', self.host(), '--root', self.root,
                   '--profile', 'dense', '--apply')

    def test_a_folder_or_file_in_the_way_is_an_error(self):
        (self.root / NOVA).mkdir(parents=True)
        self.fails('is a directory', self.host(), '--root', self.root)
        (self.root / NOVA).rmdir()
        (self.root / 'etc/default').write_text('')
        self.fails('etc/default: is not a folder', self.host(), '--root',
                   self.root, '--apply')
        self.fails('is not a folder', self.host(), '--root',
                   self.folder / 'nowhere')

    def test_options_of_another_file_of_nova_are_named(self):
        conf = self.root / 'etc/nova/nova.conf'
        conf.parent.mkdir(parents=True)
        conf.write_text('[compute]\ncpu_dedicated_set = 2\n')
        _, out, _ = self.run_command(self.host(), '--root', self.root)
        self.assertIn('Warning: etc/nova/nova.conf sets '
                      '[compute]cpu_dedicated_set too', out)

    def test_a_file_of_nova_that_cannot_be_read_may_set_the_same(self):
        # As nova.conf looks without root: there, and not to be read.
        (self.root / 'etc/nova/nova.conf').mkdir(parents=True)
        status, out, _ = self.run_command(self.host(), '--root', self.root)
        self.assertEqual(0, status)
        self.assertIn('Warning: etc/nova/nova.conf cannot be read', out)

    def test_a_root_is_for_one_host(self):
        self.fails('--root: is for one host', self.host(), '--root',
                   self.root, '--format', 'kolla')

    def test_several_hosts_are_written_below_their_names(self):
        paths = [self.host('a'), self.host('b', cores=8)]
        target = self.folder / 'tree'
        self.assertEqual(0, self.run_command(
            *paths, '--write', target)[0])
        self.assertIn('1-15,17-31', (target / 'a' / NOVA).read_text())
        self.assertIn('1-7,9-15', (target / 'b' / NOVA).read_text())
        self.assertIn('nothing to change',
                      self.run_command(*paths, '--write', target)[1])

    def test_a_written_file_that_differs_needs_apply(self):
        target = self.folder / 'tree'
        words = (self.host(), '--write', target)
        self.run_command(*words)
        self.fails('is there and differs', *words, '--profile', 'dense')
        status, out, _ = self.run_command(*words, '--profile', 'dense',
                                          '--apply')
        self.assertEqual(0, status)
        self.assertIn('Copies of the former files', out)

    def test_apply_is_for_one_host(self):
        self.fails('--apply: changes one host', self.host('a'),
                   self.host('b'), '--apply')

    def test_names_that_are_no_folder_are_refused(self):
        for name in ('..', 'a/b', '-x', 'a b', 'é', 'a\n'):
            path = self.folder / 'x.json'
            self.fails('', hosts.as_json(hosts.build(name=name), path),
                       '--write', self.folder / 'tree')

    def test_files_are_readable_by_their_readers(self):
        self.apply(self.host())
        self.assertEqual(0o644, (self.root / NOVA).stat().st_mode & 0o777)
