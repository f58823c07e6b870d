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

"""A test case with a small machine in a copy of a sysfs."""

import pathlib
import unittest

from hpcvirt import exception
from hpcvirt import topology
from hpcvirt.model import host as host_model
from tests.unit.topology import machines
from tests.unit.topology import sysfs_files
from tests.unit.topology import writers

CPU = 'sys/devices/system/cpu'
NODE = 'sys/devices/system/node'
HUGE = f'{NODE}/node1/hugepages/hugepages-2048kB'
PCI = 'sys/devices/pci0000:00/0000:41:00.0'


class Case(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.root = pathlib.Path(sysfs_files.scratch(self)) / 'box'
        self.host = machines.of_cells(
            machines.cell(0, (0, 4), (1, 5), package=0, huge=((2048, 8),)),
            machines.cell(1, (2, 6), (3, 7), package=1, huge=((2048, 4),)),
            devices=(host_model.Device('0000:41:00.0', '8086', '1572', 1, 64,
                                       'i40e'),))
        self.files = writers.sysfs(self.host)

    def read(self) -> host_model.Host:
        sysfs_files.lay_out(self.files, self.root)
        return topology.read(str(self.root), 'sysfs')

    def refused(self, pattern: str) -> str:
        with self.assertRaisesRegex(exception.InvalidInput, pattern) as got:
            self.read()
        return str(got.exception)

    def drop(self, *parts: str) -> None:
        for name in list(self.files):
            if any(part in name for part in parts):
                del self.files[name]
