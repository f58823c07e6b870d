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
from tests.unit.topology import machines
from tests.unit.topology import sysfs_case
from tests.unit.topology import writers

NODE = sysfs_case.NODE


class PagesTest(sysfs_case.Case):
    def arm(self) -> None:
        self.files = writers.sysfs(machines.of_cells(machines.cell(
            0, (0,), small=10 ** 6, small_kib=64, huge=((524288, 2),))))
        self.files['sys/kernel/mm/hugepages/hugepages-524288kB/'
                   'nr_hugepages'] = '2'

    def test_free_memory_gives_the_size_of_a_small_page(self) -> None:
        self.arm()
        self.drop('sys/kernel')
        self.assertEqual(host_model.PagePool(64, 10 ** 6),
                         self.read().cells[0].pages[0])

    def test_huge_pages_of_512_mib_mean_small_pages_of_64_kib(self) -> None:
        self.arm()
        self.drop('vmstat')
        self.assertEqual(host_model.PagePool(64, 10 ** 6),
                         self.read().cells[0].pages[0])

    def test_without_either_a_small_page_has_4_kib(self) -> None:
        self.drop('vmstat')
        self.assertEqual(self.host, self.read())

    def test_huge_pages_larger_than_the_memory_are_refused(self) -> None:
        self.files[f'{NODE}/node1/hugepages/hugepages-2048kB/'
                   'nr_hugepages'] = '10000000'
        self.refused('cell 1: has pages of 20480000000 KiB in')

    def test_a_kernel_without_huge_pages_is_read(self) -> None:
        self.drop('hugepages')
        self.assertEqual([1, 1], [len(cell.pages)
                                  for cell in self.read().cells])

    def test_a_meminfo_without_total_is_refused(self) -> None:
        self.files[f'{NODE}/node1/meminfo'] = 'Node 1 MemTotal: many kB'
        self.refused('node1/meminfo: has no valid MemTotal')
