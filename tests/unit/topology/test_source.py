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

import json
import pathlib
import unittest
from unittest import mock

from hpcvirt import exception
from hpcvirt import topology
from hpcvirt.topology import snapshot
from hpcvirt.topology import source as sources
from tests.unit.topology import machines
from tests.unit.topology import sysfs_files
from tests.unit.topology import writers


class SourceTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.scratch = pathlib.Path(sysfs_files.scratch(self))
        self.host = machines.of_cells(
            machines.cell(0, (0, 1), package=0),
            machines.cell(1, (2, 3), package=1))
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
        with self.assertRaisesRegex(exception.InvalidInput, pattern):
            topology.read(*args)

    def test_auto_recognizes_the_sources_by_their_content(self) -> None:
        for path in self.paths.values():
            self.assertEqual(self.host.cells, topology.read(path).cells)

    def test_a_named_source_reads_its_files(self) -> None:
        for source, path in self.paths.items():
            self.assertEqual(self.host.cells,
                             topology.read(path, source).cells)

    def test_a_named_source_refuses_files_of_others(self) -> None:
        for source in self.paths:
            for other, path in self.paths.items():
                if source != other:
                    self.refused('', path, source)

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

    def test_an_unknown_source_is_refused(self) -> None:
        self.refused("--source: 'acpi' is not one of auto, sysfs",
                     self.paths['hwloc'], 'acpi')

    def test_only_sysfs_needs_no_path(self) -> None:
        for source in ('libvirt', 'hwloc', 'snapshot'):
            self.refused(f'--source {source}: needs the PATH', None, source)

    def test_xml_is_named_after_its_file(self) -> None:
        path = self.write('node7.example.xml', writers.libvirt(self.host))
        self.assertEqual('node7.example', topology.read(path).name)

    def test_a_file_may_have_any_name(self) -> None:
        path = self.write('a\nb\udcff.xml', writers.libvirt(self.host))
        self.assertEqual('a b\\udcff', topology.read(path).name)

    def test_a_snapshot_has_its_own_name(self) -> None:
        plain = snapshot.to_json(self.host) | {'name': 'node9'}
        path = self.write('node7.json', json.dumps(plain).encode())
        self.assertEqual('node9', topology.read(path).name)

    def test_a_source_is_added_by_one_entry(self) -> None:
        name_only = sources._Source(
            'names', 'a name alone', lambda file: file.data == b'node7',
            lambda _file: machines.of_cells(machines.cell(0, (0,))))
        path = self.write('x', b'node7')
        self.refused('has an unknown form', path)
        with (mock.patch.object(sources, '_SOURCES',
                                (*sources._SOURCES, name_only)),
              mock.patch.object(sources, 'SOURCES',
                                (*sources.SOURCES, 'names'))):
            for source in ('auto', 'names'):
                host = topology.read(path, source)
                self.assertEqual({0}, host.cpus)
            self.refused(r'JSON \(snapshot\), a name alone \(names\)',
                         self.write('y', b'node8'))
