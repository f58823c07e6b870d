# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import profile
from tests.builders import hosts


def sizes_of(steps=4, smallest=None, **host):
    partition = cpu_partition.divide(hosts.build(**host), profile.Profile())
    return cpu_partition.sizes(partition, steps, smallest)


def vcpus_of(**host):
    return [size.vcpus for size in sizes_of(**host)]


class SizesTest(unittest.TestCase):
    def test_the_classes_of_the_32_core_study_follow_from_any_such_host(self):
        for shape in ({'cells': 1, 'cores': 32}, {'cells': 2, 'cores': 16},
                      {'cells': 2, 'cores': 8, 'threads': 2},
                      {'cells': 4, 'cores': 8},
                      {'cells': 8, 'cores': 4, 'sockets': 2},
                      {'cells': 1, 'cores': 32, 'llc_cores': 4}):
            with self.subTest(shape):
                found = vcpus_of(**shape)
                self.assertLessEqual({8, 16, 24, 32}, set(found))

    def test_a_host_of_two_sockets_has_no_other_classes_than_the_study(self):
        self.assertEqual([8, 16, 24, 32], vcpus_of(cells=2, cores=16))

    def test_one_guest_per_socket_is_a_size_of_every_host(self):
        for cells, sockets in ((2, 2), (4, 2), (4, 4), (8, 2)):
            found = sizes_of(cells=cells, cores=6, sockets=sockets)
            socket = [size for size in found
                      if size.cores == (6,) * (cells // sockets)]
            self.assertEqual(1, len(socket), (cells, sockets))
            self.assertEqual(1, socket[0].sockets)
            self.assertTrue(socket[0].share.is_socket)

    def test_the_smallest_part_of_a_cell_is_a_cache(self):
        found = sizes_of(steps=1, cells=2, cores=24, llc_cores=8)
        self.assertEqual([(8,), (24,), (24, 24)],
                         [size.cores for size in found])

    def test_no_part_of_a_cell_cuts_a_cache_that_another_part_keeps(self):
        found = sizes_of(steps=1, cells=1, cores=96, llc_cores=8)
        self.assertEqual([8, 16, 24, 32, 48, 96],
                         [size.vcpus for size in found])

    def test_an_operator_may_cut_caches(self):
        found = sizes_of(steps=1, smallest=3, cells=1, cores=12)
        self.assertEqual([3, 4, 6, 12], [size.vcpus for size in found])

    def test_unequal_caches_do_not_keep_a_cell_whole(self):
        # One of 16 cores is kept: 7 and 8 are left under the caches.
        partition = cpu_partition.divide(
            hosts.build(cells=1, cores=16, llc_cores=8),
            profile.Profile(housekeeping_cores_per_cell=1))
        self.assertEqual([(7, 8)], [cell.llc for cell in partition.cells])
        self.assertEqual([5], cpu_partition.parts_of_cell(partition))

    def test_cells_of_a_socket_are_offered_where_they_divide_it(self):
        found = sizes_of(steps=1, cells=12, cores=4, sockets=2)
        self.assertEqual([1, 2, 3, 6, 12], [len(size.cores) for size in found])
        self.assertEqual([False, True, True, True, False],
                         [size.one_socket for size in found])

    def test_no_size_is_smaller_than_what_tiles_every_cell(self):
        found = sizes_of(cells=2, cores=(8, 6), smallest=1)
        self.assertEqual([(1,), (2,), (6,), (8,), (8, 6)],
                         [size.cores for size in found])

    def test_unequal_cells_stand_largest_first_and_share_a_socket(self):
        host = sizes_of(cells=3, cores=(2, 6, 4))[-1]
        self.assertEqual((6, 4, 2), host.cores)
        self.assertEqual(1, host.sockets)

    def test_three_quarters_have_equal_guest_cells(self):
        by_share = {size.share.words: size.cores
                    for size in sizes_of(cells=2, cores=16)}
        self.assertEqual((12, 12), by_share['3/4 host'])

    def test_no_step_is_offered_that_is_not_whole_parts_or_cells(self):
        self.assertEqual([4, 12], vcpus_of(cells=3, cores=4))
        # Three quarters would be 7.5 cores of each cell.
        self.assertEqual([5, 10, 20], vcpus_of(cells=2, cores=10))

    def test_steps_that_are_more_than_the_cores_are_left_out(self):
        self.assertEqual([1, 2], vcpus_of(cells=2, cores=1, steps=64))

    def test_sockets_divide_the_guest_cells(self):
        for cells in (1, 2, 4, 8):
            for sockets in (1, 2, 4):
                if cells % sockets:
                    continue
                for size in sizes_of(cells=cells, cores=12, sockets=sockets):
                    self.assertEqual(0, len(size.cores) % size.sockets)

    def test_sizes_are_sorted_and_unique(self):
        for host in hosts.shipped():
            partition = cpu_partition.divide(host, profile.Profile())
            found = cpu_partition.sizes(partition)
            self.assertEqual(len({size.cores for size in found}), len(found))
            self.assertEqual(sorted(size.vcpus for size in found),
                             [size.vcpus for size in found])

    def test_threads_multiply_cores(self):
        self.assertEqual([32, 64, 96, 128],
                         vcpus_of(cells=2, cores=16, threads=4))

    def test_a_host_without_cells_has_no_sizes(self):
        partition = cpu_partition.divide(hosts.build(mib=0), profile.Profile())
        self.assertEqual((), cpu_partition.sizes(partition))
