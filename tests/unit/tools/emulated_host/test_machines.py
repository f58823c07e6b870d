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

import unittest

from hpcvirt.model import cpuset
from tests.unit.topology import sysfs_files
from tools.emulated_host import machines

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
