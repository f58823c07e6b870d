# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.model import cpuset
from tests.builders import sysfs_files
from tests.system.emulated_host import machines

ALL = (*machines.MACHINES.values(), machines.COMPUTE)


class MachinesTest(unittest.TestCase):
    def test_each_cpu_is_in_one_cell(self) -> None:
        for machine in ALL:
            cpus = [cpu for cell, _ in machine.cells
                    for cpu in cpuset.parse(cell, machine.name)]
            number = machine.sockets * machine.cores * machine.threads
            self.assertEqual(list(range(number)), sorted(cpus))

    def test_each_pair_of_cells_has_a_distance(self) -> None:
        for machine in ALL:
            pairs = [word for word in machine.arguments()
                     if word.startswith('dist,')]
            cells = len(machine.cells)
            self.assertEqual(cells * (cells - 1) // 2, len(set(pairs)))

    def test_each_machine_was_captured(self) -> None:
        self.assertEqual(
            {path.stem for path in sysfs_files.HOSTS.glob('*.txt')},
            set(machines.MACHINES))
