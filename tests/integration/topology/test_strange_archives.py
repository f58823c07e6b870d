# SPDX-License-Identifier: Apache-2.0

"""Archives of any kind are read, or refused in one line; nothing is unpacked.

They are made up and damaged at random, with fixed seeds.
"""

import contextlib
import gzip
import io
import random
import tarfile
import unittest
import warnings
import zipfile

from hpcvirt import exception
from hpcvirt.topology import collection
from hpcvirt.topology import snapshot
from tests.builders import folders
from tests.builders import machines

NAMES = ('a.json', 'rack1/b.json', 'rack1/b.json', './c.json', 'rack1/d.xml',
         'e.txt', '.f.json', '__MACOSX/g.json', 'h' * 300 + '.json',
         'i\n.json',
         '\x1b[2J.json', 'j\udcff.json', '\u202e.json', 'k.json/', '')
OUTSIDE = ('/etc/passwd.json', '../x.json', 'a/../../x.json', '/', '..',
           '//x.json')
TYPES = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE,
         tarfile.DIRTYPE, tarfile.CONTTYPE, tarfile.GNUTYPE_SPARSE, b'?')
SIZES = (1, 511, 513, 65 << 20, 1 << 40, (8 << 30) - 1)
#: Places of the fields of a header of a .tar, and of both lists of a .zip.
FIELDS = (100, 124, 148, 156, 157, 257, 345, 4, 6, 8, 14, 18, 22, 26, 28)


class StrangeArchivesTest(unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.folder = folders.make(self)
        self.path = self.folder / 'archive'
        self.secret = self.folder / 'secret.json'
        self.hosts = [machines.invent(seed)[0] for seed in range(9)]
        self.texts = [snapshot.dumps(host).encode() for host in self.hosts]
        # A host whom no archive has: it is outside of all.
        self.secret.write_bytes(self.texts.pop())
        self.secret_host = self.hosts.pop()
        warnings.simplefilter('ignore')

    def names(self, dice):
        names = dice.choices(NAMES, k=dice.randint(1, 6))
        if dice.random() < 0.2:
            names.append(dice.choice(OUTSIDE))
        return names

    def content(self, dice):
        return dice.choice((*self.texts, b'', b'{', b'x' * 5000))

    def make_tar(self, dice):
        stream = io.BytesIO()
        form = dice.choice((tarfile.PAX_FORMAT, tarfile.GNU_FORMAT,
                            tarfile.USTAR_FORMAT))
        with tarfile.open(fileobj=stream, mode='w', format=form,
                          errors='surrogateescape') as archive:
            for name in self.names(dice):
                member = tarfile.TarInfo(name)
                data = self.content(dice)
                member.size = len(data)
                if dice.random() < 0.2:
                    member.type = dice.choice(TYPES)
                    member.linkname = dice.choice((
                        str(self.secret), '../secret.json', name, 'a.json'))
                if form == tarfile.PAX_FORMAT and dice.random() < 0.1:
                    member.pax_headers = {dice.choice((
                        'size', 'path', 'GNU.sparse.map', 'GNU.sparse.major',
                        'GNU.sparse.size', 'hdrcharset')): dice.choice((
                            '-1', '9' * 30, 'x', '', '../x.json', '0,9'))}
                with contextlib.suppress(ValueError):  # too long for ustar
                    archive.addfile(member, io.BytesIO(data))
                    if dice.random() < 0.1:
                        # A header says more than there is.
                        member.size = dice.choice(SIZES)
                        member.type = tarfile.REGTYPE
                        archive.addfile(member)
        data = stream.getvalue()
        return gzip.compress(data, 1) if dice.random() < 0.3 else data

    def make_zip(self, dice):
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, 'w', dice.choice((
                zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2,
                zipfile.ZIP_LZMA))) as archive:
            for name in self.names(dice):
                member = zipfile.ZipInfo(name.encode(
                    errors='replace').decode())
                member.compress_type = archive.compression
                if dice.random() < 0.2:  # a symbolic link
                    member.external_attr = 0o120777 << 16
                    archive.writestr(member, str(self.secret))
                else:
                    archive.writestr(member, self.content(dice))
        return stream.getvalue()

    def damage(self, dice, data):
        kind = dice.randrange(6)
        place = dice.randrange(len(data) + 1)
        if kind == 0:
            return data[:place]
        if kind == 1:
            return data[:place] + dice.randbytes(dice.choice((1, 4, 600))) + (
                data[place:])
        if kind in (2, 3):
            changed = bytearray(data)
            for _ in range(dice.choice((1, 2, 20))):
                start = dice.choice((0, 0, data.rfind(b'PK\1\2'),
                                     data.rfind(b'PK\5\6'), place))
                at = max(start, 0) + dice.choice(FIELDS)
                if at < len(changed):
                    changed[at] = dice.choice((0, 1, 0x7f, 0x80, 0xff, 50))
            return bytes(changed)
        return data

    def check(self, data):
        """Read an archive.

        :returns: whether it was read, maybe with hosts that were not
        """
        self.path.write_bytes(data)
        try:
            found = list(collection.read(str(self.path)))
        except exception.InvalidInput as exc:
            self.assertTrue(str(exc).isprintable(), str(exc))
            return False
        for name, host in found:
            self.assertTrue(name.startswith(str(self.path)))
            if isinstance(host, exception.InvalidInput):
                self.assertTrue(str(host).isprintable(), str(host))
            else:
                self.assertNotEqual(self.secret_host, host)
        self.assertEqual({'archive', 'secret.json'},
                         {path.name for path in self.folder.iterdir()})
        return True

    def check_all(self, seed, cases):
        whole = 0
        for case in range(cases):
            dice = random.Random(f'{seed} {case}')
            make = dice.choice((self.make_tar, self.make_zip))
            with self.subTest(case=case):
                whole += self.check(self.damage(dice, make(dice)))
        self.assertLess(cases // 10, whole)
        self.assertLess(cases // 10, cases - whole)

    def test_500_archives(self):
        self.check_all(1, 500)

    def test_periodic_10000_archives(self):
        self.check_all(2, 10_000)

    def test_the_last_file_of_a_name_counts(self):
        # So do tar and zip when they unpack.
        tar, plain = io.BytesIO(), io.BytesIO()
        with (tarfile.open(fileobj=tar, mode='w') as archive,
              zipfile.ZipFile(plain, 'w') as other):
            for text in self.texts[:2]:
                member = tarfile.TarInfo('a.json')
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text))
                other.writestr('a.json', text)
        for stream in (tar, plain):
            self.path.write_bytes(stream.getvalue())
            self.assertEqual(
                [(f'{self.path}:a.json', self.hosts[1])],
                list(collection.read(str(self.path))))

    def test_a_size_that_no_archive_can_have_is_refused_at_once(self):
        # tarfile would read a billion times behind the end of the file.
        stream = io.BytesIO()
        member = tarfile.TarInfo('notes.txt')
        member.size = 1 << 43
        with tarfile.open(fileobj=stream, mode='w') as archive:
            archive.addfile(member)
        self.path.write_bytes(stream.getvalue())
        with self.assertRaisesRegex(exception.InvalidInput,
                                    'has more than 512 MiB'):
            list(collection.read(str(self.path)))
