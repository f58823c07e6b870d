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

"""How much room a placement destroys."""

import unittest

from hpcvirt.fit import claim
from hpcvirt.fit import placement as placements
from hpcvirt.fit import score
from hpcvirt.model import shape
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


def loss(demand, supply, *cells):
    """The loss on given host cells, or where the claim puts the guest."""
    placed = (placements.Placement(cells, (builders.HUGE_KIB,) * len(cells))
              if cells else claim.predict(demand, supply))
    return score.loss(demand, supply, placed)


class RoomTest(unittest.TestCase):

    def assert_prefers(self, demand, good, bad):
        """One of two (host, cells...) loses less than the other."""
        self.assertLess(loss(demand, *good), loss(demand, *bad))

    def test_a_cell_that_is_filled_comes_before_one_that_is_broken(self):
        self.assert_prefers(guest(4), (host((8, 4), (8, 0)), 0),
                            (host((8, 4), (8, 0)), 1))

    def test_a_small_cell_comes_before_a_large_one(self):
        self.assert_prefers(guest(8), (host((8, 0), (8, 0)), 0),
                            (host((16, 0), (16, 0)), 0))

    def test_a_broken_host_comes_before_a_whole_one(self):
        self.assert_prefers(guest(8), (host((8, 0), (8, 2)), 0),
                            (host((8, 0), (8, 0)), 0))

    def test_the_fuller_of_two_broken_hosts_comes_first(self):
        self.assert_prefers(
            guest(4), (host((8, 4), (8, 8), (8, 8), (8, 8)), 0),
            (host((8, 4), (8, 0), (8, 0), (8, 8)), 0))

    def test_a_broken_package_comes_before_a_whole_one(self):
        half = host((8, 0), (8, 0), (8, 0), (8, 8))
        self.assert_prefers(guest(8), (half, 2), (half, 0))

    def test_two_cells_of_a_package_come_before_two_of_different_ones(self):
        empty = host((8, 0), (8, 0), (8, 0), (8, 0))
        self.assert_prefers(guest(8, 8), (empty, 0, 1), (empty, 1, 2))

    def lone(self, *counts):
        """A host of which no packages are known."""
        return type(builders.host())(tuple(
            cell(number, *count, package=None)
            for number, count in enumerate(counts)))

    def test_a_host_with_a_whole_cell_is_left_alone(self):
        self.assert_prefers(guest(4),
                            (self.lone((8, 4), (8, 4), (8, 4)), 0),
                            (self.lone((8, 4), (8, 0), (8, 8)), 0))

    def test_a_host_with_more_free_room_is_left_alone(self):
        self.assert_prefers(guest(4),
                            (self.lone((8, 4), (8, 8), (8, 8)), 0),
                            (self.lone((8, 4), (8, 6), (8, 6)), 0))

    def test_a_cell_without_devices_comes_first_for_a_guest_without(self):
        near = host((8, 0), (8, 0), pools=builders.gpus(0, 4))
        self.assert_prefers(guest(8), (near, 0), (near, 1))

    def test_devices_that_are_gone_do_not_matter(self):
        gone = host((8, 0), (8, 0),
                    pools=(builders.devices.pool(1, 0, 'gpu'),))
        self.assertEqual(loss(guest(8), gone, 0), loss(guest(8), gone, 1))

    def test_a_guest_with_devices_is_not_kept_off_them(self):
        near = host((8, 0), (8, 0), pools=builders.gpus(4, 4))
        plain = host((8, 0), (8, 0))
        wants = guest(8, requests=(builders.request(),))
        self.assertEqual(loss(wants, near, 0), loss(wants, plain, 0))

    def test_a_memory_rich_host_is_left_alone(self):
        rich = type(builders.host())(tuple(
            cell(number, pages=(builders.pages(builders.HUGE_KIB, 8192),))
            for number in range(2)))
        self.assert_prefers(guest(4), (host((8, 0), (8, 0)), 0), (rich, 0))

    def test_cpus_that_have_no_memory_left_are_no_loss(self):
        starved = type(builders.host())((
            cell(0, pages=(builders.pages(builders.HUGE_KIB, 4096, 3584),)),
            cell(1)))
        self.assert_prefers(guest(1), (starved, 0), (starved, 1))

    def test_a_guest_that_takes_all_memory_takes_the_cpus_with_it(self):
        supply = host((8, 0), (8, 0))
        hungry = guest(2, memory_mib=4096)
        self.assertGreater(loss(hungry, supply, 0), loss(guest(2), supply, 0))


class ScaleTest(unittest.TestCase):

    def test_the_loss_of_a_lone_cell_is_known(self):
        # 8 * 3 doublings less 4 * 2, once for CPUs and once for memory.
        self.assertAlmostEqual(
            16.0 * (1 + score.MEMORY), loss(guest(4), host((8, 0)), 0))

    def test_the_order_of_cells_does_not_matter(self):
        one = host((8, 4), (8, 0), (8, 8), (8, 2))
        other = host((8, 8), (8, 2), (8, 4), (8, 0))
        self.assertAlmostEqual(loss(guest(2), one, 0),
                               loss(guest(2), other, 2))

    def test_a_loss_is_never_negative(self):
        for taken in range(8):
            with self.subTest(taken=taken):
                supply = host((8, taken), (8, 3), (8, 0), (8, 8))
                self.assertGreaterEqual(loss(guest(1), supply, 0), 0)

    def test_cells_without_cpus_do_not_matter(self):
        plain = host((8, 4), (8, 0))
        memory_only = type(plain)((
            *plain.cells, cell(2, 0, package=None, siblings=())))
        self.assertAlmostEqual(loss(guest(4), plain, 0),
                               loss(guest(4), memory_only, 0))

    def test_hosts_of_unknown_packages_are_weighed(self):
        supply = type(builders.host())(tuple(
            cell(number, package=None) for number in range(4)))
        self.assertGreater(loss(guest(8), supply), 0)

    def test_a_page_size_that_other_cells_lack_makes_no_room_there(self):
        supply = type(builders.host())((
            cell(0), cell(1, pages=(builders.pages(4, 1 << 20),))))
        self.assertAlmostEqual(loss(guest(4), host((8, 0)), 0),
                               loss(guest(4), supply, 0))


class OtherPoliciesTest(unittest.TestCase):

    def shared(self, vcpus):
        return type(builders.guest())((builders.guest_cell(
            0, 1024, None, policy=shape.CPUPolicy.SHARED, vcpus=vcpus),))

    def shared_host(self, usage, ratio):
        return type(builders.host())((cell(
            0, 0, shared=frozenset(range(8)), cpu_usage=usage,
            siblings=tuple(frozenset({cpu}) for cpu in range(8))),),
            cpu_ratio=ratio)

    def test_shared_vcpus_use_up_what_the_ratio_gives(self):
        placed = placements.Placement((0,), (None,))
        roomy, tight = (
            score.loss(self.shared(4), self.shared_host(0, ratio), placed)
            for ratio in (4.0, 1.0))
        self.assertGreater(roomy, tight)

    def test_a_guest_without_page_size_takes_the_smallest_pages(self):
        demand = type(builders.guest())((
            builders.guest_cell(4, 1024, None),))
        small = type(builders.host())((cell(0, pages=(
            builders.pages(4, 1 << 20, 3 << 18),)),))
        placed = placements.Placement((0,), (None,))
        self.assertGreater(
            score.loss(demand, host((8, 0)), placed),
            score.loss(demand, small, placed))


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

    def test_a_guest_without_devices_has_none(self):
        self.assertEqual(0.0, score.locality(
            guest(4), host((8, 0)), placements.Placement((0,))))

    def test_devices_that_cannot_be_had_are_not_local(self):
        supply = host((8, 0), pools=builders.gpus(1))
        self.assertEqual(0.0, self.locality(supply, 0, count=2))
