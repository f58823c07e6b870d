# SPDX-License-Identifier: Apache-2.0

"""What a guest takes from a host, and how hosts are ranked by that."""

import dataclasses
import itertools
import math
import random
import unittest

from hpcvirt.fit import allocation
from hpcvirt.fit import claim
from hpcvirt.fit import demand as demands
from hpcvirt.fit import device_sets
from hpcvirt.fit import rating
from hpcvirt.fit import room
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape
from tests.builders import tiny


def rate(kinds, demand, supply, *cells, guests=0):
    """Rate a host; the guest gets these cells, or those of the claim."""
    placed = claim.predict(demand, supply)
    if cells:
        placed = demands.CellAssignment(
            cells, (tiny.HUGE_KIB,) * len(cells))
    return rating.rate(room.RoomCounter(kinds), demand, supply, guests,
                       placed)


class RoomTest(unittest.TestCase):
    """The room that a guest takes from the mix of requests."""

    def test_it_is_the_difference_that_the_claim_makes(self):
        dice = random.Random(6)
        kinds = [tiny.guest(2), tiny.guest(8), tiny.guest(4, 4),
                 tiny.guest(4, requests=(tiny.request(),))]
        counter = room.RoomCounter(kinds)
        compared = 0
        while compared < 60:
            supply = tiny.host(
                *(dice.choice((0, 0, 4, 6, 8)) for _ in range(4)),
                pools=tiny.gpus(*(dice.randrange(3) for _ in range(4))))
            demand = dice.choice(kinds)
            placed = claim.predict(demand, supply)
            if not isinstance(placed, demands.CellAssignment):
                continue
            guests = dice.randrange(9)
            rated = rating.rate(counter, demand, supply, guests, placed)
            if_empty = counter.count_if_empty(supply)
            after = counter.prospects(
                allocation.allocate(demand, supply, placed), if_empty,
                guests + 1)
            self.assertEqual(counter.prospects(supply, if_empty, guests),
                             rated.before)
            self.assertEqual(after, tuple(itertools.starmap(
                float.__sub__, zip(rated.before, rated.fewer, strict=True))))
            compared += 1

    def test_a_cell_near_devices_is_taken_from_guests_that_need_it(self):
        kinds = [tiny.guest(8), tiny.guest(8, requests=(tiny.request(),))]
        supply = tiny.host(0, 0, pools=tiny.gpus(0, 2))
        near, far = (rate(kinds, tiny.guest(8), supply, cell).fewer
                     for cell in (1, 0))
        self.assertEqual(near[0], far[0])
        self.assertEqual(near[1], far[1] + 1)

    def find_losses(self, kinds, rated):
        """Compute the losses of hosts; all kinds have the same weight."""
        totals = [sum(counts) for counts in zip(
            *(each.before for each in rated), strict=True)]
        return rating.losses((1 / len(kinds),) * len(kinds), totals,
                             [each.fewer for each in rated])

    def test_a_host_that_large_guests_wait_for_is_spared(self):
        large, small = tiny.guest(8, 8), tiny.guest(4)
        hosts = (tiny.host(4, 4), supplies.Supply((tiny.host_cell(pcpus=16),)))
        losses = self.find_losses(
            [large, small],
            [rate([large, small], small, host) for host in hosts])
        self.assertGreater(losses[0], losses[1])

    def test_a_host_that_soon_is_empty_is_spared(self):
        # Both have as many free CPUs, those of one guest or of four.
        large, small = tiny.guest(8, 8), tiny.guest(2)
        losses = self.find_losses([large, small], [
            rate([large, small], small, tiny.host(4, 4), guests=guests)
            for guests in (1, 4)])
        self.assertGreater(losses[0], losses[1])

    def test_infinite_numbers_are_refused(self):
        demand = demands.Demand((tiny.guest_cell(
            0, policy=shape.CPUPolicy.SHARED, vcpus=1),))
        supply = tiny.host(0, cpu_ratio=math.inf)
        supply = supplies.Supply(
            (supply.cells[0]._replace(shared=frozenset((100, 101))),),
            cpu_ratio=math.inf)
        with self.assertRaises(ValueError):
            rate([demand], demand, supply, 0)

    def test_a_guest_without_cells_takes_no_room(self):
        demand = demands.Demand((), (tiny.request(),))
        rated = rate([tiny.guest(4)], demand, tiny.host(0, pools=tiny.gpus(1)))
        self.assertEqual(rating.Rating((0.0,), (0.0,), 0.0, 0, (0.0, 0)),
                         rated)


class LeftTest(unittest.TestCase):
    def test_free_cpus_of_both_kinds_and_memory_count(self):
        supply = tiny.host(3, 8, cpu_ratio=2.0)
        supply = supplies.Supply(tuple(
            cell._replace(shared=frozenset((100, 101)), cpu_usage=1)
            for cell in supply.cells), cpu_ratio=2.0)
        memory = sum(cell.memory_mib - cell.memory_used_mib
                     for cell in supply.cells)
        self.assertEqual((5 + 2 * (2 * 2 - 1), memory),
                         rate([], tiny.guest(1), supply, 0).left)


class FarTest(unittest.TestCase):
    """The fraction of the devices of a guest that are far."""

    def find_far(self, affinity, *gpus, count=1, cell=0):
        demand = tiny.guest(4, requests=(
            tiny.request(count=count, affinity=affinity),))
        return rate([], demand, tiny.host(0, 0, pools=tiny.gpus(*gpus)),
                    cell).far

    def test_devices_on_other_cells_are_far(self):
        for affinity in 'preferred', 'socket':
            self.assertEqual(0.0, self.find_far(affinity, 2, 0))
            self.assertEqual(1.0, self.find_far(affinity, 0, 2))
        self.assertEqual(0.5, self.find_far('preferred', 1, 1, count=2))

    def test_none_of_no_devices_is_far(self):
        self.assertEqual(0.0, self.find_far('preferred', 2, 0, count=0))

    def test_required_devices_are_never_far(self):
        self.assertEqual(0.0, self.find_far('required', 2, 0))

    def test_nothing_is_far_of_a_guest_without_devices(self):
        rated = rate([], tiny.guest(4), tiny.host(0))
        self.assertEqual((0.0, 0), (rated.far, rated.broken_sets))

    def test_devices_that_placement_has_allocated_count(self):
        pools = [pool._replace(provider=f'gpu {pool.cell}')
                 for pool in tiny.gpus(1, 1)]
        supply = tiny.host(0, 0, pools=tuple(pools))
        demand = tiny.guest(4, requests=(tiny.request(affinity='preferred'),))
        for provider, far in (('gpu 0', 0.0), ('gpu 1', 1.0)):
            allocated = ((provider,),)
            placed = demands.CellAssignment((0,), (tiny.HUGE_KIB,))
            for found in (
                    rating.rate(room.RoomCounter([]), demand, supply, 0,
                                placed, allocated),
                    rating.rate(room.RoomCounter([]), demand, supply, 0,
                                dataclasses.replace(placed,
                                                    providers=allocated))):
                self.assertEqual(far, found.far)

    def test_a_far_device_costs_a_multiple_of_the_least_loss(self):
        losses, far = (0.5, 0.25), (0.0, 1.0)
        self.assertEqual([0.5, 0.25],
                         rating.add_far_devices(losses, far, 0.0))
        self.assertEqual([0.5, 0.75],
                         rating.add_far_devices(losses, far, 2.0))
        self.assertEqual([0.0, 1.0], rating.add_far_devices(
            losses, far, rating.NEAR_FIRST))
        self.assertEqual([], rating.add_far_devices((), (), 2.0))


class BrokenSetsTest(unittest.TestCase):
    def test_the_sets_that_a_guest_breaks_are_rated(self):
        pools = tuple(
            pool._replace(provider=f'gpu {number}', tags={
                **pool.tags, device_sets.TAG: f'pair:0:2,single:{number}:1'})
            for number, pool in enumerate(tiny.gpus(1) * 2))
        demand = tiny.guest(4, requests=(tiny.request(),))
        supply = tiny.host(0, pools=pools)
        placed = claim.predict(demand, supply)
        rated = rating.rate(room.RoomCounter([]), demand, supply, 0, placed,
                            (('gpu 0',),))
        self.assertEqual(2 ** 2 + 1, rated.broken_sets)


class RankTest(unittest.TestCase):
    def test_the_best_is_half_of_the_range_ahead(self):
        self.assertEqual([1 / 3, 1.0, 1 / 2], rating.rank(
            [(0.9, 4), (0.1, 4), (0.1 + 1e-8, 4)]))

    def test_equal_hosts_have_equal_weights(self):
        self.assertEqual([1.0, 1 / 2, 1.0], rating.rank(
            [(0.1, 4), (0.1, 9), (0.1, 4)]))


class DescribeTest(unittest.TestCase):
    def test_what_a_guest_takes_is_a_share_of_the_room(self):
        rated = rating.Rating((2.0,), (1.0,), 0.5, 4, (16.0, 65536))
        self.assertEqual(
            'it takes 96 % of the room for what is requested, 50 % of its '
            'devices are far, it breaks whole sets of devices, 16 CPUs and '
            '65536 MiB are free', rating.describe(math.log(25), rated))

    def test_what_is_nothing_is_not_mentioned(self):
        rated = rating.Rating((2.0,), (0.0,), 0.0, 0, (16.0, 65536))
        self.assertEqual(
            'it takes 0 % of the room for what is requested, 16 CPUs and '
            '65536 MiB are free', rating.describe(0.0, rated))
