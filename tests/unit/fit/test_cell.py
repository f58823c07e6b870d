# SPDX-License-Identifier: Apache-2.0

"""One guest cell against one host cell."""

import dataclasses
import math
import random
import time
import unittest
from unittest import mock

from hpcvirt.fit import allocation
from hpcvirt.fit import capacity
from hpcvirt.fit import cell as cells
from hpcvirt.fit import cell_search
from hpcvirt.fit import claim
from hpcvirt.fit import devices
from hpcvirt.fit import engine
from hpcvirt.fit import guest as guests
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape
from tests.builders import tiny
from tests.builders import used_hosts

REQUIRE = shape.ThreadPolicy.REQUIRE
ISOLATE = shape.ThreadPolicy.ISOLATE
PREFER = shape.ThreadPolicy.PREFER


class CellTestCase(unittest.TestCase):
    def assert_fits(self, guest, host, **ratios):
        self.assertIsNone(cells.obstacle(guest, host, **ratios))

    def assert_misfit(self, message, guest, host, **ratios):
        misfit = cells.obstacle(guest, host, **ratios)
        self.assertIsInstance(misfit, reasons.Misfit)
        self.assertEqual(message, misfit.message)


class DedicatedCPUsTest(CellTestCase):
    def test_exactly_enough_free_pcpus_are_enough(self):
        self.assert_fits(tiny.guest_cell(3), tiny.host_cell(taken=5))

    def test_a_refusal_names_the_cell_and_its_free_pcpus(self):
        self.assert_misfit('cell 1 has 3 of the 8 free PCPUs needed',
                           tiny.guest_cell(8), tiny.host_cell(1, taken=5))

    def test_a_cell_that_is_too_small_is_not_refused_as_in_use(self):
        self.assert_misfit('cell 0 has 8 of the 9 PCPUs needed',
                           tiny.guest_cell(9), tiny.host_cell())

    def test_isolated_emulator_threads_need_one_more_pcpu(self):
        guest = tiny.guest_cell(4, emulator_pcpus=1)
        self.assert_fits(guest, tiny.host_cell(taken=3))
        self.assert_misfit('cell 0 has 4 of the 5 free PCPUs needed', guest,
                           tiny.host_cell(taken=4))

    def test_pcpus_outside_of_any_core_are_not_counted(self):
        host = tiny.host_cell(siblings=(frozenset({0, 1}),))
        for fields in ({'pcpus': 3}, {'pcpus': 2, 'emulator_pcpus': 1}):
            self.assert_misfit('cell 0 has 2 of the 3 free PCPUs needed',
                               tiny.guest_cell(**fields), host)

    def test_a_cell_without_cores_takes_no_pins(self):
        self.assert_misfit('cell 0 has no cores', tiny.guest_cell(1),
                           tiny.host_cell(siblings=()))

    def test_emulator_threads_are_isolated_only_with_pinned_vcpus(self):
        guest = tiny.guest_cell(0, policy=tiny.MIXED, vcpus=2,
                                emulator_pcpus=1)
        host = tiny.host_cell(shared=frozenset({60, 61}))
        self.assert_misfit(
            'cell 0 has no PCPU for isolated emulator threads, because the '
            'guest cell has no dedicated vCPUs', guest, host, cpu_ratio=2.0)

    def test_a_guest_cell_without_vcpus_fits_nowhere(self):
        self.assert_misfit('a guest cell has no vCPUs',
                           tiny.guest_cell(0), tiny.host_cell())


class ThreadPolicyTest(CellTestCase):
    def test_prefer_takes_single_threads(self):
        # Every core has one thread left.
        host = tiny.host_cell(threads=2, free=frozenset({0, 2, 4, 6}))
        self.assert_fits(tiny.guest_cell(4, threads=PREFER), host)

    def test_require_needs_free_siblings(self):
        host = tiny.host_cell(threads=2, free=frozenset({0, 2, 4, 6, 7}))
        self.assert_fits(tiny.guest_cell(2, threads=REQUIRE), host)
        self.assert_misfit(
            'cell 0 has room on free SMT siblings for 2 of the 3 vCPUs',
            tiny.guest_cell(3, threads=REQUIRE), host)

    def test_require_may_leave_the_last_of_an_odd_number_alone(self):
        host = tiny.host_cell(threads=2, free=frozenset({0, 1, 2, 3}))
        self.assert_fits(tiny.guest_cell(3, threads=REQUIRE), host)

    def test_require_may_use_part_of_wider_cores(self):
        # Two cores of four threads with three and two free: four vCPUs can
        # go in pairs, five cannot.
        host = tiny.host_cell(threads=4, free=frozenset({0, 1, 2, 4, 5}))
        self.assert_fits(tiny.guest_cell(4, threads=REQUIRE), host)
        self.assert_misfit(
            'cell 0 has room on free SMT siblings for 4 of the 5 vCPUs',
            tiny.guest_cell(5, threads=REQUIRE), host)

    def test_require_needs_smt(self):
        self.assert_misfit(
            'cell 0 has no SMT siblings, but the thread policy is require',
            tiny.guest_cell(1, threads=REQUIRE), tiny.host_cell())

    def test_isolate_is_plain_pinning_without_smt(self):
        self.assert_fits(tiny.guest_cell(8, threads=ISOLATE), tiny.host_cell())

    def test_isolate_is_refused_where_smt_is_dedicated(self):
        self.assert_misfit(
            'cell 0 has SMT siblings, but the thread policy is isolate and '
            'the host sets cpu_dedicated_set',
            tiny.guest_cell(1, threads=ISOLATE),
            tiny.host_cell(threads=2))

    def test_isolate_takes_whole_cores_of_a_legacy_host(self):
        host = tiny.host_cell(threads=2, taken=1, shared=frozenset(range(8)))
        self.assert_fits(tiny.guest_cell(3, threads=ISOLATE), host)
        self.assert_misfit(
            'cell 0 has 3 of the 4 whole free cores needed',
            tiny.guest_cell(4, threads=ISOLATE), host)

    def test_isolated_emulator_threads_take_a_whole_core_too(self):
        host = tiny.host_cell(threads=2, taken=1, shared=frozenset(range(8)))
        self.assert_fits(
            tiny.guest_cell(2, threads=ISOLATE, emulator_pcpus=1), host)
        self.assert_misfit(
            'cell 0 has 3 of the 4 whole free cores needed',
            tiny.guest_cell(3, threads=ISOLATE, emulator_pcpus=1), host)

    def test_nothing_can_be_isolated_in_a_cell_of_shared_vcpus(self):
        self.assert_misfit(
            'a guest cell has no dedicated vCPUs, but the thread policy is '
            'isolate',
            tiny.guest_cell(0, policy=tiny.MIXED, vcpus=1, threads=ISOLATE),
            tiny.host_cell(shared=frozenset({60})))


class SharedCPUsTest(CellTestCase):
    def guest(self, vcpus, **fields):
        return tiny.guest_cell(0, policy=tiny.SHARED, vcpus=vcpus,
                               page_kib=None, **fields)

    def host(self, **fields):
        return tiny.host_cell(shared=frozenset({60, 61, 62, 63}), **fields)

    def test_a_guest_does_not_overcommit_against_itself(self):
        self.assert_fits(self.guest(4), self.host(), cpu_ratio=8.0)
        self.assert_misfit('cell 0 has 4 of the 5 shared CPUs needed',
                           self.guest(5), self.host(), cpu_ratio=8.0)

    def test_the_cpu_ratio_limits_all_guests_together(self):
        host = self.host(cpu_usage=5)
        self.assert_fits(self.guest(1), host, cpu_ratio=1.5)
        self.assert_misfit(
            'cell 0 would have 7 shared vCPUs, over its limit of 6',
            self.guest(2), host, cpu_ratio=1.5)

    def test_the_ram_ratio_limits_all_guests_together(self):
        host = self.host(memory_used_mib=16384)
        self.assert_fits(self.guest(1, memory_mib=8192), host, ram_ratio=1.5)
        self.assert_misfit(
            'cell 0 would have 24832 MiB in use, over its limit of 24576 MiB',
            self.guest(1, memory_mib=8448), host, ram_ratio=1.5)

    def test_a_mixed_guest_needs_both_kinds(self):
        guest = tiny.guest_cell(2, policy=tiny.MIXED, vcpus=2)
        self.assert_fits(guest, self.host(taken=6))
        self.assert_misfit('cell 0 has 1 of the 2 free PCPUs needed', guest,
                           self.host(taken=7))
        self.assert_misfit('cell 0 has 0 of the 2 shared CPUs needed', guest,
                           tiny.host_cell())


class MemoryTest(CellTestCase):
    def test_pages_of_the_size_must_be_free(self):
        host = tiny.host_cell(pages=(
            tiny.pages(4, 1 << 20),
            tiny.pages(2048, 1000, used=400, reserved=100)))
        self.assert_fits(tiny.guest_cell(memory_mib=1000), host)
        self.assert_misfit(
            'cell 0 has 500 of the 501 free pages of 2048 KiB needed',
            tiny.guest_cell(memory_mib=1002), host)

    def test_memory_must_be_whole_pages(self):
        self.assert_misfit(
            '1001 MiB is not a multiple of the page size of 2048 KiB on '
            'cell 0',
            tiny.guest_cell(memory_mib=1001), tiny.host_cell())

    def test_a_size_that_the_cell_does_not_have(self):
        self.assert_misfit(
            'cell 0 has no pages of 1048576 KiB',
            tiny.guest_cell(page_kib=tiny.GIANT_KIB), tiny.host_cell())

    def test_a_pinned_guest_without_page_size_needs_free_small_pages(self):
        host = tiny.host_cell(pages=(tiny.pages(4, 1 << 18, used=1 << 17),))
        guest = tiny.guest_cell(page_kib=None, memory_mib=512)
        self.assert_fits(guest, host)
        self.assert_misfit(
            'cell 0 has 131072 of the 132096 free pages of 4 KiB needed',
            tiny.guest_cell(page_kib=None, memory_mib=516), host)

    def test_a_shared_guest_without_page_size_may_overcommit(self):
        host = tiny.host_cell(
            shared=frozenset({60}),
            pages=(tiny.pages(4, 1 << 18, used=1 << 18),))
        self.assert_fits(
            tiny.guest_cell(0, vcpus=1, policy=tiny.SHARED,
                            page_kib=None), host)

    def test_a_host_without_pages_is_judged_by_its_memory(self):
        host = tiny.host_cell(pages=(), memory_mib=2048, memory_used_mib=1024)
        self.assert_fits(tiny.guest_cell(page_kib=None), host)
        self.assert_misfit(
            'cell 0 has 1024 of the 1025 MiB of free memory needed',
            tiny.guest_cell(page_kib=None, memory_mib=1025), host)

    def test_a_shared_guest_on_a_host_without_pages(self):
        host = tiny.host_cell(pages=(), memory_mib=2048, memory_used_mib=1024,
                              shared=frozenset({60}))
        guest = tiny.guest_cell(0, vcpus=1, policy=tiny.SHARED,
                                page_kib=None, memory_mib=2049)
        self.assert_misfit('cell 0 has 2048 of the 2049 MiB of memory needed',
                           guest, host, ram_ratio=2.0)


class PageClassTest(CellTestCase):
    def host(self, small=1 << 20, huge=1024, giant=2):
        return tiny.host_cell(pages=(
            tiny.pages(4, small), tiny.pages(2048, huge),
            tiny.pages(tiny.GIANT_KIB, giant)))

    def size(self, page_class, memory_mib, host):
        return cells.page_size(
            tiny.guest_cell(page_kib=page_class, memory_mib=memory_mib), host)

    def test_large_is_the_largest_size_with_room(self):
        large = shape.PageClass.LARGE
        self.assertEqual(tiny.GIANT_KIB, self.size(large, 2048, self.host()))
        self.assertEqual(2048, self.size(large, 1536, self.host()))
        self.assertEqual(2048, self.size(large, 2048, self.host(giant=1)))

    def test_large_is_never_the_smallest_size(self):
        self.assertIsNone(self.size(shape.PageClass.LARGE, 2048,
                                    self.host(huge=0, giant=0)))
        self.assert_misfit(
            'cell 0 has no page size of class large with 2048 MiB free',
            tiny.guest_cell(page_kib=shape.PageClass.LARGE, memory_mib=2048),
            self.host(huge=0, giant=0))

    def test_any_falls_back_to_the_smallest_size(self):
        self.assertEqual(4, self.size(shape.PageClass.ANY, 2048,
                                      self.host(huge=0, giant=0)))

    def test_small_is_the_smallest_size(self):
        self.assertEqual(4, self.size(shape.PageClass.SMALL, 2048,
                                      self.host()))
        self.assertIsNone(self.size(shape.PageClass.SMALL, 2048,
                                    self.host(small=100)))

    def test_a_guest_that_does_not_ask_gets_no_size(self):
        self.assertIsNone(self.size(None, 1024, self.host()))


SEED = 20261122


def a_cell(dice, number, threads, cores):
    """Create a cell of which random CPUs and pages are in use."""
    siblings = [frozenset(core + thread * cores for thread in range(threads))
                for core in range(cores)]
    cpus = frozenset().union(*siblings)
    whole = dice.random() < 0.5
    free = frozenset().union(*(
        core if whole else dice.sample(sorted(core), dice.randint(0, threads))
        for core in siblings if dice.random() < 0.8))
    used = dice.randrange(70)
    return supplies.CellSupply(
        number, 0, cpus, free, frozenset(), siblings, 0, 4096,
        dice.randrange(3000), tuple(
            supplies.PageSupply(size, total, used, total - used)
            for size, total in ((4, 200_000), (2048, dice.randrange(900)))))


def a_shape(dice):
    """Create a shape; most are equal cells with pages of a given size."""
    cell = shape.GuestCell(dice.choice((1, 2, 3, 4)), 0,
                           dice.choice((64, 128, 131, 300)),
                           page_kib=dice.choice((2048, 2048, 4, None)))
    return shape.Shape(
        (cell,) * dice.choice((1, 1, 2, 3)), shape.CPUPolicy.DEDICATED,
        dice.choice((None, *shape.ThreadPolicy)),
        emulator_threads=dice.choice((
            None, None, shape.EmulatorThreads.ISOLATE)))


class GuestCounterTest(unittest.TestCase):
    def test_it_counts_as_the_claims_one_after_the_other(self):
        dice = random.Random(SEED)
        kinds = capacity.CellKinds()
        total = reused = 0
        for _ in range(120):
            wanted = a_shape(dice)
            guest = used_hosts.guest(wanted)
            counter = capacity.GuestCounter(guest)
            for _ in range(4):
                threads, cores = dice.choice((1, 2)), dice.choice((3, 8))
                supply = supplies.Supply(
                    tuple(a_cell(dice, number, threads, cores)
                          for number in range(dice.randint(1, 5))),
                    (devices.pool(dice.randrange(3), 1),),
                    spares_devices=dice.random() < 0.5,
                    packing=dice.random() < 0.3)
                limit = dice.choice((0, 1, 3, 100))
                host = dataclasses.replace(
                    used_hosts.state(supply), free=guests.Resources(
                        *[limit * amount for amount in guest.sums]))
                expected = capacity.fill(guest, host).count
                with mock.patch.object(
                        capacity, 'fill', wraps=capacity.fill) as left:
                    self.assertEqual(expected, counter.count(
                        host, kinds.find(supply)), (wanted, host))
                reused += not left.called
                total += expected
        self.assertGreater(total, 200)
        self.assertGreater(reused, 150)

    def test_cells_that_differ_in_their_numbers_are_of_one_kind(self):
        kinds = capacity.CellKinds()
        cell = supplies.CellSupply(
            0, 0, frozenset(range(4)), frozenset({0, 3}), frozenset(),
            (frozenset({0, 2}), frozenset({1, 3})), 0, 4096, 0, ())
        other = cell._replace(id=5, free=frozenset({1, 2}))
        narrow = cell._replace(siblings=tuple(map(frozenset, '0123')))
        kind, same, differing = kinds.find(supplies.Supply(
            (cell, other, narrow)))
        self.assertIs(kind, same)
        self.assertIsNot(kind, differing)


PAGES = (None, 4, tiny.HUGE_KIB, tiny.GIANT_KIB, *shape.PageClass)


def filled(demand, cell, cpu_ratio, ram_ratio):
    """Count guest cells by placing one after the other."""
    count = 0
    while cells.obstacle(demand, cell, cpu_ratio, ram_ratio) is None:
        if count == 200:
            return cells.AMPLE
        cell = allocation.take(demand, cell, cells.page_size(demand, cell))
        count += 1
    return count


class CountTest(unittest.TestCase):
    """How many guest cells a host cell takes."""

    def test_as_many_fit_as_can_be_placed_one_after_the_other(self):
        dice = random.Random(5)
        found = set()
        for _ in range(1500):
            cell, demand = some_cell(dice), some_demand(dice)
            ratios = dice.choice((1.0, 2.0)), dice.choice((1.0, 1.5))
            truth = filled(demand, cell, *ratios)
            found.add(truth)
            with self.subTest(cell=cell, demand=demand):
                self.assertEqual(truth, cells.count(demand, cell, *ratios))
        self.assertLess({0, 1, 2, 3, 4}, found)

    def test_memory_that_may_be_overcommitted_limits_one_guest_cell(self):
        for policy, ample in ((shape.CPUPolicy.SHARED, cells.AMPLE),
                              (shape.CPUPolicy.MIXED, 1)):
            for memory_mib, room in ((8192, ample), (8194, 0)):
                demand = tiny.guest_cell(
                    0, memory_mib, None, vcpus=1, policy=policy)
                for pages in ((), (tiny.pages(2048, 4096),)):
                    cell = tiny.host_cell(
                        memory_mib=8192, pages=pages,
                        shared=frozenset((100,)))
                    self.assertEqual(room, cells.count(
                        demand, cell, math.inf, math.inf))
                    self.assertEqual(room > 0, cells.obstacle(
                        demand, cell, math.inf, math.inf) is None)

    def test_more_pages_reserved_than_free_are_no_room(self):
        demand = tiny.guest_cell(1, 1024, shape.PageClass.LARGE)
        cell = tiny.host_cell(pages=(
            tiny.pages(4, 1 << 20), tiny.pages(2048, 1024, reserved=5000),
            tiny.pages(1 << 20, 3)))
        self.assertEqual(3, cells.count(demand, cell, 1.0, 1.0))

    def test_a_core_with_one_free_thread_is_no_room_for_siblings(self):
        cell = tiny.host_cell(threads=2)._replace(
            free=frozenset((0, 2, 4, 5, 6, 7)))
        for pcpus, count in ((2, 2), (3, 1), (4, 1), (5, 0)):
            demand = tiny.guest_cell(pcpus, threads=shape.ThreadPolicy.REQUIRE)
            self.assertEqual(count, cells.count(demand, cell, 1.0, 1.0))

    def test_threads_of_shared_cpus_are_no_room_for_siblings(self):
        cell = tiny.host_cell(threads=2)
        half = frozenset((0, 2, 4, 6))
        demand = tiny.guest_cell(2, threads=shape.ThreadPolicy.REQUIRE)
        self.assertEqual(4, cells.count(demand, cell, 1.0, 1.0))
        self.assertEqual(0, cells.count(demand, cell._replace(
            dedicated=half, free=half, shared=cell.dedicated - half),
            1.0, 1.0))


def some_cell(dice):
    threads = dice.choice((1, 2, 4))
    cell = tiny.host_cell(
        0, 8, 0, threads, socket=0,
        memory_used_mib=dice.choice((0, 4096)),
        cpu_usage=dice.choice((0, 3)),
        shared=frozenset(range(100, 100 + dice.choice((0, 4, 8)))),
        pages=dice.choice(((), (tiny.pages(4, 1 << 20, 1000),
                                tiny.pages(tiny.HUGE_KIB, 4096,
                                           dice.randrange(4096)),
                                tiny.pages(tiny.GIANT_KIB,
                                           dice.choice((0, 3)))))))
    busy = dice.sample(range(8), dice.choice((0, 0, 3, 6)))
    return cell._replace(free=cell.free - set(busy))


def some_demand(dice):
    policy = dice.choice(tuple(shape.CPUPolicy))
    pcpus = 0 if policy is shape.CPUPolicy.SHARED else dice.choice((1, 2, 4))
    if policy is shape.CPUPolicy.MIXED and dice.random() < 0.2:
        pcpus = 0
    vcpus = 0 if policy is shape.CPUPolicy.DEDICATED else dice.choice((1, 3))
    threads = None if policy is shape.CPUPolicy.SHARED else dice.choice(
        (None, *shape.ThreadPolicy))
    return tiny.guest_cell(
        pcpus, dice.choice((512, 1024, 3072, 3000)), dice.choice(PAGES),
        policy=policy, vcpus=vcpus, threads=threads,
        emulator_pcpus=int(policy is not shape.CPUPolicy.SHARED
                           and dice.random() < 0.3))


class SearchTest(unittest.TestCase):
    """The search for host cells with devices."""

    def spread(self, cells=16):
        """One device on each cell, and other devices in descending number."""
        return tiny.gpus(*[1] * cells) + tiny.gpus(
            *range(40, 40 - cells, -1), alias='disk')

    def test_devices_of_several_cells_add_up(self):
        guest = tiny.guest(1, 1, 1, requests=(tiny.request(count=3),))
        placed = engine.place(guest, tiny.host(
            0, 0, 8, 0, pools=self.spread(4)))
        self.assertEqual((0, 1, 3), placed.cells)

    def test_counting_refuses_more_devices_than_any_cells_have(self):
        guest = tiny.guest(*[1] * 8, requests=(tiny.request(count=9),))
        before = time.process_time()
        misfit = engine.place(guest, tiny.host(*[0] * 16, pools=self.spread()))
        self.assertEqual(reasons.Code.DEVICE_AFFINITY, misfit.code)
        # All sets of cells would take a second.
        self.assertLess(time.process_time() - before, 0.1)

    def test_counting_adds_up_requests(self):
        guest = tiny.guest(1, 1, requests=(tiny.request(),) * 3)
        misfit = engine.place(guest, tiny.host(*[0] * 16, pools=self.spread()))
        self.assertEqual(reasons.Code.DEVICE_AFFINITY, misfit.code)

    def test_unequal_guest_cells_find_the_cell_with_the_device(self):
        # Only the small guest cell fits on the cell with the device.
        guest = tiny.guest(2, 8, requests=(tiny.request(),))
        supply = tiny.host(4, 0, 0, pools=tiny.gpus(1) +
                           tiny.gpus(0, 2, alias='disk'))
        self.assertEqual((0, 1), engine.place(guest, supply).cells)

    def test_the_search_gives_up_after_the_limit(self):
        requests = tuple(tiny.request(alias) for alias in 'abcd')
        pools = sum((tiny.gpus(*[1] * 12, alias=alias) for alias in 'abc'), ())
        # Three kinds everywhere, the fourth only where there is no room.
        pools += tiny.gpus(*[0] * 12, 1, 1, alias='d')
        guest = tiny.guest(1, 1, 1, requests=requests)
        supply = tiny.host(*[0] * 12, 8, 8, pools=pools)
        self.assertEqual(reasons.Code.DEVICE_AFFINITY,
                         engine.place(guest, supply).code)
        preferred = tiny.guest(1, 1, 1, requests=(
            *requests[:3], tiny.request('d', affinity='legacy')))
        with mock.patch.object(cell_search, 'MAX_SETS', 10):
            misfit = claim.check(preferred, supply)
        self.assertEqual(reasons.Code.UNDECIDED, misfit.code)
        self.assertIn('first 10 sets of cells', misfit.message)
