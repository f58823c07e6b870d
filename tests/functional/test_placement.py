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

"""Pins, pages and devices of guests, in the XML that libvirt receives."""

from testing import machines
from tests.functional import base


class PlacementTest(base.HPCNova):
    """Hosts of 2, 4 and 8 cells, with SMT and without."""

    def check(self, cells, packages, threads):
        """Boot on 2 MiB pages, on 1 GiB pages and next to a device.

        Every cell has 4 cores, and the virtual functions are on the last.
        """
        machine = machines.build(
            'host', cells, 4, threads, packages=packages,
            far_siblings=threads == 2, pages={2048: 1024, 1048576: 2},
            vfs={cells - 1: 2})
        self.add_machines(machine)
        pcpus = 2 * threads

        wide = self.boot(self.create_hpc_flavor(2, pcpus, 1024))
        guest = self.assert_sits(wide, (0, 1), pcpus, 1024)
        self.assert_whole_cores(guest, machine)

        huge = self.boot(self.create_hpc_flavor(1, pcpus, 2048, '1048576'))
        self.assert_sits(huge, set(range(cells)), pcpus, 2048, 1048576)

        near = self.boot(
            self.create_hpc_flavor(
                1, pcpus // 2, 512, hw__pci_numa_affinity_policy='required'),
            ports=[self.create_sriov_port(machines.PHYSNET)])
        guest = self.assert_sits(near, (cells - 1,), pcpus // 2, 512)
        self.assert_virtual_function_on(guest, cells - 1)

    def assert_whole_cores(self, guest, machine):
        cores = [core for cell in machine.host.cells
                 for core in cell.siblings if core & guest.pinned]
        self.assertEqual(guest.pinned, frozenset().union(*cores))

    def assert_virtual_function_on(self, guest, cell):
        self.assertEqual(1, len(guest.devices))
        machine = self.connections['host'].machine
        physical = next(machine.functions())
        self.assertIn(guest.devices[0], physical.virtual)
        self.assertEqual(
            cell, self.ledger('host').device_cell(guest.devices[0]))

    def test_periodic_two_cells_without_smt(self):
        self.check(cells=2, packages=2, threads=1)

    def test_two_cells_with_smt(self):
        self.check(cells=2, packages=1, threads=2)

    def test_periodic_four_cells_without_smt(self):
        self.check(cells=4, packages=4, threads=1)

    def test_periodic_four_cells_with_smt(self):
        self.check(cells=4, packages=2, threads=2)

    def test_periodic_eight_cells_without_smt(self):
        self.check(cells=8, packages=2, threads=1)

    def test_eight_cells_with_smt(self):
        self.check(cells=8, packages=2, threads=2)

    def test_uneven_guest_cells_land_with_the_largest_first(self):
        self.add_machines(machines.build('host', 2, [8, 4],
                                         pages={2048: 2048}))
        server = self.boot(self.create_flavor(10, 3072, {
            'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '2048',
            'hw:numa_nodes': '2',
            'hw:numa_cpus.0': '0-6', 'hw:numa_mem.0': '2048',
            'hw:numa_cpus.1': '7-9', 'hw:numa_mem.1': '1024'}))
        guest = self.guest(server)
        self.assertEqual((0, 1), guest.host_cells)
        self.assertEqual([7, 3], [len(guest.pinned_of(cell))
                                  for cell in guest.cells])
        self.assertEqual([], self.faults())

    def test_emulator_threads_get_a_cpu_of_their_own(self):
        self.add_machines(machines.build('host', pages={2048: 1024}))
        flavor = self.create_hpc_flavor(
            pcpus=3, hw__emulator_threads_policy='isolate')
        guest = self.assert_sits(self.boot(flavor), (0,), 3, 512)
        self.assertEqual({0, 1, 2, 3}, guest.emulator | guest.pinned)
        self.assertEqual(1, len(guest.emulator))

    def test_a_mixed_guest_floats_where_cpus_are_shared(self):
        machine = machines.build('host', 2, 4, pages={2048: 1024},
                                 housekeeping_cores=1)
        self.add_machines(machine)
        server = self.boot(self.create_flavor(4, 512, {
            'hw:cpu_policy': 'mixed', 'hw:cpu_dedicated_mask': '0-2',
            'hw:mem_page_size': '2048'}))
        guest = self.guest(server)
        self.assertEqual({1, 2, 3}, guest.pinned - {0})
        self.assertEqual({0}, guest.pins[3])

    def test_reserved_pages_stay_with_the_host(self):
        self.add_machines(machines.build(
            'host', 2, 4, pages={2048: 512},
            reserved=['node:0,size:2048,count:1']))
        flavor = self.create_hpc_flavor(pcpus=1, mib=1024)
        self.assert_sits(self.boot(flavor), (1,), 1, 1024)
        self.boot(flavor, status='ERROR')
        self.assertIn('cell 0 has 511 of the 512 free pages of 2048 KiB'
                      ' needed', self.log.output)
