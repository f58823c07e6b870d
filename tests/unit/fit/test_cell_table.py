# SPDX-License-Identifier: Apache-2.0

"""What is remembered of host cells is what counting them finds."""

import random
import unittest

from hpcvirt.fit import cell_room
from hpcvirt.fit import cell_table
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape
from tests.builders import tiny

GUEST_CELLS = [
    tiny.guest_cell(2), tiny.guest_cell(8, 512), tiny.guest_cell(4, 4096),
    tiny.guest_cell(2, page_kib=None), tiny.guest_cell(1, page_kib=4),
    tiny.guest_cell(2, page_kib=shape.PageClass.ANY),
    tiny.guest_cell(0, policy=tiny.SHARED, vcpus=2),
    tiny.guest_cell(1, policy=tiny.MIXED, vcpus=1),
    tiny.guest_cell(2, threads=shape.ThreadPolicy.REQUIRE),
    tiny.guest_cell(1, threads=shape.ThreadPolicy.ISOLATE)]


def some_supply(dice):
    """A host of one cell, which guests use."""
    cell = tiny.host_cell(
        dice.randrange(2), threads=dice.choice((1, 2)),
        memory_used_mib=dice.choice((0, 4096)),
        cpu_usage=dice.choice((0, 3)),
        shared=frozenset(range(200, 200 + dice.choice((0, 4)))),
        pages=dice.choice(((), (
            tiny.pages(4, 2 << 20, 1000),
            tiny.pages(tiny.HUGE_KIB, 4096, dice.randrange(4096))))))
    return supplies.Supply(
        (cell._replace(free=frozenset(dice.sample(
            sorted(cell.dedicated), dice.randrange(9)))),),
        cpu_ratio=dice.choice((1.0, 2.0)))


def count(guest_cells, supply):
    """Count guest cells without a table."""
    fixed, changing = cell_room.describe(supply.cells[0], supply, True)
    state = cell_room.CellState._make((*fixed, *changing))
    return tuple(cell_room.count(each, state) for each in guest_cells)


def fail(_kind, error):
    raise error


class CellTableTest(unittest.TestCase):
    def test_rows_grow_by_the_guest_cells_that_are_added(self):
        dice = random.Random(9)
        table = cell_table.CellTable(True, fail)
        hosts = [some_supply(dice) for _ in range(200)]
        numbers = [table.number(host.cells[0], host) for host in hosts]
        for size in (3, 4, len(GUEST_CELLS)):
            some = GUEST_CELLS[:size]
            self.assertEqual(list(range(size)), list(map(table.add, some)))
            for host, number in zip(hosts, numbers, strict=True):
                self.assertEqual([count(some, host)], table.rooms([number]))

    def test_a_cell_is_emptied_of_what_guests_use(self):
        dice = random.Random(10)
        table = cell_table.CellTable(True, fail)
        for _ in range(100):
            host = some_supply(dice)
            cell = host.cells[0]
            empty = cell._replace(
                free=cell.dedicated, cpu_usage=0, memory_used_mib=0,
                pages=tuple(pool._replace(used=0, free=pool.total)
                            for pool in cell.pages))
            number = table.number(cell, host)
            self.assertEqual((table.number(empty, host),),
                             table.emptied([number]))
            self.assertEqual([cell.empty],
                             [each.empty for each in table.states([number])])

    def test_cells_with_other_cpus_of_the_same_number_are_alike(self):
        table = cell_table.CellTable(False, fail)
        cell = tiny.host_cell(taken=3)
        for first, same in ((4, True), (3, False)):
            other = cell._replace(free=frozenset(range(first)) | {7})
            self.assertEqual(same, table.number(cell, tiny.host())
                             == table.number(other, tiny.host()))
