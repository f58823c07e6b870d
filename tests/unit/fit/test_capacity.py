# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.fit import capacity
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.model import host as host_model
from hpcvirt.model import shape
from hpcvirt.model import usage


def supply(*cells):
    """A host whose cells have (CPUs, pages of 2 MiB)."""
    first = 0
    found, used = [], []
    for number, (count, pages) in enumerate(cells):
        cpus = frozenset(range(first, first + count))
        first += count
        found.append(host_model.Cell(
            number, number, cpus, tuple(frozenset({cpu}) for cpu in cpus),
            (cpus,), 65536, (host_model.PagePool(4, 1000),
                             host_model.PagePool(2048, pages))))
        used.append(usage.CellUsage(number, cpus))
    return supplies.make_supply(host_model.Host('host', tuple(found)),
                                usage.Usage(tuple(used)))


def guest(cells, cpus, mib):
    return shape.Shape((shape.GuestCell(cpus, 0, mib, 2048),) * cells,
                       cpu_policy=shape.CPUPolicy.DEDICATED)


class FillTest(unittest.TestCase):
    def test_cpus_run_out(self):
        found = capacity.fill(guest(1, 3, 2), supply((8, 99), (8, 99)))
        self.assertEqual((4, 4), (found.count, found.free_pcpus))
        self.assertIs(reasons.Code.FREE_PCPUS, found.misfit.root)

    def test_pages_run_out(self):
        found = capacity.fill(guest(1, 1, 20), supply((8, 25), (8, 9)))
        self.assertEqual((2, 14), (found.count, found.free_pcpus))

    def test_every_guest_cell_needs_a_host_cell_of_its_own(self):
        found = capacity.fill(guest(2, 4, 2), supply((8, 99), (4, 99)))
        self.assertEqual((1, 4), (found.count, found.free_pcpus))

    def test_guests_spread_so_that_the_most_fit(self):
        found = capacity.fill(guest(2, 4, 2),
                              supply((8, 99), (8, 99), (8, 99)))
        self.assertEqual(3, found.count)

    def test_filling_stops_at_the_limit(self):
        found = capacity.fill(guest(1, 1, 2), supply((8, 99)), limit=3)
        self.assertEqual((3, 5, None), (found.count, found.free_pcpus,
                                        found.misfit))

    def test_filling_can_continue_from_what_is_left(self):
        first = capacity.fill(guest(1, 6, 2), supply((8, 99)))
        second = capacity.fill(guest(1, 1, 2), first.supply)
        self.assertEqual((1, 2), (first.count, second.count))

    def test_a_guest_without_cells_needs_a_limit(self):
        with self.assertRaises(ValueError):
            capacity.fill(shape.Shape(()), supply((8, 99)))
        found = capacity.fill(shape.Shape(()), supply((8, 99)), limit=2)
        self.assertEqual(2, found.count)

    def test_a_host_without_room_takes_none(self):
        found = capacity.fill(guest(1, 9, 2), supply((8, 99)))
        self.assertEqual(0, found.count)
        self.assertIn('of the 9 PCPUs needed', found.misfit.message)
