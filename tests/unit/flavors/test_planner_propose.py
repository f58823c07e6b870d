# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import memory
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import shape
from tests.builders import hosts


def proposals(sizes, pages, host=None, page_kib=2048, **choices):
    profile = profiles.Profile(**choices)
    partition = cpu_partition.divide(host or hosts.build(cells=2, cores=8),
                                     profile)
    pools = [memory.CellPool(share.id, len(share.cores), count, page_kib)
             for share, count in zip(partition.cells, pages, strict=True)]
    return planner.propose(partition, sizes, pools, profile)


def memories(found):
    return [[cell.memory_mib for cell in item.guest.cells] for item in found]


class ProposalsTest(unittest.TestCase):
    def test_memory_is_in_proportion_to_cores(self):
        sizes = [cpu_partition.GuestSize(cores, 1)
                 for cores in ((2,), (4,), (8,), (8, 8))]
        self.assertEqual(
            [[2048], [4096], [8192], [8192, 8192]],
            memories(proposals(sizes, (4096, 4096))))

    def test_a_size_comes_once_for_each_level_of_memory(self):
        sizes = [cpu_partition.GuestSize((8,), 1)]
        self.assertEqual([[8192], [16384]],
                         memories(proposals(sizes, (8192, 4096))))
        self.assertEqual([[8192]], memories(proposals(sizes, (4300, 4096))))
        # Two cells have only the smaller amount in common.
        self.assertEqual([[8192, 8192]], memories(proposals(
            [cpu_partition.GuestSize((8, 8), 1)], (8192, 4096))))

    def test_a_size_whose_memory_rounds_to_nothing_is_left_out(self):
        self.assertEqual((),
                         proposals([cpu_partition.GuestSize((8,), 1)], (0, 0)))

    def test_threads_are_vcpus_of_a_core_and_stay_on_siblings(self):
        host = hosts.build(cells=2, cores=8, threads=2)
        (found,) = proposals([cpu_partition.GuestSize((8,), 2)], (4096, 4096),
                             host)
        self.assertEqual(16, found.guest.cpus)
        self.assertIs(shape.ThreadPolicy.REQUIRE, found.guest.thread_policy)
        self.assertEqual(shape.GuestTopology(1, 8, 2), found.guest.topology)

    def test_isolated_emulator_threads_take_a_core_of_each_cell(self):
        sizes = [cpu_partition.GuestSize(cores, 1) for cores in ((1,), (8, 8))]
        (found,) = proposals(sizes, (4096, 4096),
                             emulator_threads=shape.EmulatorThreads.ISOLATE)
        self.assertEqual([7, 7], [cell.pcpus for cell in found.guest.cells])

    def test_the_socket_scope_is_for_sizes_of_one_socket(self):
        for one_socket, allowed, expected in (
                (True, True, shape.NUMAScope.SOCKET),
                (False, True, shape.NUMAScope.HOST),
                (True, False, shape.NUMAScope.HOST)):
            host = hosts.build(cells=2, cores=8, sockets=1)
            (found,) = proposals(
                [cpu_partition.GuestSize((8, 8), 1, 1, one_socket)],
                (4096, 4096), host, socket_scope=allowed)
            self.assertIs(expected, found.guest.numa_scope)

    def test_an_unequal_cell_has_no_more_memory_than_the_one_before(self):
        host = hosts.build(cores=(8, 4))
        size = cpu_partition.GuestSize((8, 4), 1)
        (found,) = proposals([size], (2048, 8192), host)
        self.assertEqual([4096, 4096],
                         [cell.memory_mib for cell in found.guest.cells])
