# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import profile
from hpcvirt.flavors import warning
from tests.builders import hosts


def divide(host, **choices):
    return cpu_partition.divide(host, profile.Profile(**choices))


def codes(partition):
    return [item.code for item in partition.warnings]


class DivisionTest(unittest.TestCase):
    def test_by_default_every_cpu_is_the_guests(self):
        host = hosts.build(threads=2)
        partition = divide(host)
        self.assertEqual(host.cpus, partition.dedicated)
        self.assertEqual(2, partition.threads)
        self.assertEqual([], codes(partition))

    def test_siblings_left_idle_are_not_dedicated(self):
        partition = divide(hosts.build(cells=1, cores=4, threads=2),
                           smt=profile.SMT.LEAVE)
        self.assertEqual(frozenset({0, 1, 2, 3}), partition.dedicated)
        self.assertEqual(1, partition.threads)
        self.assertEqual([warning.WarningCode.SIBLINGS_IDLE], codes(partition))

    def test_housekeeping_keeps_whole_lowest_cores_of_each_cell(self):
        partition = divide(hosts.build(cores=4, threads=2),
                           housekeeping_cores_per_cell=1)
        self.assertEqual(frozenset(range(16)) - {0, 8, 4, 12},
                         partition.dedicated)
        self.assertEqual(frozenset(), partition.shared)

    def test_housekeeping_takes_from_each_cache_in_turn(self):
        partition = divide(hosts.build(cells=1, cores=8, llc_cores=4),
                           housekeeping_cores_per_cell=2)
        self.assertEqual(frozenset({1, 2, 3, 5, 6, 7}), partition.dedicated)
        self.assertEqual((3, 3), partition.cells[0].llc)

    def test_shared_cores_follow_the_housekeeping_cores(self):
        partition = divide(hosts.build(cells=1, cores=4, threads=2),
                           housekeeping_cores_per_cell=1,
                           shared_cores_per_cell=1)
        self.assertEqual(frozenset({1, 5}), partition.shared)
        self.assertEqual(frozenset({2, 6, 3, 7}), partition.dedicated)

    def test_a_cell_without_memory_gives_nothing_and_says_so(self):
        partition = divide(hosts.build(cells=2, cores=2, mib=(4096, 0)))
        self.assertEqual([0], [cell.id for cell in partition.cells])
        self.assertEqual([warning.WarningCode.CELL_WITHOUT_MEMORY],
                         codes(partition))
        self.assertIn('cell 1 has no memory; CPUs 2-3',
                      partition.warnings[0].message)

    def test_cells_without_cpus_are_told_in_one_sentence(self):
        partition = divide(hosts.build(cells=2, memory_only=2, mib=4096))
        self.assertEqual([warning.WarningCode.CELL_WITHOUT_CPUS],
                         codes(partition))
        self.assertIn('cells 2-3 have 8192 MiB', partition.warnings[0].message)

    def test_a_core_with_an_offline_sibling_is_left_to_the_host(self):
        host = hosts.build(cells=1, cores=4, threads=2)
        cell = host.cells[0]
        host = dataclasses.replace(host, cells=(dataclasses.replace(
            cell, cpus=cell.cpus - {5},
            siblings=(frozenset({0, 4}), frozenset({1}), frozenset({2, 6}),
                      frozenset({3, 7})),
            llc=(cell.cpus - {5},)),))
        partition = divide(host)
        self.assertEqual(frozenset({0, 4, 2, 6, 3, 7}), partition.dedicated)
        self.assertEqual([warning.WarningCode.IRREGULAR_CORES],
                         codes(partition))

    def test_the_kind_of_core_with_the_most_cpus_wins(self):
        host = hosts.build(cells=1, cores=8)
        cell = host.cells[0]
        siblings = (frozenset({0, 1}),
                    *(frozenset({cpu}) for cpu in range(2, 8)))
        host = dataclasses.replace(host, cells=(
            dataclasses.replace(cell, siblings=siblings),))
        partition = divide(host)
        self.assertEqual(1, partition.threads)
        # Of the wide core one thread is as good as a narrow core.
        self.assertEqual(frozenset({0, 2, 3, 4, 5, 6, 7}), partition.dedicated)

    def test_a_cell_that_housekeeping_uses_up_is_told(self):
        partition = divide(hosts.build(cores=(4, 1)),
                           housekeeping_cores_per_cell=1)
        self.assertEqual([0], [cell.id for cell in partition.cells])
        self.assertIn('cell 1 has no core left', partition.warnings[0].message)

    def test_every_dedicated_core_is_whole(self):
        for host in hosts.shipped():
            partition = divide(host, housekeeping_cores_per_cell=1)
            for share in partition.cells:
                siblings = host.by_id[share.id].siblings
                for core in share.cores:
                    self.assertIn(core, siblings)

    def test_the_default_keeps_what_sites_keep(self):
        for cores, kept in ((10, 1), (12, 1), (16, 1), (24, 2), (32, 2),
                            (64, 4), (72, 6), (1, 1)):
            self.assertEqual(kept, cpu_partition.count_kept(cores), cores)
        for cores in range(10, 400):
            kept = cpu_partition.count_kept(cores)
            self.assertLessEqual(0.04 * cores, kept, cores)
            self.assertLessEqual(kept, 0.1 * cores, cores)

    def test_the_default_gives_the_kept_cores_to_emulator_threads(self):
        host = hosts.build(cells=2, cores=24, threads=2)
        found = cpu_partition.divide(host, profile.DEFAULT)
        self.assertEqual([22, 22], [len(cell.cores) for cell in found.cells])
        self.assertEqual(8, len(found.shared))
        self.assertEqual(host.cpus, found.shared | found.dedicated)
