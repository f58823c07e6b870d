# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from hpcvirt.fit import admission
from hpcvirt.flavors import compiled_flavor
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import shape
from tests.builders import hosts

SNC3 = (22, 20, 22, 22, 20, 22)


class EqualCellsTest(unittest.TestCase):
    def plan(self, cores, **choices):
        machine = hosts.build(
            cells=len(cores), cores=cores, sockets=2, threads=2, mib=131072,
            gpus={0: 1, 2: 1, 3: 1, 5: 1}, name='n')
        gpu = dataclasses.replace(
            hosts.GPU, per_instance=None,
            affinity=shape.PCIAffinity.PREFERRED)
        return planner.plan([machine], dataclasses.replace(
            profiles.DENSE, devices=(gpu,), **choices))

    def list_sizes(self, plan):
        return {tuple(cell.cpus for cell in row.guest.cells):
                row.per_host['n'] for row in plan.flavors
                if len(row.guest.cells) > 1}

    def test_equal_cells_are_kept_where_more_of_them_fit(self):
        plan = self.plan(SNC3)
        found = self.list_sizes(plan)
        self.assertEqual(2, found[40, 40, 40])
        self.assertLess(found.get((44, 44, 40), 0), 2)
        (row,) = [row for row in plan.flavors
                  if [cell.cpus for cell in row.guest.cells] == [40] * 3]
        self.assertEqual('socket, equal cells', row.shares['n'].words)
        self.assertEqual(2, row.guest.devices[0].count)
        # The claims of Nova take as many.
        placed = admission.place_guests(
            compiled_flavor.make(row.flavor), plan.hosts[0].state, 9)
        self.assertEqual(2, len(placed))

    def test_they_are_not_where_the_unequal_ones_fit_as_often(self):
        # The whole host takes one guest of either kind.
        self.assertNotIn((40,) * 6, self.list_sizes(self.plan(SNC3)))

    def test_cells_that_differ_much_are_not_trimmed(self):
        found = self.list_sizes(self.plan((22, 8, 22, 22, 8, 22)))
        self.assertFalse([cells for cells in found if set(cells) == {16}])

    def test_a_trimmed_cell_has_the_memory_of_a_whole_one(self):
        plan = self.plan(SNC3)
        (row,) = [row for row in plan.flavors
                  if [cell.cpus for cell in row.guest.cells] == [40] * 3]
        whole = next(other for other in plan.flavors
                     if len(other.guest.cells) == 6)
        self.assertEqual(whole.guest.memory_mib // 2, row.guest.memory_mib)

    def test_sizes_name_what_they_are_trimmed_from(self):
        (partition,) = [self.plan(SNC3).hosts[0].partition]
        found = {size.cores: size.trimmed_from
                 for size in cpu_partition.sizes(partition)
                 if size.trimmed_from}
        self.assertEqual({(20, 20, 20): (22, 22, 20),
                          (20,) * 6: (22, 22, 22, 22, 20, 20)}, found)
