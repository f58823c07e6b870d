# SPDX-License-Identifier: Apache-2.0

"""Allocations of like devices, which have one answer."""

import dataclasses
import itertools
import random
import time
import unittest

from hpcvirt.fit import cell_search
from hpcvirt.fit import claim
from hpcvirt.fit import devices
from hpcvirt.fit import move_check
from hpcvirt.fit import reasons
from hpcvirt.model import shape
from tests.builders import tiny

USUAL, PERIODIC = 60, 3000
POLICIES = ('required', 'legacy', 'preferred', 'socket')


def single(*cells, **tags):
    """A device of its own provider on each of these cells."""
    return [devices.pool(cell, 1, 'gpu')._replace(
        provider=f'provider {number}',
        tags={'alias gpu': True, 'address': f'{number:02x}:00.0', **tags})
        for number, cell in enumerate(cells)]


def kinds(pools, requests, allocations):
    alike = devices.AlikeDevices(requests, pools)
    return {alike.kind(each) for each in allocations}


def all_of(pools, count):
    """All allocations of this number of single devices to one request."""
    return [(chosen,) for chosen in itertools.combinations(
        [pool.provider for pool in pools], count)]


class KindTest(unittest.TestCase):
    def test_devices_of_a_cell_are_alike(self):
        pools = single(0, 0, 1, 1)
        self.assertEqual(3, len(kinds(pools, (tiny.request(count=2),),
                                      all_of(pools, 2))))

    def test_other_guests_may_name_their_tags(self):
        pools = single(0, 0)
        pools[0].tags['product_id'] = '1515'
        requests = (tiny.request(),)
        for by_tags, count in ((False, 1), (True, 2)):
            alike = devices.AlikeDevices(requests, pools, by_tags=by_tags)
            self.assertEqual(count, len({
                alike.kind(each) for each in all_of(pools, 1)}))
        self.assertEqual(1, len(kinds(pools, requests, all_of(pools, 1))))

    def test_devices_with_other_room_are_not(self):
        pools = single(0, 0, 0)
        pools[0] = pools[0]._replace(free=2)
        self.assertEqual(2, len(kinds(pools, (tiny.request(),),
                                      all_of(pools, 1))))

    def test_devices_of_other_requests_are_not(self):
        pools = single(0, 0, 0)
        pools[0].tags['alias disk'] = True
        self.assertEqual(2, len(kinds(
            pools, (tiny.request(), tiny.request('disk')),
            [(*each, ()) for each in all_of(pools[:2], 1)])))

    def test_functions_of_one_card_are_not_those_of_two(self):
        pools = [pool._replace(free=4) for pool in single(0, 0)]
        first, second = (pool.provider for pool in pools)
        self.assertEqual(2, len(kinds(
            pools, (tiny.request(), tiny.request()),
            [((first,), (first,)), ((first,), (second,)),
             ((second,), (second,)), ((second,), (first,))])))

    def test_order_matters_to_a_request_without_an_allocation(self):
        pools = single(0, 0)
        self.assertEqual(2, len(kinds(
            pools, (tiny.request(), tiny.request()),
            [((pool.provider,), ()) for pool in pools])))

    def test_a_card_and_its_functions_are_like_no_others(self):
        pools = single(0, 0, 0)
        pools[1].tags['address'] = pools[0].tags['address']
        self.assertEqual(3, len(kinds(pools, (tiny.request(),),
                                      all_of(pools, 1))))


class AnswerTest(unittest.TestCase):
    """Answers that are remembered are those to each question alone."""

    def test_six_allocations_of_four_devices_have_three_answers(self):
        pools = single(0, 0, 1, 1)
        guest = tiny.guest(4, 4, requests=(tiny.request(count=2),))
        host = tiny.host(0, 0, pools=tuple(pools))
        together = claim.Claim(guest, host)
        moves = move_check.MoveCheck(move_check.MoveClaim(
            guest, guest, reasons.Defect.LOST_AFFINITY), host)
        for providers in all_of(pools, 2):
            self.assertIsNone(together.check(providers))
            self.assertIsNone(moves.check(providers, providers))
        self.assertEqual(3, len(together._answers))
        self.assertEqual(3, len(moves._answers))

    def test_random_allocations(self):
        self.compare(USUAL, 'usual')

    def test_periodic_random_allocations(self):
        self.compare(PERIODIC, 'periodic')

    def compare(self, count, name):
        """Ask about all allocations of random guests on random hosts.

        :param name: of this series of random numbers
        """
        dice = random.Random(f'alike {name}')
        asked = answers = fits = 0
        for number in range(count):
            host = self.a_host(dice)
            guest = self.a_guest(dice)
            together = claim.Claim(guest, host)
            moved = self.a_move(dice, guest)
            moves = move_check.MoveCheck(moved, host)
            with self.subTest(number=number, guest=guest, host=host):
                for providers in self.allocations(dice, guest, host):
                    alone = claim.predict(guest, host, providers)
                    self.assertEqual(alone, together.predict(providers))
                    kept = dice.choice(((), providers))
                    self.assertEqual(
                        move_check.check(moved, host, providers, kept),
                        moves.check(providers, kept))
                    asked += 1
                    fits += not isinstance(alone, reasons.Misfit)
            answers += len(together._answers)
        self.assertGreater(fits, asked // 20)
        self.assertGreater(asked - fits, asked // 20)
        self.assertLess(answers, asked * 0.8)

    @staticmethod
    def a_host(dice):
        cells = dice.randint(1, 5)
        pools = single(*(dice.choice((None, *range(cells), *range(cells)))
                         for _ in range(dice.randint(2, 7))))
        for number, pool in enumerate(pools):
            if dice.random() < 0.3:
                pool.tags['alias disk'] = True
            kind, address = dice.choice((
                ('type-PCI', pool.tags['address']),
                ('type-PCI', pool.tags['address']),
                ('type-VF', 'card'), ('type-PF', 'card')))
            pool.tags.update(dev_type=kind, address=address)
            pools[number] = pool._replace(
                free=dice.choice((1, 1, 1, 2, 3)),
                provider=dice.choice((pool.provider, pool.provider,
                                      pool.provider, None)))
        return tiny.host(*(dice.choice((0, 0, 4, 8)) for _ in range(cells)),
                         pools=tuple(pools))

    @staticmethod
    def a_guest(dice):
        requests = [dataclasses.replace(
            tiny.request(dice.choice(('gpu', 'gpu', 'disk')),
                         dice.choice((1, 1, 2, 3)), dice.choice(POLICIES)),
            name=f'request {number}') for number in range(dice.randint(1, 3))]
        kind = dice.choice(({}, {}, {'dev_type': 'type-pf'}))
        requests[0] = dataclasses.replace(requests[0], specs=tuple(
            {**spec, **kind} for spec in requests[0].specs))
        cells = [dice.randint(1, 8) for _ in range(dice.randint(0, 3))]
        if dice.random() < 0.5:
            cells = cells[:1] * len(cells)
        return tiny.guest(*cells, requests=tuple(requests))

    @staticmethod
    def a_move(dice, guest):
        affinity = shape.PCIAffinity(dice.choice(POLICIES))
        return move_check.MoveClaim(
            guest, dataclasses.replace(guest, requests=tuple(
                dataclasses.replace(request, affinity=affinity)
                for request in guest.requests)),
            reasons.Defect.LOST_AFFINITY, limited=dice.random() < 0.8)

    @staticmethod
    def allocations(dice, guest, host):
        """Allocations of Placement; some requests have none."""
        usable = [[pool.provider for pool in host.pools for _ in range(
            pool.free) if pool.provider and devices.serves(pool, request)]
            for request in guest.requests]
        has = [len(own) >= request.count and dice.random() < 0.8
               for own, request in zip(usable, guest.requests, strict=True)]
        return [tuple(
            tuple(sorted(dice.sample(own, request.count))) if allocated else ()
            for own, request, allocated in zip(
                usable, guest.requests, has, strict=True))
                for _ in range(12)]


class EffortTest(unittest.TestCase):
    """The time for a host does not depend on how much Placement offers."""

    def setUp(self):
        super().setUp()
        self.pools = single(*(number // 2 for number in range(16)))
        self.host = tiny.host(*[1] * 8, pools=tuple(self.pools))
        # The search and the claim take thousands of steps for each.
        self.guest = tiny.guest(*range(7, 0, -1),
                                requests=(tiny.request(count=6),))

    def test_a_thousand_allocations_take_little_longer_than_one(self):
        offered = all_of(self.pools, 6)[::8]
        self.assertGreater(len(offered), 1000)
        check = claim.Claim(self.guest, self.host).check
        before = time.process_time()
        passed = sum(check(each) is None for each in offered)
        # Each by itself took 10 ms.
        self.assertLess(time.process_time() - before, 3)
        self.assertGreater(passed, 0)

    def test_all_allocations_share_one_limit(self):
        pools = single(*range(16))
        guest = dataclasses.replace(self.guest, requests=(
            tiny.request(count=6, affinity='preferred'),))
        effort = cell_search.Effort()
        check = claim.Claim(guest, tiny.host(*[1] * 16, pools=tuple(pools)),
                            effort).check
        offered = all_of(pools, 6)
        # A single one is decided with little effort.
        self.assertIsNone(check(offered[0]))
        self.assertFalse(effort.spent)
        before = time.process_time()
        found = {misfit.code for misfit in map(check, offered[:1000])
                 if misfit}
        self.assertLess(time.process_time() - before, 3)
        self.assertTrue(effort.spent)
        self.assertIn(reasons.Code.UNDECIDED, found)
