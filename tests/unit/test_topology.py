# SPDX-License-Identifier: Apache-2.0

import dataclasses
import json
import pathlib
import random
import unittest
from typing import Any
from unittest import mock

from hpcvirt import exception
from hpcvirt import topology
from hpcvirt.model import host as host_model
from hpcvirt.topology import assemble
from hpcvirt.topology import bitmap
from hpcvirt.topology import document
from hpcvirt.topology import pci
from hpcvirt.topology import snapshot
from hpcvirt.topology import source as sources
from tests.builders import machines
from tests.builders import sysfs_files
from tests.builders import writers

POOL = host_model.PagePool(4, 1000)
CELL = assemble.CellFacts(0, frozenset({0}), frozenset({0, 1}), 4096, (POOL,))
OTHER = assemble.CellFacts(3, frozenset({1}), frozenset({2, 3}), 8192, ())
CORES = {0: frozenset({0, 1}), 1: frozenset({0, 1}),
         2: frozenset({2}), 3: frozenset({3})}
DEVICE = host_model.Device('0000:41:00.0', '8086', '1572', 3)


def build(*cells: assemble.CellFacts, **changes: Any) -> host_model.Host:
    facts: dict[str, Any] = {
        'where': 'box', 'name': 'box', 'cells': cells or (CELL, OTHER),
        'siblings': CORES, 'caches': {}, 'distances': {}, 'devices': ()}
    return assemble.host(**(facts | changes))


class HostTest(unittest.TestCase):
    def test_cells_cores_and_pools_are_sorted(self) -> None:
        host = build(OTHER, dataclasses.replace(CELL, pages=(
            host_model.PagePool(2048, 0), POOL)))
        self.assertEqual([0, 3], [cell.id for cell in host.cells])
        self.assertEqual(({2}, {3}), host.cells[1].siblings)
        self.assertEqual((POOL, host_model.PagePool(2048, 0)),
                         host.cells[0].pages)

    def test_cpus_without_a_cache_share_one(self) -> None:
        three = assemble.CellFacts(0, frozenset({0}),
                                   frozenset({0, 1, 2, 3}), 4096, ())
        host = build(three, caches={0: frozenset({0, 1}),
                                    1: frozenset({0, 1})})
        self.assertEqual(({0, 1}, {2, 3}), host.cells[0].llc)

    def test_memory_is_rounded_down(self) -> None:
        host = build(dataclasses.replace(CELL, memory_kib=5119), OTHER)
        self.assertEqual(4, host.cells[0].memory_mib)

    def test_pages_may_fill_the_last_mib_of_a_snapshot(self) -> None:
        last = dataclasses.replace(CELL, pages=(host_model.PagePool(4, 1279),))
        self.assertEqual(1279, build(last, OTHER).cells[0].pages[0].total)
        beyond = dataclasses.replace(
            CELL, pages=(host_model.PagePool(4, 1280),))
        with self.assertRaisesRegex(exception.InvalidInput, 'has pages of'):
            build(beyond, OTHER)

    def test_contradictions_name_the_element(self) -> None:
        for pattern, change in {
            "^box: ' ' cannot be the name": {'name': ' '},
            'cell 0: -1 cannot be the number of a socket': {
                'cells': (dataclasses.replace(
                    CELL, sockets=frozenset({-1})), OTHER)},
            'cell 0: has -1 pages of 4 KiB': {
                'cells': (dataclasses.replace(
                    CELL, pages=(host_model.PagePool(4, -1),)), OTHER)},
            'siblings of CPU 0: 0-1, but CPU 1 has 1': {
                'siblings': CORES | {1: frozenset({1})}},
            'siblings of CPU 9: that CPU is in no cell': {
                'siblings': CORES | {9: frozenset({9})}},
            'siblings of CPU 2: CPU 9 does not exist': {
                'siblings': CORES | {2: frozenset({2, 9})}},
            'siblings of CPU 2: an empty set does not include the CPU '
            'itself': {'siblings': CORES | {2: frozenset()}},
            'cell 3: the siblings of CPU 2 are missing': {
                'siblings': {0: CORES[0], 1: CORES[1]}},
            'cell 0: CPU 0 has the sibling 2, which is in another cell': {
                'siblings': {0: frozenset({0, 2}), 1: frozenset({1}),
                             2: frozenset({0, 2}), 3: frozenset({3})}},
            'last-level cache of CPU 0: CPU 7 does not exist': {
                'caches': {0: frozenset({0, 7})}},
            'cell 0: has two pools of 4 KiB': {
                'cells': (dataclasses.replace(CELL, pages=(POOL,) * 2),
                          OTHER)},
            'cell 0: 3 KiB is not a page size': {
                'cells': (dataclasses.replace(
                    CELL, pages=(host_model.PagePool(3, 1),)), OTHER)},
            'has two cells with the number 0': {'cells': (CELL, CELL)},
            'cell 3: CPU 1 is also in cell 0': {
                'cells': (CELL, dataclasses.replace(
                    OTHER, cpus=frozenset({1, 2, 3})))},
            'no cell has a CPU': {'cells': (), 'siblings': {}},
            'no cell has memory': {'cells': (dataclasses.replace(
                CELL, memory_kib=0, pages=()),)},
            'from cell 0 to cell 9: cell 9 does not exist': {
                'distances': {(0, 9): 10}},
            'from cell 0 to cell 0: 0 is not within 1': {
                'distances': {(0, 0): 0}},
            'the distance from cell 0 to cell 3 is missing': {
                'distances': {(0, 0): 10}},
        }.items():
            with self.subTest(pattern), self.assertRaisesRegex(
                    exception.InvalidInput, pattern):
                build(**change)

    def test_a_host_with_the_most_cpus_is_checked_quickly(self) -> None:
        cpus = frozenset(range(65536))
        groups = dict.fromkeys(cpus, cpus)
        host = build(assemble.CellFacts(0, frozenset({0}), cpus, 4096, ()),
                     siblings=groups, caches=groups)
        self.assertEqual((cpus,), host.cells[0].llc)


class SmallPagesTest(unittest.TestCase):
    def test_a_small_page_is_the_smallest_of_the_page_sizes(self) -> None:
        for sizes, small_kib in (([], 4), ([4, 2048], 4), ([524288, 64], 64),
                                 ([2048, 1048576], 4), ([0, 16], 16)):
            self.assertEqual(small_kib, assemble.small_page_kib(sizes))

    def test_small_pages_are_the_memory_without_huge_pages(self) -> None:
        for huge, small_kib, rest in ((3, 4, 512), (3, 64, 32), (5, 4, 0)):
            pool = host_model.PagePool(2048, huge)
            self.assertEqual(
                (host_model.PagePool(small_kib, rest), pool),
                assemble.add_small_pages(8192, [pool], small_kib))
        self.assertEqual((POOL,), assemble.add_small_pages(8192, [POOL], 4))


SOME = range(100)


class MembersTest(unittest.TestCase):
    def test_words_are_read_from_the_most_significant(self) -> None:
        for text, numbers in {
                '0x0': set(), '': set(), '0x1': {0}, '0x000000ff': set(
                    range(8)), '0x1,0x0': {32}, '0x1,,0x3': {0, 1, 64},
                'f': {0, 1, 2, 3}, '00000000,00000003': {0, 1},
                '0xf...f': set(SOME), '0xf...f,0x1': {0} | set(
                    range(32, 100)), '0xF...f,,0x0': set(range(64, 100)),
                ' 0x3\n': {0, 1}}.items():
            self.assertEqual(numbers, bitmap.members(text, SOME, 'a'), text)

    def test_numbers_outside_of_the_universe_are_ignored(self) -> None:
        self.assertEqual({1}, bitmap.members('0xf', [1, 9], 'a'))

    def test_a_written_bitmap_is_read_back(self) -> None:
        dice = random.Random(1)
        for _ in range(200):
            numbers = set(dice.sample(SOME, dice.randint(0, 100)))
            self.assertEqual(numbers, bitmap.members(
                writers.bitmap(numbers), SOME, 'a'))

    def test_anything_else_is_refused(self) -> None:
        for text in ('x', '0x', '0x123456789', '0x1;0x2', '0x1,0xf...f',
                     '-1', '1 2', '0x1,' * 2048 + '0x1'):
            with self.assertRaisesRegex(exception.InvalidInput, '^a: '):
                bitmap.members(text, SOME, 'a')


class OnlyMemberTest(unittest.TestCase):
    def test_a_set_of_one_has_an_only_member(self) -> None:
        for text, number in (('0x1', 0), ('0x4,0x0', 34), ('0x3', None),
                             ('0x0', None), ('', None), ('0xf...f', None)):
            self.assertEqual(number, bitmap.only_member(text, 'a'), text)


DOCTYPE = '<!DOCTYPE topology SYSTEM "hwloc2.dtd">'


class XmlTest(unittest.TestCase):
    def refused(self, xml: str | bytes, pattern: str) -> None:
        data = xml.encode() if isinstance(xml, str) else xml
        with self.assertRaisesRegex(exception.InvalidInput,
                                    f'a.xml: .*{pattern}'):
            document.xml_root(data, 'a.xml')

    def test_the_doctype_of_hwloc_is_accepted_and_not_opened(self) -> None:
        for name in ('hwloc2.dtd', 'file:///dev/zero', '/dev/zero'):
            root = document.xml_root(
                f'<!DOCTYPE topology SYSTEM "{name}"><topology/>'.encode(),
                'a.xml')
            self.assertEqual('topology', root.tag)

    def test_other_doctypes_are_refused(self) -> None:
        for doctype in ('<!DOCTYPE capabilities SYSTEM "x.dtd">',
                        '<!DOCTYPE topology []>',
                        '<!DOCTYPE topology [<!ELEMENT topology EMPTY>]>',
                        '<!DOCTYPE topology SYSTEM "hwloc2.dtd" [ ]>',
                        '<!DOCTYPE topology [<!ATTLIST a b CDATA "">]>'):
            self.refused(doctype + '<topology/>', 'document type definition')

    def test_entities_are_refused_and_never_expanded(self) -> None:
        for declaration in ('<!ENTITY a "aaaa">',
                            '<!ENTITY a SYSTEM "file:///etc/passwd">',
                            '<!ENTITY % a SYSTEM "http://127.0.0.1/a">'):
            self.refused(f'<!DOCTYPE topology [{declaration}]>'
                         '<topology>&a;</topology>', 'refused')

    def test_undeclared_entities_are_refused(self) -> None:
        self.refused(f'{DOCTYPE}<topology>&a;</topology>', 'well-formed')

    def test_xml_that_is_not_well_formed_is_refused(self) -> None:
        for xml in ('', '<', '<a', '<a>', '<a></b>', '<a/><b/>', 'x<a/>',
                    '<a b="1" b="2"/>', '<a>\0</a>',
                    '<?xml version="1.0" encoding="no-such"?><a/>',
                    '<?xml version="1.0" encoding="utf-7"?><a/>',
                    '<?xml version="1.0" encoding="base64"?><a/>',
                    b'<a>\xff\xfe</a>', b'\x89PNG\r\n\x1a\n'):
            self.refused(xml, 'not well-formed XML')

    def test_encodings_that_xml_knows_are_read(self) -> None:
        for encoding in ('utf-8', 'utf-16', 'iso-8859-1'):
            xml = f'<?xml version="1.0" encoding="{encoding}"?><a b="\xe9"/>'
            root = document.xml_root(xml.encode(encoding), 'a.xml')
            self.assertEqual('\xe9', root.get('b'))

    def test_deep_nesting_is_refused(self) -> None:
        self.refused('<a>' * 100_000, 'nested deeper than 64')

    def test_too_many_elements_are_refused(self) -> None:
        self.refused('<a>' + '<b/>' * document.MAX_ELEMENTS + '</a>',
                     'more than 250000 elements')


class WholeTest(unittest.TestCase):
    def test_numbers_are_read(self) -> None:
        for text, number in (('0', 0), (' 12\n', 12), ('007', 7), ('-1', -1)):
            self.assertEqual(
                number, document.whole(text, 'a', 'b', 12, least=-1))

    def test_anything_else_is_refused(self) -> None:
        for text in (None, '', ' ', 'x', '1.5', '1e3', '0x1', '1 2', '--1',
                     '13', '-2', '9' * 9999, '\u0661', '+1', '1_0'):
            with self.assertRaisesRegex(exception.InvalidInput, '^a: b is'):
                document.whole(text, 'a', 'b', 12, least=-1)


class HexadecimalTest(unittest.TestCase):
    def test_the_prefix_is_optional(self) -> None:
        for text in ('0x8086', '8086', ' 0X8086\n'):
            self.assertEqual(0x8086, document.hexadecimal(text, 'a', 'b', 4))

    def test_anything_else_is_refused(self) -> None:
        for text in ('', '0x', 'xyz', '12345', '-1', '1_0', '1 2'):
            with self.assertRaisesRegex(exception.InvalidInput, '^a: b is'):
                document.hexadecimal(text, 'a', 'b', 4)


class IsListedTest(unittest.TestCase):
    def test_network_accelerators_and_nvme_are_listed(self) -> None:
        for class_code in (0x0200, 0x0207, 0x0280, 0x0c06, 0x1200, 0x0302,
                           0x0380, 0x0b40, 0x0108):
            self.assertTrue(pci.is_listed(class_code, '8086'), hex(class_code))

    def test_consoles_disks_and_bridges_are_not(self) -> None:
        for class_code in (0x0000, 0x0002, 0x0100, 0x0104, 0x0106, 0x0107,
                           0x0300, 0x0600, 0x0604, 0x0880, 0x0c03, 0x1080,
                           0x2000, 0xff00):
            self.assertFalse(pci.is_listed(class_code, '8086'),
                             hex(class_code))

    def test_display_controllers_of_gpu_vendors_are_no_consoles(self) -> None:
        for vendor_id, listed in (('10de', True), ('1002', True),
                                  ('1a03', False), ('102b', False)):
            self.assertIs(listed, pci.is_listed(0x0300, vendor_id))
            self.assertFalse(pci.is_listed(0x0604, vendor_id))


class CheckedTest(unittest.TestCase):
    DEVICE = host_model.Device('0000:41:00.0', '8086', '1572', 0, 64, 'i40e')

    def test_devices_are_sorted_by_the_numbers_of_their_addresses(
            self) -> None:
        addresses = ['10000:01:00.0', 'ffff:01:00.0', '0000:41:02.0',
                     '0000:41:00.1', '0000:41:00.0']
        devices = pci.check_devices('box', {0}, [
            dataclasses.replace(self.DEVICE, address=address)
            for address in addresses])
        self.assertEqual(addresses[::-1],
                         [device.address for device in devices])

    def test_impossible_devices_are_refused_by_name(self) -> None:
        for pattern, fields in {
            "^box: '41:00.0' is not a PCI address": {'address': '41:00.0'},
            "'0x8086' is not a PCI id": {'vendor_id': '0x8086'},
            "'157' is not a PCI id": {'product_id': '157'},
            'device 0000:41:00.0: is on cell 1, which does not exist': {
                'cell': 1},
            '65536 VFs are not within 0 to 65535': {'total_vfs': 65536},
            '-1 VFs are not': {'total_vfs': -1},
            "'a b' is not the name of a driver": {'driver': 'a b'},
        }.items():
            with self.subTest(pattern), self.assertRaisesRegex(
                    exception.InvalidInput, pattern):
                pci.check_devices('box', {0}, [
                    dataclasses.replace(self.DEVICE, **fields)])

    def test_a_device_must_not_occur_twice(self) -> None:
        with self.assertRaisesRegex(exception.InvalidInput, 'occurs twice'):
            pci.check_devices('box', {0}, [self.DEVICE, self.DEVICE])


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

    def test_xml_is_named_after_its_file_and_a_snapshot_is_not(self) -> None:
        named = snapshot.make_json(self.host) | {'name': 'node9'}
        for path, data, name in (
                ('node7.example.xml', writers.libvirt(self.host),
                 'node7.example'),
                ('a\nb\udcff.xml', writers.libvirt(self.host), 'a b\\udcff'),
                ('node7.json', json.dumps(named).encode(), 'node9')):
            self.assertEqual(name, topology.read(self.write(path, data)).name)

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
