# SPDX-License-Identifier: Apache-2.0

"""Copies of /proc, /sys and /etc of any kind are read, or refused in one line.

A copy is changed at random, with fixed seeds, and changed back.
"""

import contextlib
import os
import pathlib
import random
import shutil
import unittest

from hpcvirt import exception
from hpcvirt import topology
from hpcvirt.audit import audit
from hpcvirt.audit import report
from hpcvirt.audit.reading import host as reading
from hpcvirt.topology import snapshot
from tests.builders import audited
from tests.builders import sysfs_files

SECRET = 'what no report may show'
TEXTS = (b'', b'\n', b' ', b'-1', b'0', b'1', b'65535', b'65536', b'9' * 30,
         b'1e9', b'nan', b'0-3', b'3-0', b'0-65535', b'0-7:1/2', b'0,0', b',',
         b'0,,1', b'(null)', b'\0', b'\xff\xfe', b'\x1b[2J', '\u0663'.encode(),
         '\u2028'.encode(), b'[always] never', b'0x1f', b'ffffffff,,f',
         b'Node 0 MemTotal: ' + b'9' * 18 + b' kB', b'Node 0 MemTotal: -1 kB',
         b'always', b'x' * 70000, b'0-1,' * 20000, b'a b c', b'%s', b'{}',
         b'[x', b'[compute]\ncpu_dedicated_set = 0-65535,^0-70000',
         b'[compute]\ncpu_dedicated_set = $x', b'[pci]\ndevice_spec = [{}]',
         b'[pci]\ndevice_spec = ' + b'[' * 9000, b'nova:x:99999999999:1:',
         b'BOOT_IMAGE=/x isolcpus=0-65535 hugepages=9999999999999999999',
         b'isolcpus= nohz_full=x hugepagesz=9E hugepages=-1 "')
NAMES = ('node0', 'node9', 'node-1', 'node01', 'node99999999999999999999',
         'cpu0', 'cpu70000', 'cpux', 'cpu\u0663', 'state9', 'policy', 'index9',
         'hugepages-0kB', 'hugepages-3kB', 'hugepages-99999999999999999999kB',
         '0000:41:00.0', 'ffff:ff:1f.7', 'virtfn0', 'virtfnx', '1', '-1',
         'a\n',
         '\x1b[2J', '\udcff', ' ')


class StrangeTreesTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.scratch = pathlib.Path(sysfs_files.scratch(self))
        self.secret = self.scratch / 'secret'
        self.secret.write_text(SECRET)
        self.links = (str(self.secret), '../' * 30 + str(self.secret)[1:],
                      str(self.scratch), '/', '.', '..', 'loop', '/dev/zero',
                      '/proc/kmsg', '/proc/self/pagemap', '/dev/tty',
                      'missing', '\udcff', '../../node/node1',
                      'x' * 255, '/'.join('x' * 200))
        self.changes = 0
        self.trees = []
        for number, files in enumerate((
                sysfs_files.captured('emulated-intel-2x2x2'),
                sysfs_files.emulated('intel-2s-tuned'),
                sysfs_files.emulated('amd-2s'), audited.tree())):
            root = self.scratch / f'tree{number}'
            sysfs_files.lay_out(files, root)
            self.trees.append((root, sorted(files)))

    @contextlib.contextmanager
    def change(self, root, names, dice):
        """Replace a file or a folder by something else, for a while."""
        path = root / dice.choice(names)
        for _ in range(dice.choice((0, 0, 0, 0, 1, 2))):
            if path.parent != root:
                path = path.parent
        if dice.random() < 0.2:
            path = path.parent / dice.choice(NAMES)
        if not os.path.isdir(path.parent) or os.path.realpath(
                path.parent) != str(path.parent):
            yield  # Another change has replaced it.
            return
        self.changes += 1
        aside = self.scratch / f'aside{self.changes}'
        existed = os.path.lexists(path)
        if existed:
            os.rename(path, aside)
        try:
            self.create(path, aside, dice)
            yield
        finally:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
            if existed:
                os.rename(aside, path)

    def create(self, path, aside, dice):
        kind = dice.randrange(10)
        if kind < 4:
            path.write_bytes(dice.choice(TEXTS))
        elif kind == 4 and aside.is_file():
            data = aside.read_bytes()
            place = dice.randrange(len(data) + 1)
            path.write_bytes(data[:place] + dice.choice(TEXTS)
                             + data[place + dice.choice((0, 1, 5)):])
        elif kind == 5:
            path.mkdir()
        elif kind == 6:
            target = dice.choice(self.links)
            path.symlink_to(path.name if target == 'loop' else target)
        elif kind == 7:
            os.mkfifo(path)
        elif kind == 8:
            path.touch()
            os.truncate(path, dice.choice((1 << 20, 1 << 21, 1 << 40)))
        # Otherwise it is missing.

    def read(self, root):
        """Read a tree as all commands do.

        :returns: whether it has a topology
        """
        has_topology = True
        try:
            host = topology.read(str(root))
        except exception.InvalidInput as exc:
            has_topology = False
            self.check(str(exc))
            self.assertTrue(str(exc).isprintable(), str(exc))
        else:
            self.check(repr(host))
            self.assertEqual(host, snapshot.read(
                snapshot.dumps(host).encode(), 'again'))
        try:
            facts = reading.read(root)
        except exception.InvalidInput as exc:
            self.check(str(exc))
            return has_topology
        self.check(repr(audited.values(facts)))
        for profile in (None, audited.PROFILE):
            found = audit.audit(facts, profile)
            text = report.text(found, 100)
            self.check(text)
            self.assertTrue(text.replace('\n', '').isprintable(), text)
        return has_topology

    def check(self, text):
        self.assertNotIn(SECRET, text)

    def check_all(self, seed, cases):
        sound = 0
        for case in range(cases):
            dice = random.Random(f'{seed} {case}')
            root, names = dice.choice(self.trees)
            with (self.subTest(case=case), contextlib.ExitStack() as stack):
                for _ in range(dice.choice((1, 1, 1, 2, 5))):
                    stack.enter_context(self.change(root, names, dice))
                sound += self.read(root)
        self.assertLess(cases // 10, sound)
        self.assertLess(cases // 10, cases - sound)

    def test_100_trees(self):
        self.check_all(1, 100)

    def test_periodic_10000_trees(self):
        self.check_all(2, 10_000)
