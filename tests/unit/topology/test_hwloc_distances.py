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

from hpcvirt import exception
from tests.unit.topology import hwloc_xml

group = hwloc_xml.group
machine = hwloc_xml.machine
node = hwloc_xml.node
pus = hwloc_xml.pus
read = hwloc_xml.read


class DistancesTest(hwloc_xml.Case):
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
        self.assertEqual(((10, 21), (21, 10)),
                         read(xml(1, *good)).distances)
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
