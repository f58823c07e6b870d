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

"""How near the devices of a guest are."""

import unittest

from hpcvirt.fit import placement as placements
from hpcvirt.fit import score
from tests.unit.fit import builders


def cell(number=0, pcpus=8, taken=0, **fields):
    """A host cell whose 2 MiB pages are taken in proportion to its CPUs."""
    pages = (builders.pages(4, 2 << 20),
             builders.pages(builders.HUGE_KIB, 512 * pcpus, 512 * taken))
    return builders.host_cell(number, pcpus, taken,
                              **{'pages': pages, **fields})


def host(*cells, pools=(), **fields):
    """A host of cells, each (PCPUs, taken); two cells make a package."""
    return type(builders.host())(
        tuple(cell(number, *counts) for number, counts in enumerate(cells)),
        pools, **fields)


def guest(*pcpus, requests=(), memory_mib=1024):
    """A guest with so many CPUs in each cell, and 1 GiB for each CPU."""
    return type(builders.guest())(
        tuple(builders.guest_cell(count, count * memory_mib)
              for count in pcpus), requests=requests)


class LocalityTest(unittest.TestCase):

    def locality(self, supply, *cells, count=1, affinity='preferred'):
        demand = guest(4, requests=(
            builders.request(count=count, affinity=affinity),))
        return score.locality(demand, supply, placements.Placement(cells))

    def test_devices_of_the_guests_own_cells_are_local(self):
        supply = host((8, 0), (8, 0), pools=builders.gpus(1, 4))
        self.assertEqual(1.0, self.locality(supply, 0))

    def test_devices_of_other_cells_are_not(self):
        supply = host((8, 0), (8, 0), pools=builders.gpus(0, 4))
        self.assertEqual(0.0, self.locality(supply, 0))

    def test_some_of_both_count_in_proportion(self):
        supply = host((8, 0), (8, 0), pools=builders.gpus(1, 4))
        self.assertEqual(0.5, self.locality(supply, 0, count=2))

    def test_a_device_that_tells_no_cell_is_not_local(self):
        supply = host((8, 0), pools=(builders.devices.pool(None, 2, 'gpu'),))
        self.assertEqual(0.0, self.locality(supply, 0, affinity='legacy'))

    def test_only_devices_that_may_be_distant_leave_a_choice(self):
        for affinity, choice in (('required', False), ('preferred', True),
                                 ('socket', True), ('legacy', True)):
            self.assertIs(choice, score.has_choice(
                guest(4, requests=(builders.request(affinity=affinity),))))
        self.assertIs(False, score.has_choice(guest(4)))

    def test_a_guest_without_devices_has_none(self):
        self.assertEqual(0.0, score.locality(
            guest(4), host((8, 0)), placements.Placement((0,))))

    def test_devices_that_cannot_be_had_are_not_local(self):
        supply = host((8, 0), pools=builders.gpus(1))
        self.assertEqual(0.0, self.locality(supply, 0, count=2))
