# SPDX-License-Identifier: Apache-2.0

"""A host gets back from a guest what the guest has of it."""

import dataclasses
import random
import unittest

from hpcvirt.fit import allocation
from hpcvirt.fit import claim
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape
from tests.builders import tiny


def random_host(dice):
    """A host with SMT or without, shared CPUs, three sizes of pages, devices.

    Some CPUs, pages and devices are in use by others.
    """
    threads = dice.choice((1, 2, 4))
    cells = []
    for number in range(dice.choice((1, 2, 4))):
        first = number * 64
        cells.append(tiny.host_cell(
            number, 8 * threads, dice.randrange(4), threads,
            shared=frozenset(range(first + 48, first + 48 + 4)),
            pages=(tiny.pages(4, 1 << 20, dice.randrange(9)),
                   tiny.pages(tiny.HUGE_KIB, 4096, 0, 7),
                   tiny.pages(tiny.GIANT_KIB, 4)),
            cpu_usage=dice.randrange(3)))
    pools = tuple(
        devices.pool(dice.choice((None, *range(len(cells)))),
                     dice.randrange(4), dice.choice(('gpu', 'vf')))
        for _ in range(dice.randrange(5))) + tuple(
        pool for number in range(dice.randrange(3))
        for pool in card(number, dice.randrange(len(cells))))
    return supplies.Supply(
        tuple(cells), dice.choice((pools, pools, None)), cpu_ratio=4.0,
        ram_ratio=1.5)


def card(number, cell):
    """A free card with four virtual functions."""
    return tuple(
        devices.Pool(cell, count, {
            devices.alias_tag(alias): True, 'dev_type': kind,
            'address': f'0000:1{number}:00.0'})
        for alias, kind, count in (('pf', 'type-PF', 1),
                                   ('vf', 'type-VF', 4)))


def random_guest(dice):
    policy = dice.choice(tuple(shape.CPUPolicy))
    isolates = policy is not tiny.SHARED and dice.random() < 0.2
    page_kib = dice.choice((None, 4, tiny.HUGE_KIB, tiny.GIANT_KIB,
                            *shape.PageClass))
    threads = None if policy is tiny.SHARED else dice.choice(
        (None, *shape.ThreadPolicy))
    cells = tuple(tiny.guest_cell(
        0 if policy is tiny.SHARED else dice.randrange(1, 5),
        dice.choice((1024, 2048)), page_kib, policy=policy, threads=threads,
        vcpus=0 if policy is tiny.DEDICATED else dice.randrange(1, 3),
        emulator_pcpus=int(isolates and not index))
        for index in range(dice.choice((0, 1, 1, 2))))
    requests = tuple(request(
        dice.choice(('gpu', 'vf', 'vf', 'pf')), dice.choice((1, 2)),
        dice.choice(tuple(shape.PCIAffinity)))
        for _ in range(dice.choice((0, 0, 1, 2))))
    return demands.Demand(cells, requests)


def request(alias, count=1, affinity=shape.PCIAffinity.PREFERRED):
    wanted = tiny.request(alias, count, affinity)
    return wanted if alias != 'pf' else dataclasses.replace(
        wanted, count=1, specs=({**wanted.specs[0], 'dev_type': 'type-pf'},))


class ReleaseTest(unittest.TestCase):
    """Whoever leaves gives back what it was charged, in whatever order."""

    def test_release_is_the_inverse_of_charge(self):
        dice = random.Random(20)
        seen = set()
        for _ in range(250):
            empty = supply = random_host(dice)
            guests = []
            for _ in range(40):
                if guests and dice.random() < 0.4:
                    supply = allocation.release(
                        *self.leave(dice, guests, supply))
                    continue
                guest = random_guest(dice)
                placed = claim.predict(guest, supply)
                if not isinstance(placed, demands.CellAssignment):
                    continue
                after, holding = allocation.charge(guest, supply, placed)
                self.assertEqual(supply,
                                 allocation.release(guest, after, holding))
                self.assert_taken(guest, supply, after, holding)
                seen.update((cell.policy, cell.threads, placed.pages_kib[:1])
                            for cell in guest.cells)
                seen.add(bool(holding.devices))
                self.assert_cards(after)
                guests.append((guest, holding))
                supply = after
            while guests:
                supply = allocation.release(*self.leave(dice, guests, supply))
            self.assertEqual(empty, supply)
        self.assertGreater(len(seen), 25)

    def leave(self, dice, guests, supply):
        guest, holding = guests.pop(dice.randrange(len(guests)))
        return guest, supply, holding

    def assert_taken(self, guest, before, after, holding):
        """A charge is what the scheduler allocates, and kept empty pools."""
        left = allocation.allocate(guest, before, holding.placement)
        self.assertEqual(left.cells, after.cells)
        self.assertEqual(
            [pool for pool in left.pools or () if pool.free],
            [pool for pool in after.pools or () if pool.free])
        self.assertEqual(len(before.pools or ()), len(after.pools or ()))
        free = frozenset().union(*(cell.free for cell in before.cells))
        self.assertLessEqual(holding.cpus, free)
        self.assertEqual(free - holding.cpus, frozenset().union(
            *(cell.free for cell in after.cells)))

    def assert_cards(self, supply):
        """A card is in use as a whole, or by its virtual functions."""
        free = {(pool.tags.get('address'), pool.tags.get('dev_type')):
                pool.free for pool in supply.pools or ()}
        for (address, kind), count in free.items():
            if kind == 'type-PF' and count:
                self.assertEqual(4, free[address, 'type-VF'])


class CardTest(unittest.TestCase):
    def supply(self):
        return supplies.Supply((), card(0, 0) + card(1, 0))

    def charge(self, supply, *aliases):
        guest = demands.Demand((), tuple(map(request, aliases)))
        placed = claim.predict(guest, supply)
        after, holding = allocation.charge(guest, supply, placed)
        return after, (guest, holding)

    def free(self, supply):
        return [pool.free for pool in supply.pools]

    def test_a_card_is_free_when_all_its_virtual_functions_are(self):
        supply, first = self.charge(self.supply(), 'vf')
        self.assertEqual([0, 3, 1, 4], self.free(supply))
        supply, second = self.charge(supply, 'vf', 'vf')
        self.assertEqual([0, 1, 1, 4], self.free(supply))
        supply = allocation.release(first[0], supply, first[1])
        self.assertEqual([0, 2, 1, 4], self.free(supply))
        self.assertEqual(self.supply(), allocation.release(
            second[0], supply, second[1]))

    def test_the_virtual_functions_go_and_come_with_the_card(self):
        supply, whole = self.charge(self.supply(), 'pf', 'vf')
        self.assertEqual([0, 0, 0, 3], self.free(supply))
        self.assertEqual(self.supply(), allocation.release(
            whole[0], supply, whole[1]))

    def test_the_scheduler_drops_the_pools_of_a_card(self):
        guest = demands.Demand((), (request('vf'), request('pf')))
        left = allocation.allocate(guest, self.supply(), claim.predict(
            guest, self.supply()))
        self.assertEqual([3], self.free(left))


class AllocateTest(unittest.TestCase):
    """What is left of a host once a guest has been placed on it."""

    def allocate(self, guest, supply):
        return allocation.allocate(guest, supply, claim.predict(guest, supply))

    def test_cpus_memory_and_pages_are_used(self):
        left = self.allocate(tiny.guest(4), tiny.host(0, 4)).cells[0]
        self.assertEqual({4, 5, 6, 7}, left.free)
        self.assertEqual(1024, left.memory_used_mib)
        self.assertEqual([(0, 2 << 20), (512, 3584)],
                         [(pool.used, pool.free) for pool in left.pages])

    def test_other_cells_are_unchanged(self):
        before = tiny.host(0, 4)
        self.assertEqual(before.cells[1],
                         self.allocate(tiny.guest(4), before).cells[1])

    def test_a_guest_without_page_size_takes_the_smallest_pages(self):
        guest = type(tiny.guest())((tiny.guest_cell(page_kib=None),))
        left = self.allocate(guest, tiny.host(0)).cells[0]
        self.assertEqual([1 << 18, 0], [pool.used for pool in left.pages])

    def test_shared_vcpus_are_counted(self):
        guest = type(tiny.guest())((tiny.guest_cell(
            0, vcpus=2, policy=shape.CPUPolicy.SHARED),))
        supply = type(tiny.host())((tiny.host_cell(
            shared=frozenset({60, 61})),))
        self.assertEqual(2, self.allocate(guest, supply).cells[0].cpu_usage)

    def test_devices_are_used(self):
        guest = tiny.guest(4, requests=(tiny.request(count=2),))
        supply = tiny.host(0, 0, pools=tiny.gpus(3, 1))
        left = self.allocate(guest, supply)
        self.assertEqual([(0, 1), (1, 1)],
                         [(pool.cell, pool.free) for pool in left.pools])

    def test_an_empty_pool_is_dropped_as_in_nova(self):
        guest = tiny.guest(4, requests=(tiny.request(count=2),))
        supply = tiny.host(0, pools=tiny.gpus(2))
        self.assertEqual((), self.allocate(guest, supply).pools)

    def test_a_host_fills_guest_by_guest(self):
        guest, supply = tiny.guest(4), tiny.host(0, 2)
        cells = []
        while True:
            where = claim.predict(guest, supply)
            if not hasattr(where, 'cells'):
                break
            cells += where.cells
            supply = allocation.allocate(guest, supply, where)
        self.assertEqual([0, 1, 0], cells)
