# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from hpcvirt.fit import capacity
from hpcvirt.fit import guest as guests
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.model import host as host_model
from hpcvirt.model import shape
from tests.builders import used_hosts
from tests.builders.used_hosts import equal_cells as equal


def host(*cells):
    """A host whose cells have (CPUs, pages of 2 MiB)."""
    first = 0
    found = []
    for number, (count, pages) in enumerate(cells):
        cpus = frozenset(range(first, first + count))
        first += count
        machine = host_model.Cell(
            number, number, cpus, tuple(frozenset({cpu}) for cpu in cpus),
            (cpus,), 65536, (host_model.PagePool(4, 1000),
                             host_model.PagePool(2048, pages)))
        found.append(used_hosts.cell(machine, cpus))
    return used_hosts.state(supplies.Supply(tuple(found)))


class FillTest(unittest.TestCase):
    def test_cpus_run_out(self):
        found = capacity.fill(equal(1, 3, 2), host((8, 99), (8, 99)))
        self.assertEqual((4, 4), (found.count, found.free_pcpus))
        self.assertIs(reasons.Code.FREE_PCPUS, found.misfit.root)

    def test_pages_run_out(self):
        found = capacity.fill(equal(1, 1, 20), host((8, 25), (8, 9)))
        self.assertEqual((2, 14), (found.count, found.free_pcpus))

    def test_every_guest_cell_needs_a_host_cell_of_its_own(self):
        found = capacity.fill(equal(2, 4, 2), host((8, 99), (4, 99)))
        self.assertEqual((1, 4), (found.count, found.free_pcpus))

    def test_guests_spread_so_that_the_most_fit(self):
        found = capacity.fill(equal(2, 4, 2),
                              host((8, 99), (8, 99), (8, 99)))
        self.assertEqual(3, found.count)

    def test_filling_stops_at_the_limit(self):
        found = capacity.fill(equal(1, 1, 2), host((8, 99)), limit=3)
        self.assertEqual((3, 5, None), (found.count, found.free_pcpus,
                                        found.misfit))

    def test_filling_can_continue_from_what_is_left(self):
        first = capacity.fill(equal(1, 6, 2), host((8, 99)))
        second = capacity.fill(equal(1, 1, 2), first.host)
        self.assertEqual((1, 2), (first.count, second.count))

    def test_a_guest_that_needs_nothing_needs_a_limit(self):
        nothing = used_hosts.guest(shape.Shape(()))
        with self.assertRaises(ValueError):
            capacity.fill(nothing, host((8, 99)))
        found = capacity.fill(nothing, host((8, 99)), limit=2)
        self.assertEqual(2, found.count)

    def test_the_totals_of_placement_run_out_first(self):
        empty = host((8, 99))
        few = dataclasses.replace(empty, free=guests.Resources(5, 0, 9, 0))
        found = capacity.fill(equal(1, 1, 2), few)
        self.assertEqual(4, found.count)
        self.assertEqual('the host has 1 MEMORY_MB free, 2 needed',
                         found.misfit.message)

    def test_a_host_without_room_takes_none(self):
        found = capacity.fill(equal(1, 9, 2), host((8, 99)))
        self.assertEqual(0, found.count)
        self.assertEqual('the host has 8 PCPU in all, 9 needed',
                         found.misfit.message)

    def test_cores_in_use_are_dropped_once_they_outnumber_the_others(self):
        machine = host((40, 99))
        for limit, cores in ((10, 40), (36, 5)):
            found = capacity.fill(equal(1, 1, 2), machine, limit)
            cell, = found.supply.cells
            self.assertEqual(cores, len(cell.siblings))
            self.assertEqual(1, cell.threads_per_core)
            self.assertLessEqual(cell.free,
                                 frozenset().union(*cell.siblings))
            self.assertEqual(40 - limit, capacity.fill(
                equal(1, 1, 2), found.host).count)
