# SPDX-License-Identifier: Apache-2.0

"""Archives that were damaged when they were copied."""

import gzip
import io
import tarfile
import unittest
import zipfile

from hpcvirt import exception
from hpcvirt.topology import archive
from tests.builders import folders

FILES = {'a/one.json': b'{"cells": 1}' * 100, 'b/two.json': b'{}',
         'c/three.json': b'3' * 600}


def pack_tar():
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode='w') as out:
        for name, data in FILES.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            out.addfile(info, io.BytesIO(data))
    return stream.getvalue()


def pack_zip():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, 'w') as out:
        for name, data in FILES.items():
            out.writestr(name, data)
    return stream.getvalue()


class CutTest(unittest.TestCase):
    def setUp(self):
        self.path = folders.make(self) / 'fleet'

    def read(self, data):
        self.path.write_bytes(data)
        return dict(archive.read(
            str(self.path), archive.find_kind(str(self.path)) or '',
            ('.json',)))

    def check_refused(self, data):
        with self.assertRaisesRegex(exception.InvalidInput, '^[^\n]+$'):
            self.read(data)

    def test_a_tar_file_that_is_cut_anywhere_is_refused(self):
        whole = pack_tar()
        self.assertEqual(FILES, self.read(whole))
        end = len(whole.rstrip(b'\0')) // 512 * 512 + 512
        self.assertEqual(FILES, self.read(whole[:end + 1024]))
        for length in (*range(512, end + 1, 512), *range(600, end, 97)):
            self.check_refused(whole[:length])

    def test_a_header_that_is_damaged_is_not_the_end(self):
        whole = bytearray(pack_tar())
        second = whole.index(b'b/two.json')
        whole[second] ^= 1
        self.check_refused(bytes(whole))

    def test_a_second_archive_behind_the_first_is_refused(self):
        self.check_refused(pack_tar() + pack_tar())

    def test_a_compressed_tar_file_that_is_cut_anywhere_is_refused(self):
        whole = gzip.compress(pack_tar())
        self.assertEqual(FILES, self.read(whole))
        for length in range(20, len(whole)):
            self.check_refused(whole[:length])

    def test_a_zip_file_that_is_cut_anywhere_is_refused(self):
        whole = pack_zip()
        self.assertEqual(FILES, self.read(whole))
        for length in range(20, len(whole), 7):
            self.check_refused(whole[:length])
