# SPDX-License-Identifier: Apache-2.0

"""The devices that a new guest is expected to get."""

import itertools
import random
import unittest

from hpcvirt.fit import allocation
from hpcvirt.fit import demand as demands
from hpcvirt.fit import device_sets
from hpcvirt.fit import devices
from hpcvirt.fit import new_guest
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from tests.builders import pool_sets

OCTET = pool_sets.OCTET
SIZES = pool_sets.SIZES
a_host = pool_sets.a_host
broken = pool_sets.broken
lawful = pool_sets.lawful
pools = pool_sets.pools
request = pool_sets.request


def joined(names, offer):
    """Join the devices that an offer gives requests of the same name."""
    return tuple(sorted((name, device) for name, part
                        in zip(names, offer, strict=True) for device in part))


class ExplainTest(unittest.TestCase):
    def test_a_refusal_names_the_devices_in_use(self):
        left = pools([(i not in (0, 1, 6), sets)
                      for i, (_, sets) in enumerate(OCTET)])
        refused = new_guest.predict(demands.Demand(
            (), (request(count=4),), device_set='gpu4'),
            supplies.Supply((), left))
        self.assertEqual(
            'no set gpu4 of PCI devices is free: '
            'set 1 has 3 of its 4 devices free (in use: p6); '
            'set 0 has 2 of its 4 devices free (in use: p0, p1)',
            refused.message)
        self.assertEqual(reasons.Code.BROKEN_DEVICE_SET, refused.root)

    def test_free_devices_that_are_no_set_are_not_called_missing(self):
        """A host with seven of eight GPUs has free devices, and no octet."""
        wanted = request('gpu8-0')
        left = tuple(pool._replace(tags={
            **pool.tags, devices.alias_tag(wanted.name): True,
            devices.OFFERED: devices.render_offered(['gpu4-0']),
            device_sets.TAG: 'gpu4:0:4'}) for pool in pools(OCTET[:7]))
        refused = new_guest.predict(demands.Demand(
            (), (wanted,), device_set='gpu8'), supplies.Supply((), left))
        self.assertEqual('no set gpu8 of PCI devices is free',
                         refused.message)

    def test_devices_that_placement_does_not_offer_are_not_taken(self):
        """The alias of another class is for the same product, and a trait."""
        wanted = request(count=1)
        tag = devices.alias_tag(wanted.name)
        for offered, fits in (([wanted.name], True), (['other'], False)):
            pool = devices.Pool(0, 2, {
                tag: True, devices.OFFERED: devices.render_offered(offered)},
                'p0')
            found = new_guest.predict(
                demands.Demand((), (wanted,)), supplies.Supply((), (pool,)))
            self.assertEqual(fits, not isinstance(found, reasons.Misfit))
        self.assertEqual(reasons.Code.DEVICES, found.code)
        self.assertEqual({'free': 0, 'needed': 1, 'request': wanted.name},
                         found.details)


class OfferTest(unittest.TestCase):
    def offers(self, host, *requests, kind=None):
        return new_guest.list_offers(demands.Demand(
            (), requests, device_set=kind), pools(host))

    def test_offers_are_those_of_brute_force(self):
        rng = random.Random('offers')
        total = 0
        for _ in range(300):
            host = a_host(rng)
            aliases = [rng.choice('xy') for _ in host]
            requests = [request(alias, rng.choice((1, 1, 2)))
                        for alias in rng.choice(('x', 'xx', 'xy'))]
            found = new_guest.list_offers(demands.Demand(
                (), requests, device_set='a'), pools(host, aliases))
            expected = set()
            for choice in itertools.product(*(
                    itertools.combinations_with_replacement(
                        [i for i, alias in enumerate(aliases)
                         if alias == each.name], each.count)
                    for each in requests)):
                if lawful(host, 'a', [i for part in choice for i in part]):
                    expected.add(tuple(tuple(f'p{i}' for i in part)
                                       for part in choice))
            self.assertEqual(len(found), len(set(found)))
            self.assertLessEqual(set(found), expected, (host, aliases))
            # Equal requests are interchangeable.
            names = [each.name for each in requests]
            self.assertEqual({joined(names, offer) for offer in expected},
                             {joined(names, offer) for offer in found},
                             (host, aliases))
            costs = [broken(host, [int(each[1:]) for part in offer
                                   for each in part]) for offer in found]
            self.assertEqual(sorted(costs), costs)
            total += len(found)
        self.assertGreater(total, 150)

    def test_requests_by_number_end_in_time(self):
        many = pools([(4, {('a', 0)})] * 16, 'x' * 8 + 'y' * 8)
        wanted = [request('x', 8), request('y', 8)]
        for kind in ('a', None):
            found = new_guest.list_offers(demands.Demand(
                (), wanted, device_set=kind), many)
            self.assertEqual(new_guest.MAX_OFFERS, len(found))

    def test_requests_that_the_same_pools_serve_are_interchangeable(self):
        self.assertEqual(1, len(self.offers(
            OCTET, *[request()] * 8, kind='gpu8')))
        self.assertEqual(4, len(self.offers(
            OCTET, request(), request(), kind='gpu2')))

    def test_a_guest_without_a_set_breaks_the_fewest(self):
        host = [(i not in (5, 6), sets) for i, (_, sets) in enumerate(OCTET)]
        self.assertEqual({(('p4',),), (('p7',),)},
                         set(self.offers(host, request())[:2]))

    def test_sets_do_not_matter_where_there_are_none(self):
        plain = [(1, set())] * 3
        self.assertEqual([()], self.offers(plain, request()))
        self.assertEqual([()], self.offers(OCTET))
        self.assertEqual([], self.offers(plain, request(), kind='gpu2'))

    def test_devices_of_ports_are_not_in_placement(self):
        port = devices.DeviceRequest(({'physical_network': 'a'},))
        self.assertEqual(((), ('p0', 'p1')), self.offers(
            OCTET, port, request(count=2), kind='gpu2')[0])


class ClaimTest(unittest.TestCase):
    """Guests without cells on a host of eight GPUs, one after another."""

    def fill(self, *sizes):
        supply = supplies.Supply((), pools(
            OCTET, [f'{i % 8}' for i in range(8)]))
        # A rank of a set of four or two is one of several aliases' devices.
        supply = supplies.Supply((), tuple(pool._replace(tags={
            **pool.tags, **{devices.alias_tag(f'{kind}-{i % size}'): True
                            for kind, size in SIZES.items()}})
            for i, pool in enumerate(supply.pools)))
        taken = []
        for size in sizes:
            kind = f'gpu{size}'
            demand = demands.Demand((), tuple(
                request(f'{kind}-{rank}') for rank in range(size)),
                device_set=kind)
            placed = new_guest.predict(demand, supply)
            if isinstance(placed, reasons.Misfit):
                taken.append(placed.code)
                continue
            taken.append(sorted(each for part in placed.providers
                                for each in part))
            supply = allocation.allocate(demand, supply, placed)
        return taken

    def test_sets_fill_the_host(self):
        found = self.fill(2, 4, 2, 2)
        self.assertEqual([2, 4, 2], [len(each) for each in found[:3]])
        self.assertEqual(8, len({each for part in found[:3]
                                 for each in part}))
        self.assertEqual(reasons.Code.NO_DEVICE_SET, found[3])

    def test_a_broken_set_is_taken_first(self):
        pair, other, quartet, last = self.fill(2, 2, 4, 8)
        self.assertEqual(4, len({*pair, *other}))
        self.assertTrue({*pair, *other}.isdisjoint(quartet))
        self.assertEqual(reasons.Code.NO_DEVICE_SET, last)

    def test_a_guest_without_devices_needs_no_set(self):
        placed = new_guest.predict(demands.Demand((), device_set='gpu2'),
                                   supplies.Supply(()))
        self.assertEqual(demands.CellAssignment(()), placed)
