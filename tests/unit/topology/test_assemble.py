# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest
from typing import Any

from hpcvirt import exception
from hpcvirt.model import host as host_model
from hpcvirt.topology import assemble

POOL = host_model.PagePool(4, 1000)
CELL = assemble.CellFacts(0, frozenset({0}), frozenset({0, 1}), 4096, (POOL,))
OTHER = assemble.CellFacts(3, frozenset({1}), frozenset({2, 3}), 8192, ())
CORES = {0: frozenset({0, 1}), 1: frozenset({0, 1}),
         2: frozenset({2}), 3: frozenset({3})}


def build(*cells: assemble.CellFacts, **changes: Any) -> host_model.Host:
    facts: dict[str, Any] = {
        'where': 'box', 'name': 'box', 'cells': cells or (CELL, OTHER),
        'siblings': CORES, 'caches': {}, 'distances': {}, 'devices': ()}
    return assemble.host(**(facts | changes))


class HostTest(unittest.TestCase):
    def test_cells_cores_and_pools_are_sorted(self) -> None:
        host = build(OTHER, dataclasses.replace(CELL, pages=(
            host_model.PagePool(2048, 0), POOL)))
        self.assertEqual([0, 3], [cell.id for cell in host.cells])
        self.assertEqual(({2}, {3}), host.cells[1].siblings)
        self.assertEqual((POOL, host_model.PagePool(2048, 0)),
                         host.cells[0].pages)

    def test_cpus_without_a_cache_share_one(self) -> None:
        three = assemble.CellFacts(0, frozenset({0}),
                                   frozenset({0, 1, 2, 3}), 4096, ())
        host = build(three, caches={0: frozenset({0, 1}),
                                    1: frozenset({0, 1})})
        self.assertEqual(({0, 1}, {2, 3}), host.cells[0].llc)

    def test_memory_is_rounded_down(self) -> None:
        host = build(dataclasses.replace(CELL, memory_kib=5119), OTHER)
        self.assertEqual(4, host.cells[0].memory_mib)

    def test_pages_may_fill_the_last_mib_of_a_snapshot(self) -> None:
        last = dataclasses.replace(CELL, pages=(host_model.PagePool(4, 1279),))
        self.assertEqual(1279, build(last, OTHER).cells[0].pages[0].total)
        beyond = dataclasses.replace(
            CELL, pages=(host_model.PagePool(4, 1280),))
        with self.assertRaisesRegex(exception.InvalidInput, 'has pages of'):
            build(beyond, OTHER)

    def test_contradictions_name_the_element(self) -> None:
        for pattern, change in {
            "^box: ' ' cannot be the name": {'name': ' '},
            'cell 0: -1 cannot be the number of a socket': {
                'cells': (dataclasses.replace(
                    CELL, sockets=frozenset({-1})), OTHER)},
            'cell 0: has -1 pages of 4 KiB': {
                'cells': (dataclasses.replace(
                    CELL, pages=(host_model.PagePool(4, -1),)), OTHER)},
            'siblings of CPU 0: 0-1, but CPU 1 has 1': {
                'siblings': CORES | {1: frozenset({1})}},
            'siblings of CPU 9: that CPU is in no cell': {
                'siblings': CORES | {9: frozenset({9})}},
            'siblings of CPU 2: CPU 9 does not exist': {
                'siblings': CORES | {2: frozenset({2, 9})}},
            'siblings of CPU 2: an empty set does not include the CPU '
            'itself': {'siblings': CORES | {2: frozenset()}},
            'cell 3: the siblings of CPU 2 are missing': {
                'siblings': {0: CORES[0], 1: CORES[1]}},
            'cell 0: CPU 0 has the sibling 2, which is in another cell': {
                'siblings': {0: frozenset({0, 2}), 1: frozenset({1}),
                             2: frozenset({0, 2}), 3: frozenset({3})}},
            'last-level cache of CPU 0: CPU 7 does not exist': {
                'caches': {0: frozenset({0, 7})}},
            'cell 0: has two pools of 4 KiB': {
                'cells': (dataclasses.replace(CELL, pages=(POOL,) * 2),
                          OTHER)},
            'cell 0: 3 KiB is not a page size': {
                'cells': (dataclasses.replace(
                    CELL, pages=(host_model.PagePool(3, 1),)), OTHER)},
            'has two cells with the number 0': {'cells': (CELL, CELL)},
            'cell 3: CPU 1 is also in cell 0': {
                'cells': (CELL, dataclasses.replace(
                    OTHER, cpus=frozenset({1, 2, 3})))},
            'no cell has a CPU': {'cells': (), 'siblings': {}},
            'no cell has memory': {'cells': (dataclasses.replace(
                CELL, memory_kib=0, pages=()),)},
            'from cell 0 to cell 9: cell 9 does not exist': {
                'distances': {(0, 9): 10}},
            'from cell 0 to cell 0: 0 is not within 1': {
                'distances': {(0, 0): 0}},
            'the distance from cell 0 to cell 3 is missing': {
                'distances': {(0, 0): 10}},
        }.items():
            with self.subTest(pattern), self.assertRaisesRegex(
                    exception.InvalidInput, pattern):
                build(**change)

    def test_a_host_with_the_most_cpus_is_checked_quickly(self) -> None:
        cpus = frozenset(range(65536))
        groups = dict.fromkeys(cpus, cpus)
        host = build(assemble.CellFacts(0, frozenset({0}), cpus, 4096, ()),
                     siblings=groups, caches=groups)
        self.assertEqual((cpus,), host.cells[0].llc)


class SmallPagesTest(unittest.TestCase):
    def test_a_small_page_is_the_smallest_of_the_page_sizes(self) -> None:
        for sizes, small_kib in (([], 4), ([4, 2048], 4), ([524288, 64], 64),
                                 ([2048, 1048576], 4), ([0, 16], 16)):
            self.assertEqual(small_kib, assemble.small_page_kib(sizes))

    def test_small_pages_are_the_memory_without_huge_pages(self) -> None:
        for huge, small_kib, rest in ((3, 4, 512), (3, 64, 32), (5, 4, 0)):
            pool = host_model.PagePool(2048, huge)
            self.assertEqual(
                (host_model.PagePool(small_kib, rest), pool),
                assemble.add_small_pages(8192, [pool], small_kib))
        self.assertEqual((POOL,), assemble.add_small_pages(8192, [POOL], 4))
