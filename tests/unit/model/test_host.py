# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from hpcvirt.model import host
from tests.builders import machines
from tests.builders import wired


class GroupTwinsTest(unittest.TestCase):
    def test_twins_may_differ_in_names_and_present_links(self) -> None:
        first, other = wired.host(), wired.host()
        self.assertEqual([[first, dataclasses.replace(
            other, name='n2', wiring=None)]], host.group_twins((
                first, dataclasses.replace(other, name='n2', wiring=None))))
        self.assertEqual(2, len(host.group_twins((
            first, dataclasses.replace(other, devices=())))))


class CellTest(unittest.TestCase):
    def test_threads_per_core_is_the_maximum_of_the_cores(self) -> None:
        for cores, threads in (((), 1), (((0,), (1,)), 1),
                               (((0, 1), (2,)), 2)):
            self.assertEqual(
                threads, machines.cell(0, *cores).threads_per_core)

    def test_a_pool_is_found_by_its_page_size(self) -> None:
        cell = machines.cell(0, (0,), huge=((2048, 3), (1048576, 1)))
        self.assertEqual(host.PagePool(2048, 3), cell.pool(2048))
        self.assertIsNone(cell.pool(64))

    def test_the_memory_of_a_pool_is_rounded_down(self) -> None:
        self.assertEqual(6, host.PagePool(2048, 3).memory_mib)
        self.assertEqual(3, host.PagePool(4, 1023).memory_mib)


class HostTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.host = machines.of_cells(
            machines.cell(0, (0, 4), (1, 5), socket=1),
            machines.cell(2, (2, 6), socket=0), machines.cell(7, socket=None))

    def test_cpus_are_those_of_all_cells(self) -> None:
        self.assertEqual({0, 1, 2, 4, 5, 6}, self.host.cpus)

    def test_cells_are_found_by_their_number(self) -> None:
        self.assertEqual({0, 2, 7}, set(self.host.by_id))
        self.assertIs(self.host.cells[1], self.host.by_id[2])

    def test_sockets_are_listed_once_and_in_order(self) -> None:
        self.assertEqual((0, 1), self.host.sockets)

    def test_threads_per_core_is_the_maximum_of_the_cells(self) -> None:
        self.assertEqual(2, self.host.threads_per_core)
