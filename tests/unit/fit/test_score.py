# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.fit import cell_assignment as cell_assignments
from hpcvirt.fit import score
from tests.builders import tiny


def cell(number=0, pcpus=8, taken=0, **fields):
    """A host cell whose 2 MiB pages are taken in proportion to its CPUs."""
    pages = (tiny.pages(4, 2 << 20),
             tiny.pages(tiny.HUGE_KIB, 512 * pcpus, 512 * taken))
    return tiny.host_cell(number, pcpus, taken, **{'pages': pages, **fields})


def host(*cells, pools=(), **fields):
    """A host of cells, each (PCPUs, taken); two cells make a socket."""
    return type(tiny.host())(
        tuple(cell(number, *counts) for number, counts in enumerate(cells)),
        pools, **fields)


def score_guest(*pcpus, requests=(), memory_mib=1024):
    """A guest with so many CPUs in each cell, and 1 GiB for each CPU."""
    return type(tiny.guest())(
        tuple(tiny.guest_cell(count, count * memory_mib)
              for count in pcpus), requests=requests)


class LocalityTest(unittest.TestCase):
    """How near the devices of a guest are."""

    def locality(self, supply, *cells, count=1, affinity='preferred'):
        demand = score_guest(4, requests=(
            tiny.request(count=count, affinity=affinity),))
        return score.locality(demand, supply,
                              cell_assignments.CellAssignment(cells))

    def test_devices_of_the_guests_own_cells_are_local(self):
        supply = host((8, 0), (8, 0), pools=tiny.gpus(1, 4))
        self.assertEqual(1.0, self.locality(supply, 0))

    def test_devices_of_other_cells_are_not(self):
        supply = host((8, 0), (8, 0), pools=tiny.gpus(0, 4))
        self.assertEqual(0.0, self.locality(supply, 0))

    def test_some_of_both_count_in_proportion(self):
        supply = host((8, 0), (8, 0), pools=tiny.gpus(1, 4))
        self.assertEqual(0.5, self.locality(supply, 0, count=2))

    def test_a_device_that_tells_no_cell_is_not_local(self):
        supply = host((8, 0), pools=(tiny.devices.pool(None, 2, 'gpu'),))
        self.assertEqual(0.0, self.locality(supply, 0, affinity='legacy'))

    def test_only_devices_that_may_be_distant_leave_a_choice(self):
        for affinity, choice in (('required', False), ('preferred', True),
                                 ('socket', True), ('legacy', True)):
            self.assertIs(choice, score.has_choice(
                score_guest(4, requests=(tiny.request(affinity=affinity),))))
        self.assertIs(False, score.has_choice(score_guest(4)))

    def test_a_guest_without_devices_has_none(self):
        self.assertEqual(0.0, score.locality(
            score_guest(4), host((8, 0)),
            cell_assignments.CellAssignment((0,))))

    def test_devices_that_cannot_be_had_are_not_local(self):
        supply = host((8, 0), pools=tiny.gpus(1))
        self.assertEqual(0.0, self.locality(supply, 0, count=2))
