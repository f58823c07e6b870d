# SPDX-License-Identifier: Apache-2.0

import re
import unittest

from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model
from hpcvirt.topology.draw import cell_diagram
from tests.builders import hosts
from tests.builders import machines


class CoresTest(unittest.TestCase):
    """Every core is shown once, in the bracket of its cache."""

    def cells(self) -> list[host_model.Cell]:
        every = [*hosts.shipped(),
                 *(machines.invent(seed)[0] for seed in range(40))]
        return [cell for host in every for cell in host.cells if cell.cpus]

    def test_each_core_is_shown_once_within_the_width(self) -> None:
        for cell in self.cells():
            label = max(len(cpuset.render(core)) for core in cell.siblings)
            for inner in (32, 44, 120):
                lines = cell_diagram.cores(cell, inner, label)
                shown = re.findall(r'[\d,-]+', ' '.join(lines))
                self.assertEqual(
                    sorted(map(cpuset.render, cell.siblings)), sorted(shown))
                self.assertEqual(1, len({len(line) for line in lines}))
                self.assertLessEqual(len(lines[0]), max(inner, 2 + label))

    def test_there_is_one_bracket_for_each_shared_cache(self) -> None:
        for cell in self.cells():
            text = '\n'.join(cell_diagram.cores(cell, 60, 8))
            shared = len(cell.llc) < len(cell.siblings) or (
                len(cell.siblings) == 1)
            self.assertEqual(
                len(cell.llc) if shared else 0,
                text.count('[') + text.count('┌'))
            self.assertEqual(text.count('┌'), text.count('└'))


class PoolsTest(unittest.TestCase):
    def test_memory_and_its_pages_are_a_table(self) -> None:
        cell = machines.cell(0, (0,), huge=((2048, 512), (1048576, 0)))
        lines = cell_diagram.pools(cell, 36)
        self.assertEqual(['memory', '4 KiB pages', '2 MiB pages',
                          '1 GiB pages'], [line[:11].strip()
                                           for line in lines])
        self.assertEqual(['512', '1', 'GiB'], lines[2].split()[3:])
        self.assertEqual(['none'], lines[3].split()[3:])
        self.assertEqual({36}, {len(line) for line in lines})

    def test_a_cell_without_memory_says_so(self) -> None:
        empty = host_model.Cell(0, 0, frozenset({0}), (frozenset({0}),),
                                (frozenset({0}),), 0, ())
        self.assertEqual(['no memory'], cell_diagram.pools(empty, 32))


class DevicesTest(unittest.TestCase):
    def lines(self, *devices: host_model.Device) -> list[str]:
        return cell_diagram.devices(devices, 80)

    def test_equal_functions_share_a_line(self) -> None:
        functions = [host_model.Device(f'0000:41:02.{number}', '8086',
                                       '154c', 0) for number in range(3)]
        self.assertEqual(['0000:41:02.0 … 02.2 3 x 8086:154c'],
                         self.lines(*functions))

    def test_functions_on_several_buses_show_both_addresses(self) -> None:
        functions = [host_model.Device(f'0000:{bus}:00.0', '15b3', '101d', 0,
                                       8, 'mlx5_core') for bus in (41, 42)]
        self.assertEqual(
            '0000:41:00.0 … 0000:42:00.0 2 x 15b3:101d mlx5_core 8 VFs each',
            ' '.join(self.lines(*functions)))

    def test_a_single_function_shows_driver_and_vfs(self) -> None:
        self.assertEqual(
            ['0000:41:00.0 8086:1572 i40e 1 VF'],
            self.lines(host_model.Device('0000:41:00.0', '8086', '1572', 0,
                                         1, 'i40e')))
