# SPDX-License-Identifier: Apache-2.0

"""Read machines from the XML of hwloc."""

import re
import unittest

from hpcvirt import exception
from hpcvirt import topology
from hpcvirt.model import host as host_model
from hpcvirt.model import wiring
from hpcvirt.topology import document
from hpcvirt.topology import hwloc
from tests.builders import machines
from tests.builders import refusals
from tests.builders import sysfs_files
from tests.builders import writers

GIB = 2 ** 30


def read(xml: str | bytes) -> host_model.Host:
    data = xml.encode() if isinstance(xml, str) else xml
    return hwloc.read(document.xml_root(data, 'lstopo.xml'), 'lstopo.xml',
                      'lstopo')


def pus(*cpus: int) -> str:
    return ''.join(f'<object type="Core" os_index="{cpu}"><object type="PU" '
                   f'os_index="{cpu}"/></object>' for cpu in cpus)


def node(number: int, cpuset: int, more: str = '', inside: str = '',) -> str:
    return (f'<object type="NUMANode" os_index="{number}" '
            f'cpuset="{cpuset:#x}" local_memory="{GIB}" {more}>{inside}'
            '</object>')


def machine(*inside: str, attributes: str = '', after: str = '') -> str:
    return (f'<topology version="2.0"><object type="Machine" {attributes}>'
            f'{"".join(inside)}</object>{after}</topology>')


def group(*inside: str) -> str:
    return f'<object type="Group">{"".join(inside)}</object>'


class Case(unittest.TestCase):
    def refused(self, xml: str | bytes, pattern: str) -> None:
        self.assertRegex(refusals.message(self, read, xml),
                         f'lstopo.xml.*{pattern}')

    def cells(self, xml: str) -> dict[int, tuple[set[int], int]]:
        return {cell.id: (set(cell.cpus), cell.memory_mib)
                for cell in read(xml).cells}


class SyntheticTest(unittest.TestCase):
    """Synthetic topologies written by hwloc itself."""

    def test_both_versions_give_the_same_cells(self) -> None:
        directory = sysfs_files.MACHINES / 'synthetic-2x2'
        old = topology.read(str(directory / 'lstopo-v1.xml'))
        new = topology.read(str(directory / 'lstopo.xml'))
        self.assertEqual(new.cells, old.cells)
        self.assertEqual([0, 0, 1, 1], [cell.socket for cell in new.cells])
        self.assertEqual(({0, 1, 2, 3}, {4, 5, 6, 7}), new.cells[0].llc)
        self.assertEqual(({24, 25}, {26, 27}, {28, 29}, {30, 31}),
                         new.cells[3].siblings)

    def test_cpus_belong_to_the_first_of_several_memory_nodes(self) -> None:
        read = topology.read(
            str(sysfs_files.MACHINES / 'synthetic-hbm' / 'lstopo.xml'))
        self.assertEqual(
            {0: 4, 1: 0, 2: 4, 3: 0, 4: 0, 5: 4, 6: 0, 7: 4, 8: 0, 9: 0},
            {cell.id: len(cell.cpus) for cell in read.cells})
        self.assertEqual(
            [64, 16, 64, 16, 256],
            [round(cell.memory_mib * 2 ** 20 / 1e9)
             for cell in read.cells[:5]])
        self.assertEqual([None], list({cell.socket for cell in read.cells
                                       if not cell.cpus}))


class GroupsTest(Case):
    def test_the_last_level_is_the_highest_level_of_data_caches(self) -> None:
        def cache(kind: str, inside: str) -> str:
            return f'<object type="{kind}">{inside}</object>'

        for xml, llc in (
                (cache('L3Cache', cache('L2Cache', pus(0))
                       + cache('L2Cache', pus(1))), ({0, 1},)),
                (cache('L2Cache', pus(0)) + cache('L2Cache', pus(1)),
                 ({0}, {1})),
                (cache('L3iCache', cache('L2Cache', pus(0))
                       + cache('L2Cache', pus(1))), ({0}, {1})),
                (cache('L3Cache', pus(0, 2)) + cache('L2Cache', pus(1)),
                 ({0, 2}, {1})),
                (cache('L4Cache', cache('L3Cache', pus(0))
                       + cache('L3Cache', pus(1))), ({0, 1},)),
                (pus(0, 1), ({0, 1},))):
            cpus = 7 if '"2"' in xml.replace('L2', '') else 3
            host = read(machine(node(0, cpus), xml))
            self.assertEqual(llc, host.cells[0].llc, xml)

    def test_version_1_has_the_level_in_another_attribute(self) -> None:
        xml = '<object type="Cache" depth="{}" cache_type="{}">{}</object>'
        host = read(machine(node(0, 3), xml.format(
            3, 2, xml.format(2, 0, pus(0)) + xml.format(2, 1, pus(1)))))
        self.assertEqual(({0}, {1}), host.cells[0].llc)

    def test_a_cache_over_several_cells_is_split_by_cell(self) -> None:
        host = read(machine(
            '<object type="L3Cache">', group(node(0, 1), pus(0)),
            group(node(1, 2), pus(1)), '</object>'))
        self.assertEqual([({0},), ({1},)], [cell.llc for cell in host.cells])

    def test_a_pu_without_core_is_a_core(self) -> None:
        host = read(machine(node(0, 3), '<object type="PU" os_index="0"/>'
                            '<object type="PU" os_index="1"/>'))
        self.assertEqual(({0}, {1}), host.cells[0].siblings)

    def test_more_than_1024_cpus_are_read(self) -> None:
        host = machines.of_cells(
            machines.cell(0, *((cpu, cpu + 2048) for cpu in range(1024))),
            machines.cell(1, *((cpu, cpu + 2048)
                               for cpu in range(1024, 2048)), socket=1))
        self.assertEqual(host.cells, read(writers.hwloc(host)).cells)


class DevicesTest(Case):
    PCI = ('<object type="Bridge"><object type="PCIDev" '
           'pci_busid="0000:{}:00.0" pci_type="{} [8086:15AB] [8086:0001] '
           '01 00"/></object>')

    def test_a_device_is_on_the_cell_whose_cpus_are_local(self) -> None:
        host = read(machine(
            group(node(0, 1), pus(0), self.PCI.format('b0', '0200')),
            group(node(1, 2), pus(1), self.PCI.format('a0', '0108')),
            self.PCI.format('c0', '0207')))
        self.assertEqual(
            [('0000:a0:00.0', 1), ('0000:b0:00.0', 0),
             ('0000:c0:00.0', None)],
            [(device.address, device.cell) for device in host.devices])
        self.assertEqual(('8086', '15ab', 0, None), (
            host.devices[0].vendor_id, host.devices[0].product_id,
            host.devices[0].total_vfs, host.devices[0].driver))

    def test_a_second_memory_node_of_the_same_cpus_is_ignored(self) -> None:
        host = read(machine(
            node(1, 1), node(0, 1), pus(0), self.PCI.format('b0', '0200')))
        self.assertEqual(0, host.devices[0].cell)

    def test_a_gpu_with_a_display_is_listed_and_a_console_is_not(self) -> None:
        for vendor, listed in (('10DE', True), ('1a03', False)):
            gpu = self.PCI.replace('8086:15AB', f'{vendor}:2230')
            self.assertIs(listed, bool(read(machine(
                node(0, 1), pus(0), gpu.format('b0', '0300'))).devices))

    def test_a_device_without_ids_is_refused(self) -> None:
        self.refused(machine(node(0, 1), pus(0), self.PCI.replace(
            '[8086:15AB]', '').format('b0', '0200')),
            'PCIDev 0000:b0:00.0: has no pci_type')


class WiringTest(Case):
    XML = ('<object type="Bridge" bridge_type="0-1">'
           '<object type="Bridge" bridge_type="1-1" pci_busid="0000:A0:01.0" '
           'pci_type="0604 [8086:2030] [0000:0000] 04" '
           'pci_link_speed="15.753846"><object type="PCIDev" '
           'pci_busid="0000:a1:00.0" pci_type="0302 [10de:2330] [10de:0001] '
           'a1" pci_link_speed="{}"/></object><object type="PCIDev" '
           'pci_busid="0000:a0:04.0" pci_type="1200 [8086:0b25] [8086:0001] '
           '00"/></object>')

    def read(self, inside: str) -> wiring.Wiring | None:
        return read(machine(node(0, 1), pus(0), inside)).wiring

    def test_bridges_have_addresses_and_host_bridges_have_none(self) -> None:
        found = self.read(self.XML.format('3.938462'))
        self.assertEqual(wiring.Wiring(
            (wiring.Bridge('0000:a0:01.0',
                           link=wiring.PCIeLink(gb_per_s=15.753846)),),
            (wiring.Attachment('0000:a0:04.0'), wiring.Attachment(
                '0000:a1:00.0', '0000:a0:01.0',
                wiring.PCIeLink(gb_per_s=3.938462))),
            unknown=frozenset((wiring.UnknownWiring.IOMMU_GROUPS,
                               wiring.UnknownWiring.DEVICE_LINKS))), found)

    def test_a_speed_of_0_or_no_number_is_unknown(self) -> None:
        for speed in ('0.000000', '', '-1', 'nan', 'inf', '1e9', '9' * 400):
            found = self.read(self.XML.format(speed))
            assert found is not None
            self.assertIsNone(found.attachments[1].link)

    def test_without_bridges_the_wiring_is_unknown(self) -> None:
        self.assertIsNone(self.read(
            '<object type="PCIDev" pci_busid="0000:a1:00.0" '
            'pci_type="0302 [10de:2330] [10de:0001] a1"/>'))

    def test_a_bridge_that_occurs_twice_is_refused(self) -> None:
        self.refused(machine(node(0, 1), pus(0), self.XML * 2),
                     'occurs twice')


class NameTest(Case):
    def test_the_name_is_in_the_machine_or_the_topology(self) -> None:
        info = '<info name="HostName" value="node7"/>'
        self.assertEqual('node7', read(machine(info, node(0, 1), pus(0))).name)
        self.assertEqual('node7', read(machine(
            node(0, 1), pus(0), after=info)).name)
        self.assertEqual('lstopo', read(machine(node(0, 1), pus(0))).name)


class ContradictionTest(Case):
    def test_each_is_refused_and_names_the_element(self) -> None:
        for pattern, xml in {
            'PU 0: occurs twice': machine(
                group(node(0, 1), pus(0)), group(node(1, 2), pus(0))),
            'NUMANode 0: occurs twice': machine(
                group(node(0, 1), pus(0)), group(node(0, 2), pus(1))),
            'NUMANode 1: its cpuset and its position do not agree on CPU 0':
                machine(group(node(0, 1), pus(0)), group(node(1, 3), pus(1))),
            'NUMANode 0: CPU 1 is also in NUMANode 1': machine(
                node(0, 3), pus(0), group(node(1, 2), pus(1))),
            'PU 1: is in no NUMANode': machine(
                group(node(0, 1), pus(0)), pus(1)),
            'names NUMA node 2 but does not describe it': machine(
                node(0, 1), pus(0), attributes='nodeset="0x5"'),
            '5000 bytes is not a page size': machine(node(
                0, 1, inside='<page_type size="5000" count="0"/>'), pus(0)),
            "count of a <page_type> is '-', not": machine(node(
                0, 1, inside='<page_type size="4096" count="-"/>'), pus(0)),
            'local_memory is -1': machine(node(0, 1).replace(
                str(GIB), '-1') + pus(0)),
            'os_index of a PU is missing': machine(
                node(0, 1), '<object type="PU"/>'),
            'os_index of a NUMANode is 4294967295': machine(
                node(4294967295, 1), pus(0)),
            "a word of a set is 'zz'": machine(
                node(0, 1).replace('0x1', 'zz'), pus(0)),
            'not a <topology> with an <object>': '<topology/>',
            'the root element is <object>': '<object/>',
        }.items():
            with self.subTest(pattern):
                self.refused(xml, re.escape(pattern))


class DistancesTest(Case):
    MATRIX = ('<distances2 type="{}" nbobjs="2" kind="{}" indexing="{}">'
              '<indexes>{}</indexes><u64values>10 </u64values>'
              '<u64values>{} 22 10</u64values></distances2>')

    def read(self, *after: str) -> tuple[tuple[int, ...], ...]:
        return read(machine(
            group(node(0, 1, 'gp_index="70"'), pus(0)),
            group(node(4, 2, 'gp_index="30"'), pus(1)),
            after=''.join(after))).distances

    def test_the_latencies_of_the_system_are_read(self) -> None:
        for after in (
                [self.MATRIX.format('NUMANode', 5, 'os', '0 4', 21)],
                [self.MATRIX.format('NUMANode', 5, 'gp', '70 30', 21)],
                [self.MATRIX.format('NUMANode', 9, 'os', '0 4', 99),
                 self.MATRIX.format('PU', 5, 'os', '0 1', 98),
                 self.MATRIX.format('NUMANode', 6, 'os', '0 4', 97),
                 self.MATRIX.format('NUMANode', 5, 'os', '0 4', 21)]):
            self.assertEqual(((10, 21), (22, 10)), self.read(*after))

    def test_the_nodes_of_distances_may_be_in_any_order(self) -> None:
        self.assertEqual(((10, 22), (21, 10)), self.read(
            self.MATRIX.format('NUMANode', 5, 'os', '4 0', 21)))

    def test_without_latencies_distances_are_unknown(self) -> None:
        self.assertEqual((), self.read())

    def test_the_list_of_version_1_is_scaled_back(self) -> None:
        def xml(depth: int, *values: str) -> str:
            latencies = ''.join(f'<latency value="{value}"/>'
                                for value in values)
            return ('<topology><object type="Machine"><distances nbobjs="2" '
                    f'relative_depth="{depth}" latency_base="10.000000">'
                    f'{latencies}</distances>'
                    + node(0, 1, inside=pus(0)) + node(1, 2, inside=pus(1))
                    + '</object></topology>')

        good = ('1.000000', '2.100000', '2.1', '1')
        self.assertEqual(((10, 21), (21, 10)), read(xml(1, *good)).distances)
        self.assertEqual((), read(xml(2, *good)).distances)
        self.refused(xml(1, '1', '2'), 'has 2 numbers instead of 4')
        for bad in ('nan', 'inf', '-1', 'x', '0', '1e9'):
            self.refused(xml(1, '1', bad, '2', '1'), 'is not a distance')

    def test_a_matrix_of_other_nodes_is_refused(self) -> None:
        good = self.MATRIX.format('NUMANode', 5, 'os', '0 4', 21)
        for pattern, bad in {
                'names node 7, which does not exist':
                    good.replace('0 4', '0 7'),
                'names a node twice': good.replace('0 4', '0 0'),
                'indexes: has 1 numbers instead of 2':
                    good.replace('0 4', '0'),
                'u64values: has 3 numbers instead of 4':
                    good.replace('21', ''),
                'nbobjs is 3': good.replace('"2"', '"3"'),
                'is not within 1 to 255': good.replace('21', '256'),
                "is 'x', not a whole number": good.replace('21', 'x'),
                'the kind of <distances2> is missing':
                    good.replace(' kind="5"', '')}.items():
            with self.subTest(pattern), self.assertRaisesRegex(
                    exception.InvalidInput, pattern):
                self.read(bad)


class NodesTest(Case):
    def test_the_subtype_identifies_the_main_memory(self) -> None:
        for first, second, owner in (
                ('', '', 0), ('subtype="HBM"', '', 1),
                ('subtype="HBM"', 'subtype="DRAM"', 1),
                ('subtype="MCDRAM"', 'subtype="DRAM"', 1),
                ('subtype="DRAM"', 'subtype="CXL-DRAM"', 0),
                ('subtype="HBM"', 'subtype="HBM"', 0)):
            found = self.cells(machine(
                node(0, 3, first), node(1, 3, second), pus(0, 1)))
            self.assertEqual({owner: ({0, 1}, 1024),
                              1 - owner: (set(), 1024)}, found)

    def test_cpus_belong_to_the_memory_with_the_fewest_cpus(self) -> None:
        found = self.cells(machine(
            node(0, 0xf), group(node(1, 3), pus(0, 1)),
            group(node(2, 0xc), pus(2, 3))))
        self.assertEqual({0: (set(), 1024), 1: ({0, 1}, 1024),
                          2: ({2, 3}, 1024)}, found)

    def test_a_memory_side_cache_may_contain_the_node(self) -> None:
        found = self.cells(machine(
            f'<object type="MemCache" cpuset="0x3">{node(0, 3)}</object>',
            pus(0, 1)))
        self.assertEqual({0: ({0, 1}, 1024)}, found)

    def test_version_1_without_nodes_is_one_cell(self) -> None:
        host = read('<topology><object type="Machine" cpuset="0x3" '
                    f'nodeset="0xf...f" local_memory="{GIB}"><page_type '
                    'size="4096" count="262144"/><object type="Socket" '
                    f'os_index="1">{pus(0, 1)}</object></object></topology>')
        self.assertEqual(
            [host_model.Cell(0, 1, frozenset({0, 1}),
                             (frozenset({0}), frozenset({1})),
                             (frozenset({0, 1}),), 1024,
                             (host_model.PagePool(4, 262144),))],
            list(host.cells))

    def test_version_3_has_no_pages(self) -> None:
        host = read(machine(node(0, 1), pus(0)))
        self.assertEqual((host_model.PagePool(4, 262144),),
                         host.cells[0].pages)

    def test_a_cell_may_span_several_sockets(self) -> None:
        socket = '<object type="Package" os_index="{}">{}</object>'
        host = read(machine(node(0, 0xf), socket.format(4, pus(0, 1)),
                            socket.format(3, pus(2, 3))))
        self.assertEqual([3], [cell.socket for cell in host.cells])


class AllowedTest(Case):
    """Memory that lstopo must not use."""

    def test_forbidden_memory_is_left_out(self) -> None:
        xml = machine(group(node(0, 1), pus(0)), node(1, 1),
                      attributes='allowed_nodeset="0x1" nodeset="0x3"')
        self.assertEqual({0: ({0}, 1024)}, self.cells(xml))

    def test_the_cpus_of_forbidden_memory_are_kept(self) -> None:
        xml = machine(group(node(0, 1), pus(0)), group(node(1, 2), pus(1)),
                      attributes='allowed_nodeset="0x2"')
        self.assertEqual({0: ({0}, 0), 1: ({1}, 1024)}, self.cells(xml))

    def test_cpus_keep_their_cell_if_its_object_is_left_out(self) -> None:
        # This is what lstopo writes without --disallowed.
        xml = machine(
            '<object type="Group" complete_nodeset="0x1">'
            f'{pus(0)}</object>', group(node(1, 2), pus(1)),
            attributes='nodeset="0x2" complete_nodeset="0x3"',
            after='<distances2 type="NUMANode" nbobjs="1" kind="5" '
            'indexing="os"><indexes>1</indexes><u64values>10</u64values>'
            '</distances2>')
        self.assertEqual({0: ({0}, 0), 1: ({1}, 1024)}, self.cells(xml))
        self.assertEqual((), read(xml).distances)


class UsableCPUsTest(Case):
    """CPUs that are offline, or that lstopo must not use."""

    def test_offline_and_forbidden_cpus_are_left_out(self) -> None:
        for attributes in ('cpuset="0x3" complete_cpuset="0x7"',
                           'cpuset="0x7" allowed_cpuset="0x3"',
                           'cpuset="0x7" online_cpuset="0x3"',
                           'allowed_cpuset="0x3"',
                           'cpuset="0xf...f" allowed_cpuset="0x0,0x3"'):
            xml = machine(node(0, 7), pus(0, 1, 2), attributes=attributes)
            self.assertEqual({0: ({0, 1}, 1024)}, self.cells(xml))
