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

"""How many guest cells a host cell takes."""

import random
import unittest

from hpcvirt.fit import allocation
from hpcvirt.fit import cell as cells
from hpcvirt.fit import cell_room
from hpcvirt.model import shape
from tests.unit.fit import builders

PAGES = (None, 4, builders.HUGE_KIB, builders.GIANT_KIB,
         *shape.PageClass)


def filled(demand, cell, cpu_ratio, ram_ratio):
    """Count guest cells by placing one after the other."""
    count = 0
    while cells.obstacle(demand, cell, cpu_ratio, ram_ratio) is None:
        if count == 200:
            return cell_room.AMPLE
        cell = allocation.take(demand, cell,
                               cells.page_size(demand, cell))
        count += 1
    return count


class CountTest(unittest.TestCase):

    def test_as_many_fit_as_can_be_placed_one_after_the_other(self):
        dice = random.Random(5)
        found = set()
        for _ in range(1500):
            cell, demand = some_cell(dice), some_demand(dice)
            ratios = dice.choice((1.0, 2.0)), dice.choice((1.0, 1.5))
            truth = filled(demand, cell, *ratios)
            found.add(truth)
            with self.subTest(cell=cell, demand=demand):
                self.assertEqual(
                    truth, cell_room.count(demand, cell, *ratios))
        self.assertLess({0, 1, 2, 3, 4}, found)

    def test_a_core_with_one_free_thread_is_no_room_for_siblings(self):
        cell = builders.host_cell(threads=2)._replace(
            free=frozenset((0, 2, 4, 5, 6, 7)))
        for pcpus, count in ((2, 2), (3, 1), (4, 1), (5, 0)):
            demand = builders.guest_cell(
                pcpus, threads=shape.ThreadPolicy.REQUIRE)
            self.assertEqual(count, cell_room.count(demand, cell))

    def test_threads_of_shared_cpus_are_no_room_for_siblings(self):
        cell = builders.host_cell(threads=2)
        half = frozenset((0, 2, 4, 6))
        demand = builders.guest_cell(2, threads=shape.ThreadPolicy.REQUIRE)
        self.assertEqual(4, cell_room.count(demand, cell))
        self.assertEqual(0, cell_room.count(demand, cell._replace(
            dedicated=half, free=half, shared=cell.dedicated - half)))


def some_cell(dice):
    threads = dice.choice((1, 2))
    cell = builders.host_cell(
        0, 8, 0, threads, package=0,
        memory_used_mib=dice.choice((0, 4096)),
        cpu_usage=dice.choice((0, 3)),
        shared=frozenset(range(100, 100 + dice.choice((0, 4, 8)))),
        pages=dice.choice(((), (builders.pages(4, 1 << 20, 1000),
                                builders.pages(builders.HUGE_KIB, 4096,
                                               dice.randrange(4096)),
                                builders.pages(builders.GIANT_KIB, 3)))))
    busy = dice.sample(range(8), dice.choice((0, 0, 3, 6)))
    return cell._replace(free=cell.free - set(busy))


def some_demand(dice):
    policy = dice.choice(tuple(shape.CPUPolicy))
    pcpus = 0 if policy is shape.CPUPolicy.SHARED else dice.choice((1, 2, 4))
    vcpus = 0 if policy is shape.CPUPolicy.DEDICATED else dice.choice((1, 3))
    threads = None if policy is shape.CPUPolicy.SHARED else dice.choice(
        (None, shape.ThreadPolicy.PREFER, shape.ThreadPolicy.ISOLATE))
    return builders.guest_cell(
        pcpus, dice.choice((512, 1024, 3072, 3000)), dice.choice(PAGES),
        policy=policy, vcpus=vcpus, threads=threads)
