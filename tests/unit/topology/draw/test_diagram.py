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

import pathlib
import unittest

from hpcvirt import topology
from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model
from hpcvirt.topology.draw import diagram
from tests.unit.topology import machines

DRAWINGS = pathlib.Path(__file__).parents[3] / 'data' / 'drawings'
SHIPPED = pathlib.Path(__file__).parents[4] / 'etc/hpcvirt/topologies'


def expected(name: str) -> str:
    return (DRAWINGS / f'{name}.txt').read_text()


class DrawTest(unittest.TestCase):
    maxDiff = None

    def test_two_cells_are_side_by_side(self) -> None:
        host = machines.of_cells(
            machines.cell(0, (0, 4), (1, 5), llc=((0, 1, 4, 5),),
                          huge=((2048, 512), (1048576, 0))),
            machines.cell(1, (2, 6), (3, 7), llc=((2, 6), (3, 7)),
                          package=1, small=262144),
            devices=(
                host_model.Device('0000:41:00.0', '8086', '1572', 1, 64,
                                  'i40e'),
                host_model.Device('0000:41:02.0', '8086', '154c', 1),
                host_model.Device('0000:41:02.1', '8086', '154c', 1),
                host_model.Device('0000:41:02.2', '8086', '154c', 1),
                host_model.Device('0000:c1:00.0', '15b3', '101d', None)))
        self.assertEqual(expected('two-cells'), diagram.draw(host, 80))

    def test_cells_of_one_package_are_in_its_box(self) -> None:
        host = machines.of_cells(
            machines.cell(0, (0,), (1,)), machines.cell(1, (2,), (3,)),
            machines.cell(2), distances=False)
        self.assertEqual(expected('one-package'), diagram.draw(host, 80))

    def test_the_example_of_the_documentation_is_correct(self) -> None:
        host = topology.read(str(SHIPPED / 'xeon-2s-24c-snc2-1g.json'))
        self.assertEqual(expected(host.name), diagram.draw(host, 80))

    def test_a_memory_only_cell_names_the_nearest_cells(self) -> None:
        host = machines.of_cells(
            machines.cell(0, (0,)), machines.cell(1, (1,)),
            machines.cell(2))
        self.assertIn('│ nearest to cell 0 ', diagram.draw(host))

    def test_every_cpu_and_every_device_is_drawn(self) -> None:
        for seed in range(60):
            host, _ = machines.invent(seed)
            for width in (60, 80, 120):
                text = diagram.draw(host, width)
                words = set(text.split())
                for cell in host.cells:
                    for core in cell.siblings:
                        self.assertIn(
                            cpuset.render(core), words)
                    self.assertIn(f'cell {cell.id} ', text)
                for device in host.devices:
                    self.assertIn(device.product_id, text)

    def test_shipped_machines_fit_into_the_width(self) -> None:
        for path in sorted(SHIPPED.glob('*.json')):
            host = topology.read(str(path))
            for width in (80, 100, 120, 140):
                text = diagram.draw(host, width)
                self.assertLessEqual(
                    max(map(len, text.splitlines())), width, path.name)

    def test_boxes_of_any_machine_are_complete(self) -> None:
        for seed in range(60):
            host, _ = machines.invent(seed)
            for line in diagram.draw(host, 60 + seed).splitlines():
                if line[:1] in '┃│' and line:
                    self.assertIn(line[-1], '┃│┓┐┛┘')

    def test_sixteen_cells_are_arranged_in_rows(self) -> None:
        host = machines.of_cells(*(
            machines.cell(number, *((cpu, cpu + 128) for cpu in
                                    range(number * 8, number * 8 + 8)),
                          package=number // 8)
            for number in range(16)))
        lines = diagram.draw(host, 120).splitlines()
        self.assertLessEqual(max(map(len, lines)), 120)
        self.assertIn(3, [line.count('┌─ cell') for line in lines])

    def test_rows_of_cells_are_equally_full(self) -> None:
        host = machines.of_cells(*(machines.cell(number, (number,))
                                   for number in range(4)))
        lines = diagram.draw(host, 130).splitlines()
        self.assertEqual({0, 2}, {line.count('┌─ cell') for line in lines})

    def test_distances_of_many_cells_are_lists(self) -> None:
        host = machines.of_cells(*(machines.cell(number, (number,))
                                   for number in range(40)))
        text = diagram.draw(host, 80)
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        self.assertIn('cell 3: 10 to 3; 23 to 0;', text)
