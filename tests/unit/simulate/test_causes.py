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

import collections
import dataclasses
import random
import unittest

from hpcvirt.fit import claim
from hpcvirt.fit import devices
from hpcvirt.fit import placement as placements
from hpcvirt.model import shape as shape_model
from hpcvirt.simulate import causes
from hpcvirt.simulate import host_table
from hpcvirt.simulate import outcome
from hpcvirt.simulate import scheduler
from hpcvirt.simulate import strategy
from tests.unit.simulate import small

Cause = outcome.Cause


def a_host(dice):
    return small.host(
        *(small.cell(number, dice.choice((4, 8)), 4096, 512, shared=2)
          for number in range(2)),
        vfs=[(number, 2) for number in range(2) if dice.random() < 0.5],
        cpu_ratio=2.0)


def a_flavor(dice):
    return small.flavor(
        *dice.choice(((1,), (3,), (4,), (6,), (8,), (4, 4), (9,))),
        memory_mib=dice.choice((256, 512, 1024, 2048)),
        page_kib=dice.choice((None, small.SMALL, small.HUGE)),
        vfs=dice.choice((0, 0, 1, 3)),
        affinity=dice.choice(tuple(shape_model.PCIAffinity)))


def cause(flavor, supplies):
    """Say why no host takes one guest, by what the words mean."""
    demand, sums = flavor.guest.demand, flavor.guest.sums
    cells = [cell for supply in supplies for cell in supply.cells]
    pools = [pool for supply in supplies for pool in supply.pools]
    if (sum(len(cell.free) for cell in cells) < sums.pcpus
            or sum(cell.memory_mib - cell.memory_used_mib
                   for cell in cells) < sums.memory_mib
            or sum(2 * len(cell.shared) - cell.cpu_usage
                   for cell in cells) < sums.vcpus):
        return Cause.CAPACITY
    for request in demand.requests:
        if sum(devices.free_devices(request, pools)) < request.count:
            return Cause.DEVICES
    for size in {cell.page_kib for cell in demand.cells} - {None}:
        if sum(pages.free * size for cell in cells for pages in cell.pages
               if pages.size_kib == size) < sums.memory_mib * 1024:
            return Cause.PAGES

    def fits(wanted):
        return any(isinstance(claim.predict(wanted, supply),
                              placements.Placement) for supply in supplies)

    if fits(dataclasses.replace(demand, requests=())):
        return Cause.DEVICES
    if fits(dataclasses.replace(demand, cells=tuple(
            dataclasses.replace(cell, memory_mib=0)
            for cell in demand.cells))):
        return Cause.PAGES
    return Cause.FRAGMENTATION


class CausesTest(unittest.TestCase):

    def test_each_cause_is_what_its_name_says(self):
        dice = random.Random(8)
        found = collections.Counter()
        for _ in range(20):
            fleet = [a_host(dice) for _ in range(3)]
            flavors = tuple(a_flavor(dice) for _ in range(5))
            flavors = (*flavors, small.flavor(3, shared=True))
            table = host_table.HostTable(fleet, causes.flavors(flavors))
            chooser = scheduler.Scheduler(
                table, flavors, strategy.parse('nova', 0)[0])
            why = causes.Causes(chooser, flavors)
            running = []
            for _ in range(40):
                if running and dice.random() < 0.3:
                    chooser.remove(running.pop(
                        dice.randrange(len(running))))
                number = dice.randrange(len(flavors))
                guests = chooser.place(number, 1)
                if guests:
                    running.append(guests)
                    continue
                before = list(table.supplies)
                its = why.of(number, 1)
                self.assertEqual(cause(flavors[number], table.supplies), its)
                for old, new in zip(before, table.supplies, strict=True):
                    self.assertEqual(old.cells, new.cells)
                    self.assertEqual([*old.pools], [*new.pools])
                found[its] += 1
        self.assertEqual(set(Cause), set(found))
        self.assertGreater(min(found.values()), 5, found)
