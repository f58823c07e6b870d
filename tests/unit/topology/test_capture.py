# SPDX-License-Identifier: Apache-2.0

import io
import pathlib
import tarfile
import time
import unittest

from hpcvirt import exception
from hpcvirt import topology
from hpcvirt.topology import capture
from hpcvirt.topology import collection
from tests.builders import folders
from tests.builders import hosts
from tests.builders import sysfs_files
from tests.builders import writers


class CaptureListTest(unittest.TestCase):
    def gaps(self, text, *names, is_folder=False):
        found = capture.CaptureList(text)
        return [name for name in names if found.find_gap(name, is_folder)]

    def test_without_a_list_nothing_is_known(self):
        names = ('', 'etc', 'etc/nova', 'hpcvirt')
        for is_folder in (False, True):
            self.assertEqual([*names], self.gaps('', *names,
                                                 is_folder=is_folder))

    def test_what_matches_is_known(self):
        text = '# comment\na/b*/c\n\nx/[0-9]*/y/\n'
        self.assertEqual(['b', 'a/c', 'a/b/d', 'a/b/c/d', 'a/b/x/c', 'x/z'],
                         self.gaps(text, 'a', 'a/b', 'a/b1/c', 'b', 'a/c',
                                   'a/b/d', 'a/b/c/d', 'a/b/x/c', 'x/1/y',
                                   'x/z'))

    def test_a_folder_is_known_where_all_of_its_files_were_looked_for(self):
        self.assertEqual(['b', 'a/b1', 'c'], self.gaps(
            'a/b*/c\nb/one\nc', 'a', 'b', 'a/b1', 'c', is_folder=True))

    def test_a_whole_folder_is_known_at_any_depth(self):
        names = ('etc', 'etc/a', 'etc/a/b/c', 'etcx', 'e')
        for is_folder in (False, True):
            self.assertEqual(['etcx', 'e'], self.gaps(
                'etc/**', *names, is_folder=is_folder))

    def test_what_could_not_be_read_is_not_known(self):
        found = capture.CaptureList('etc/**\n!etc/n')
        self.assertIsNone(found.find_gap('etc/no'))
        for name in ('etc/n', 'etc/n/x/y'):
            self.assertEqual('could not be read when it was captured',
                             found.find_gap(name))
        # That may be one more file of the folder.
        self.assertIsNone(found.find_gap('etc'))
        for name, gap in (('etc', 'could not be read when it was captured'),
                          ('etc/o', None)):
            self.assertEqual(gap, found.find_gap(name, True))


    def test_a_list_of_a_stranger_takes_no_time(self):
        name = f'sys/{"a" * 200}/class'
        begin = time.monotonic()
        for text in (f'sys/{"*a" * 50}b/class', '/'.join(['**b'] * 50),
                     ''.join(f'!sys/x{number}/y\n' for number
                             in range(50_000)),
                     '\n'.join(f'{"*a" * 50}{number}/class'
                               for number in range(1000))):
            found = capture.CaptureList(text)
            for _ in range(20):
                self.assertEqual('was not captured', found.find_gap(name))
        self.assertLess(time.monotonic() - begin, 20)
        self.assertRaisesRegex(
            exception.InvalidInput, 'more than 1000 patterns',
            capture.CaptureList, '\n'.join(map(str, range(1001))))


class OpenRootTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)
        self.host = hosts.build(2, 2, 1)

    def write(self, files, suffix='.tar'):
        path = str(self.folder / f'n1{suffix}')
        with tarfile.open(path, 'w:gz' if suffix == '.tar.gz' else 'w') as out:
            for name, text in files.items():
                info = tarfile.TarInfo(name)
                data = text.encode()
                info.size = len(data)
                if isinstance(text, sysfs_files.Link):
                    info.type, info.linkname, info.size = (
                        tarfile.SYMTYPE, text, 0)
                out.addfile(info, io.BytesIO(data))
        return path

    def captured(self):
        return {capture.LIST: '', 'proc/sys/kernel/hostname': 'c7',
                **writers.sysfs(self.host)}

    def test_a_capture_is_a_topology(self):
        for suffix in ('.tar', '.tar.gz'):
            path = self.write(self.captured(), suffix)
            found = topology.read(path)
            self.assertEqual(('c7', self.host.cells),
                             (found.name, found.cells))
            self.assertEqual([(path, found)], list(collection.read(path)))

    def test_what_is_unpacked_goes_afterwards(self):
        with capture.open_root(self.write(self.captured())) as root:
            self.assertTrue((root / 'sys').is_dir())
        self.assertFalse(root.exists())

    def test_errors_name_the_capture(self):
        files = self.captured()
        del files['sys/devices/system/node/node0/distance']
        path = self.write(files)
        with self.assertRaisesRegex(exception.InvalidInput, f'^{path}/sys'):
            topology.read(path)

    def test_links_and_files_outside_are_not_unpacked(self):
        target = self.folder / 'target'
        for name in ('../x', '/x'):
            path = self.write({**self.captured(), name: 'x'})
            self.assertRaisesRegex(exception.InvalidInput, 'outside of it',
                                   topology.read, path)
        path = self.write({**self.captured(),
                           'etc': sysfs_files.Link(str(target)),
                           'etc/x': 'x'})
        with capture.open_root(path) as root:
            self.assertFalse((root / 'etc').is_symlink())
        self.assertFalse(target.exists())

    def test_only_regular_files_are_unpacked(self):
        target = self.folder / 'target'
        target.write_text('secret')
        path = self.write(self.captured())
        with tarfile.open(path, 'a') as out:
            for number, kind in enumerate((
                    tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE,
                    tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.DIRTYPE)):
                info = tarfile.TarInfo(f'etc/{number}/x')
                info.type, info.linkname = kind, str(target)
                info.mode, info.uid = 0o6777, 0
                out.addfile(info)
            out.addfile(tarfile.TarInfo('etc/.hidden'))
        with capture.open_root(path) as root:
            self.assertFalse((root / 'etc').exists())
            self.assertEqual(0o700, root.stat().st_mode & 0o777)
            self.assertFalse([found for found in root.rglob('*')
                              if found.is_file()
                              and found.stat().st_mode & 0o6111])

    def test_a_capture_has_limits(self):
        for size, said in ((65 << 20, 'is larger than 65536 KiB'),
                           (1 << 40, 'has more than 512 MiB')):
            path = self.write(self.captured())
            info = tarfile.TarInfo('proc/9/status')
            info.size = size
            data = pathlib.Path(path).read_bytes()
            end = len(data.rstrip(b'\0')) + 511 & ~511
            pathlib.Path(path).write_bytes(
                data[:end] + info.tobuf(tarfile.GNU_FORMAT) + bytes(10240))
            self.assertRaisesRegex(exception.InvalidInput, said,
                                   topology.read, path)

    def test_a_damaged_capture_is_an_error_of_one_line(self):
        path = self.write(self.captured(), '.tar.gz')
        data = pathlib.Path(path).read_bytes()
        for damaged in (data[:-200], data[:100],
                        data[:600] + b'\0\0\0' + data[603:]):
            pathlib.Path(path).write_bytes(damaged)
            with self.assertRaises(exception.InvalidInput) as caught:
                topology.read(path)
            self.assertIn(path, str(caught.exception))

    def test_a_file_in_the_place_of_a_folder_is_an_error(self):
        path = self.write({**self.captured(), 'etc': 'x', 'etc/y': ''})
        self.assertRaisesRegex(exception.InvalidInput, 'cannot be unpacked',
                               topology.read, path)
