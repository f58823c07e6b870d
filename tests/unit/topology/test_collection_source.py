# SPDX-License-Identifier: Apache-2.0

import json
import pathlib
import unittest
from unittest import mock

from hpcvirt import topology
from hpcvirt.topology import collection
from hpcvirt.topology import snapshot
from tests.builders import machines
from tests.builders import refusals
from tests.builders import sysfs_files
from tests.builders import writers


class SourceTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.scratch = pathlib.Path(sysfs_files.scratch(self))
        self.host = machines.of_cells(
            machines.cell(0, (0, 1), socket=0),
            machines.cell(1, (2, 3), socket=1))
        self.paths = {
            'libvirt': self.write('libvirt', writers.libvirt(self.host)),
            'hwloc': self.write('hwloc', writers.hwloc(self.host)),
            'snapshot': self.write(
                'snapshot', snapshot.dumps(self.host).encode()),
            'sysfs': str(self.scratch / 'root')}
        sysfs_files.lay_out(writers.sysfs(self.host), self.paths['sysfs'])

    def write(self, name: str, data: bytes) -> str:
        path = self.scratch / name
        path.write_bytes(data)
        return str(path)

    def refused(self, pattern: str, *args: str | None) -> None:
        self.assertRegex(refusals.message(self, topology.read, *args),
                         pattern)

    def test_auto_recognizes_the_sources_by_their_content(self) -> None:
        for path in self.paths.values():
            self.assertEqual(self.host.cells, topology.read(path).cells)

    def test_blanks_and_byte_order_marks_are_ignored(self) -> None:
        text = pathlib.Path(self.paths['snapshot']).read_bytes()
        for before in (b'\xef\xbb\xbf', b'\n \t', b'\xef\xbb\xbf\n'):
            path = self.write('x', before + text)
            self.assertEqual(self.host, topology.read(path))
        xml = pathlib.Path(self.paths['libvirt']).read_text()
        for data in (xml.encode('utf-16'), xml.encode('utf-8-sig'),
                     b'\n' + xml.encode()):
            self.assertEqual(self.host.cells,
                             topology.read(self.write('x', data)).cells)

    def test_other_content_is_refused(self) -> None:
        for data, pattern in (
                (b'', 'is empty'), (b' \n', 'is empty'),
                (b'hello', 'has an unknown form; expected one of: XML of'),
                (b'[1]', 'must be a mapping'),
                (b'\x1f\x8b\x08', 'is an archive'),
                (b'BZh91AY', 'is an archive; unpack it'),
                (b'sys/'.ljust(257, b'\0') + b'ustar  ', 'is an archive'),
                (b'<domain/>', 'is XML of <domain>; .*XML of <capabilities>'),
                (b'<domainCapabilities/>', 'expected one of'),
                (b'{', 'is not valid JSON')):
            self.refused(f'/x: .*{pattern}', self.write('x', data))

    def test_xml_is_named_after_its_file_and_a_snapshot_is_not(self) -> None:
        named = snapshot.make_json(self.host) | {'name': 'node9'}
        for path, data, name in (
                ('node7.example.xml', writers.libvirt(self.host),
                 'node7.example'),
                ('a\nb\udcff.xml', writers.libvirt(self.host), 'a b\\udcff'),
                ('node7.json', json.dumps(named).encode(), 'node9')):
            self.assertEqual(name, topology.read(self.write(path, data)).name)

    def test_a_source_is_added_by_one_entry(self) -> None:
        name_only = collection._Source(
            'names', 'a name alone', lambda file: file.data == b'node7',
            lambda _file: machines.of_cells(machines.cell(0, (0,))))
        path = self.write('x', b'node7')
        self.refused('has an unknown form', path)
        with mock.patch.object(collection, '_SOURCES',
                               (*collection._SOURCES, name_only)):
            self.assertEqual({0}, topology.read(path).cpus)
            self.refused(r'JSON \(snapshot\), a name alone \(names\)',
                         self.write('y', b'node8'))
