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

import re
import unittest

from hpcvirt import topology
from tests.unit.topology import hwloc_xml
from tests.unit.topology import machines
from tests.unit.topology import sysfs_files
from tests.unit.topology import writers

GIB = hwloc_xml.GIB
group = hwloc_xml.group
machine = hwloc_xml.machine
node = hwloc_xml.node
pus = hwloc_xml.pus
read = hwloc_xml.read


class SyntheticTest(unittest.TestCase):
    """Synthetic topologies written by hwloc itself."""

    def test_both_versions_give_the_same_cells(self) -> None:
        directory = sysfs_files.MACHINES / 'synthetic-2x2'
        old = topology.read(str(directory / 'lstopo-v1.xml'))
        new = topology.read(str(directory / 'lstopo.xml'))
        self.assertEqual(new.cells, old.cells)
        self.assertEqual([0, 0, 1, 1], [cell.package for cell in new.cells])
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
        self.assertEqual([None], list({cell.package for cell in read.cells
                                       if not cell.cpus}))


class GroupsTest(hwloc_xml.Case):
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

    def test_cores_may_have_different_numbers_of_threads(self) -> None:
        core = ('<object type="Core"><object type="PU" os_index="8"/>'
                '<object type="PU" os_index="9"/></object>')
        host = read(machine(node(0, 0x301), pus(0), core))
        self.assertEqual(({0}, {8, 9}), host.cells[0].siblings)

    def test_a_pu_without_core_is_a_core(self) -> None:
        host = read(machine(node(0, 3), '<object type="PU" os_index="0"/>'
                            '<object type="PU" os_index="1"/>'))
        self.assertEqual(({0}, {1}), host.cells[0].siblings)

    def test_more_than_1024_cpus_are_read(self) -> None:
        host = machines.of_cells(
            machines.cell(0, *((cpu, cpu + 2048) for cpu in range(1024))),
            machines.cell(1, *((cpu, cpu + 2048)
                               for cpu in range(1024, 2048)), package=1))
        self.assertEqual(host.cells, read(writers.hwloc(host)).cells)


class DevicesTest(hwloc_xml.Case):
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

    def test_other_classes_are_not_listed(self) -> None:
        self.assertEqual((), read(machine(
            node(0, 1), pus(0), self.PCI.format('b0', '0604'))).devices)

    def test_a_gpu_with_a_display_is_listed_and_a_console_is_not(self) -> None:
        for vendor, listed in (('10DE', True), ('1a03', False)):
            gpu = self.PCI.replace('8086:15AB', f'{vendor}:2230')
            self.assertIs(listed, bool(read(machine(
                node(0, 1), pus(0), gpu.format('b0', '0300'))).devices))

    def test_a_device_without_ids_is_refused(self) -> None:
        self.refused(machine(node(0, 1), pus(0), self.PCI.replace(
            '[8086:15AB]', '').format('b0', '0200')),
            'PCIDev 0000:b0:00.0: has no pci_type')


class NameTest(hwloc_xml.Case):
    def test_the_name_is_in_the_machine_or_the_topology(self) -> None:
        info = '<info name="HostName" value="node7"/>'
        self.assertEqual('node7', read(machine(
            info, node(0, 1), pus(0))).name)
        self.assertEqual('node7', read(machine(
            node(0, 1), pus(0), after=info)).name)
        self.assertEqual('lstopo', read(machine(node(0, 1), pus(0))).name)


class ContradictionTest(hwloc_xml.Case):
    def test_each_is_refused_and_names_the_element(self) -> None:
        for pattern, xml in {
            'PU 0: occurs twice': machine(
                group(node(0, 1), pus(0)), group(node(1, 2), pus(0))),
            'NUMANode 0: occurs twice': machine(
                group(node(0, 1), pus(0)), group(node(0, 2), pus(1))),
            'NUMANode 1: its cpuset and its position do not agree on CPU 0':
                machine(group(node(0, 1), pus(0)),
                        group(node(1, 3), pus(1))),
            'NUMANode 0: CPU 1 is also in NUMANode 1': machine(
                node(0, 3), pus(0), group(node(1, 2), pus(1))),
            'PU 1: is in no NUMANode': machine(
                group(node(0, 1), pus(0)), pus(1)),
            'names NUMA node 2 but does not describe it': machine(
                node(0, 1), pus(0), attributes='nodeset="0x5"'),
            'cell 0: has pages of 2097152 KiB': machine(node(
                0, 1, inside='<page_type size="4096" count="0"/><page_type '
                'size="2097152" count="1024"/>'), pus(0)),
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
            'has more than 2048 words': machine(
                node(0, 1).replace('0x1', ',' * 2048), pus(0)),
            'no cell has a CPU': machine(node(0, 0)),
            'no cell has memory': machine(
                node(0, 1).replace('local_memory', 'x'), pus(0)),
            'not a <topology> with an <object>': '<topology/>',
            'the root element is <object>': '<object/>',
        }.items():
            with self.subTest(pattern):
                self.refused(xml, re.escape(pattern))
