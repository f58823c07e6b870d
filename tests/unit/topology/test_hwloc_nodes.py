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

from hpcvirt.model import host as host_model
from tests.unit.topology import hwloc_xml

GIB = hwloc_xml.GIB
group = hwloc_xml.group
machine = hwloc_xml.machine
node = hwloc_xml.node
pus = hwloc_xml.pus
read = hwloc_xml.read


class NodesTest(hwloc_xml.Case):
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

    def test_cells_may_lack_memory(self) -> None:
        found = self.cells(machine(
            group('<object type="NUMANode" os_index="0" cpuset="0x1"/>',
                  pus(0)), group(node(1, 2), pus(1))))
        self.assertEqual({0: ({0}, 0), 1: ({1}, 1024)}, found)

    def test_a_cell_may_span_several_packages(self) -> None:
        package = '<object type="Package" os_index="{}">{}</object>'
        host = read(machine(node(0, 0xf), package.format(4, pus(0, 1)),
                            package.format(3, pus(2, 3))))
        self.assertEqual([3], [cell.package for cell in host.cells])


class AllowedTest(hwloc_xml.Case):
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
