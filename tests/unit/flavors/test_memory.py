# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from hpcvirt import exception
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import memory
from hpcvirt.flavors import profile
from tests.builders import hosts


def pools(host, pieces, page_kib=2048, **choices):
    choices = profile.Profile(**choices)
    return memory.pools(cpu_partition.divide(host, choices), choices, pieces,
                        page_kib)


def choose(host, **choices):
    choices = profile.Profile(**choices)
    return memory.choose_page(cpu_partition.divide(host, choices), choices)


class PoolsTest(unittest.TestCase):
    def test_reserve_and_emulators_come_off_before_pages(self):
        host = hosts.build(cells=1, cores=16, mib=32768)
        found = pools(host, [memory.MemoryPart(8, 1)],
                      host_reserve_mib_per_cell=1000,
                      guest_overhead_mib=100, guest_overhead_mib_per_vcpu=10,
                      guest_overhead_permille=0)
        # Two guests: 2 x (100 + 8 x 10) MiB.
        self.assertEqual((32768 - 1000 - 360) // 2, found[0].pages)

    def test_the_neediest_pieces_count(self):
        host = hosts.build(cells=1, cores=16, mib=32768)
        both = pools(host, [memory.MemoryPart(16, 1), memory.MemoryPart(1, 1)])
        self.assertEqual(pools(host, [memory.MemoryPart(1, 1)]), both)
        self.assertLess(both[0].pages,
                        pools(host, [memory.MemoryPart(16, 1)])[0].pages)

    def test_a_guest_on_several_cells_shares_its_fixed_overhead(self):
        choices = profile.Profile(guest_overhead_mib=100,
                                  guest_overhead_mib_per_vcpu=0,
                                  guest_overhead_permille=0)
        self.assertEqual(25.0, memory.overhead_mib(
            choices, memory.MemoryPart(8, 4, 1000)))

    def test_pages_never_outgrow_the_cell_with_what_comes_off(self):
        for mib in range(3000, 70000, 997):
            for permille in (0, 2, 100):
                choices = profile.Profile(guest_overhead_permille=permille)
                host = hosts.build(cells=1, cores=4, mib=mib)
                piece = memory.MemoryPart(2, 1)
                found = memory.pools(
                    cpu_partition.divide(host, choices), choices,
                    [piece], 2048)[0]
                guests = found.pages * 2
                needed = guests + 2 * memory.overhead_mib(
                    choices, dataclasses.replace(
                        piece, memory_mib=guests // 2))
                reserve = memory.reserve_mib(choices, host.cells[0])
                self.assertLessEqual(needed + reserve, mib)
                self.assertGreater(needed + reserve, mib - 3)

    def test_pages_of_the_hosts_programs_come_off_too(self):
        host = hosts.build(cells=1, cores=4, mib=8192)
        without = pools(host, [])[0].pages
        found = pools(host, [], host_pages_per_cell=((2048, 512),))[0].pages
        self.assertAlmostEqual(512, without - found, delta=2)

    def test_memory_goes_with_cores(self):
        pool = memory.CellPool(0, 16, 1000, 2048)
        self.assertEqual([2000, 1000, 250, 374],
                         [pool.share_mib(16), pool.share_mib(8),
                          pool.share_mib(2), pool.share_mib(3)])

    def test_shares_in_gigabyte_pages_are_whole_pages(self):
        pool = memory.CellPool(0, 16, 61, 1048576)
        self.assertEqual(30 * 1024, pool.share_mib(8))

    def test_a_small_cell_keeps_an_eighth_and_no_more_is_reserved(self):
        choices = profile.Profile()
        small, large = hosts.build(mib=(8192, 65536)).cells
        self.assertEqual(1024, memory.reserve_mib(choices, small))
        self.assertEqual(2048, memory.reserve_mib(choices, large))

    def test_a_cell_with_too_little_memory_is_poor(self):
        choices = profile.Profile()
        partition = cpu_partition.divide(
            hosts.build(cells=2, cores=16, mib=(65536, 2048)), choices)
        self.assertEqual([1], list(memory.poor_cells(partition, choices)))


class RoundingTest(unittest.TestCase):
    def test_memory_is_whole_steps(self):
        self.assertEqual(14 * 1024, memory.round_down(14710, 1024, 2048))

    def test_the_step_shrinks_before_much_is_lost(self):
        self.assertEqual(1920, memory.round_down(1950, 1024, 2048))
        for mib in range(2, 5000, 2):
            rounded = memory.round_down(mib, 1024, 2048)
            self.assertLessEqual((mib - rounded) * 16, mib)

    def test_what_is_left_is_whole_pages(self):
        for page_kib in (4, 64, 2048, 524288, 1048576):
            for mib in range(0, 9000, 1013):
                rounded = memory.round_down(mib, 1000, page_kib)
                self.assertEqual(0, rounded * 1024 % page_kib)
                self.assertLessEqual(rounded, mib)


class PageSizeTest(unittest.TestCase):
    def test_two_mib_is_the_default(self):
        for small in (4, 64):
            size, said = choose(hosts.build(small_kib=small))
            self.assertEqual((2048, ()), (size, said))

    def test_without_2_mib_pages_the_smallest_huge_page_is_taken(self):
        size, _ = choose(hosts.build(small_kib=64,
                                     huge_kib=(524288, 16777216)))
        self.assertEqual(524288, size)

    def test_sizes_that_only_some_cells_have_do_not_count(self):
        host = hosts.build()
        first, second = host.cells
        second = dataclasses.replace(second, pages=tuple(
            pool for pool in second.pages if pool.size_kib != 2048))
        host = dataclasses.replace(host, cells=(first, second))
        self.assertEqual(1048576, choose(host)[0])
        with self.assertRaisesRegex(exception.InvalidInput,
                                    'cell 1 has no pages of 2m'):
            choose(host, page_size=2048)

    def test_a_source_without_page_sizes_is_taken_at_the_usual(self):
        size, said = choose(hosts.build(huge_kib=()))
        self.assertEqual(2048, size)
        self.assertEqual(['huge-pages-unknown'], [item.code for item in said])

    def test_small_pages_remain_where_no_huge_ones_are_known(self):
        self.assertEqual((64, ()), choose(hosts.build(small_kib=64,
                                                      huge_kib=())))

    def test_small_pages_may_be_asked_for(self):
        self.assertEqual((4, ()), choose(hosts.build(), page_size=4))

    def test_uneven_gigabyte_pages_name_their_cells(self):
        found = [memory.CellPool(0, 8, 61, 1048576),
                 memory.CellPool(1, 8, 62, 1048576),
                 memory.CellPool(2, 8, 62, 1048576)]
        said = list(memory.warn_uneven(hosts.build(), found))
        self.assertEqual(1, len(said))
        self.assertIn('guests get 61 pages of 1g of each cell, although '
                      'cells 1-2 have room for 62',
                      said[0].message)

    def test_two_mib_pages_are_never_called_uneven(self):
        found = [memory.CellPool(0, 8, 61, 2048),
                 memory.CellPool(1, 8, 62, 2048)]
        self.assertEqual([], list(memory.warn_uneven(hosts.build(), found)))

    def test_names_of_page_sizes(self):
        self.assertEqual(['4k', '64k', '2m', '512m', '1g', '16g'],
                         [memory.page_name(size) for size in (
                             4, 64, 2048, 524288, 1048576, 16777216)])
