# SPDX-License-Identifier: Apache-2.0

"""Sets of devices, compared with brute force."""

import itertools
import random
import unittest

from hpcvirt.fit import allocation
from hpcvirt.fit import cell_assignment
from hpcvirt.fit import claim
from hpcvirt.fit import demand as demands
from hpcvirt.fit import device_sets
from hpcvirt.fit import devices
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies

Set = device_sets.DeviceSet

#: A host is a list of pools: the free devices of each, and its sets.
OCTET = [(1, {('gpu8', 0), ('gpu4', i // 4), ('gpu2', i // 2)})
         for i in range(8)]
SIZES = {'gpu2': 2, 'gpu4': 4, 'gpu8': 8}


def pools(host, aliases=None):
    """The pools of a host whose devices serve an alias each, or all."""
    counts = {}
    for _, sets in host:
        for each in sets:
            counts[each] = counts.get(each, 0) + 1
    return tuple(
        devices.Pool(0, free, {
            devices.alias_tag(aliases[i] if aliases else 'gpu'): True,
            device_sets.TAG: device_sets.render(
                Set(*each, counts[each]) for each in sets)}, f'p{i}')
        for i, (free, sets) in enumerate(host))


def request(alias='gpu', count=1):
    return devices.DeviceRequest(({devices.alias_tag(alias): True},), count,
                                 name=alias)


def a_host(rng):
    """A host of up to six pools, with sets that may overlap."""
    names = [(kind, number) for kind in 'ab' for number in range(3)]
    return [(rng.choice((0, 1, 1, 2)),
             {name for name in names if rng.random() < 0.4})
            for _ in range(rng.randrange(1, 7))]


def lawful(host, kind, indices):
    """Whether one set of a kind has all of these devices, one by one."""
    taken = {i: indices.count(i) for i in indices}
    return bool(indices) and all(
        count <= host[i][0] for i, count in taken.items()) and any(
        all(each in host[i][1] for i in indices)
        for each in {(kind, number) for number in range(3)})


def broken(host, indices):
    """The whole sets that lose a pool, by their squares."""
    cost = 0
    for each in set().union(*(sets for _, sets in host)):
        members = [i for i, (_, sets) in enumerate(host) if each in sets]
        if all(host[i][0] for i in members) and any(
                host[i][0] == indices.count(i) for i in members):
            cost += len(members) ** 2
    return cost


class TagTest(unittest.TestCase):
    def test_what_is_written_is_read(self):
        found = {Set('gpu2', 0, 2), Set('nv-link', 12, 4), Set('GPU_2', 1, 1)}
        text = device_sets.render(found)
        self.assertEqual('GPU_2:1:1,gpu2:0:2,nv-link:12:4', text)
        self.assertEqual(found, device_sets.parse(text))
        self.assertEqual(found, device_sets.parse(text.replace(',', ' , ')))
        self.assertEqual(frozenset(), device_sets.parse(' '))

    def test_a_malformed_tag_is_quoted(self):
        for text in ('gpu2', 'gpu2:0', 'gpu2:0:0', 'gpu2:a:2', ':0:2', ',',
                     'gpu2:0:2,', 'g u:0:2', 'gpu2:-1:2', 'gpu2:0:2:3'):
            with (self.subTest(text),
                  self.assertRaisesRegex(ValueError, device_sets.TAG)):
                device_sets.parse(text)


def joined(names, offer):
    """Join the devices that an offer gives requests of the same name."""
    return tuple(sorted((name, device) for name, part
                        in zip(names, offer, strict=True) for device in part))


class HostSetsTest(unittest.TestCase):
    def test_legal_and_cost_are_those_of_brute_force(self):
        rng = random.Random('device sets')
        legal = illegal = 0
        for _ in range(400):
            host = a_host(rng)
            found = device_sets.HostSets(pools(host))
            for count in (1, 2, 3):
                indices = [rng.randrange(len(host)) for _ in range(count)]
                providers = [[f'p{i}'] for i in indices]
                if all(indices.count(i) <= host[i][0] for i in indices):
                    self.assertEqual(broken(host, indices),
                                     found.cost(providers), (host, indices))
                    expected = lawful(host, 'a', indices)
                    self.assertEqual(
                        expected, found.is_legal('a', [(), *providers]),
                        (host, indices))
                    legal += expected
                    illegal += not expected
        self.assertGreater(min(legal, illegal), 100)

    def test_offers_are_those_of_brute_force(self):
        rng = random.Random('offers')
        total = 0
        for _ in range(300):
            host = a_host(rng)
            aliases = [rng.choice('xy') for _ in host]
            requests = [request(alias, rng.choice((1, 1, 2)))
                        for alias in rng.choice(('x', 'xx', 'xy'))]
            found = device_sets.HostSets(pools(host, aliases)).offers(
                'a', requests)
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
            found = device_sets.HostSets(many).offers(kind, wanted)
            self.assertEqual(device_sets.MAX_OFFERS, len(found))

    def test_a_single_device_comes_from_the_most_broken_set(self):
        host = list(OCTET)
        for taken in (0, 2, 3):
            host[taken] = (0, host[taken][1])
        found = device_sets.HostSets(pools(host))
        costs = {i: found.cost([[f'p{i}']]) for i in (1, 4, 5, 6, 7)}
        self.assertEqual({1: 0, 4: 20, 5: 20, 6: 20, 7: 20}, costs)

    def test_a_card_breaks_a_set_with_its_last_function(self):
        host = [(1, {('near', 0)}), (2, {('near', 0)})]
        found = device_sets.HostSets(pools(host))
        self.assertEqual(0, found.cost([['p1']]))
        self.assertEqual(4, found.cost([['p1', 'p1']]))

    def test_devices_without_a_set_or_a_provider_are_no_set(self):
        found = device_sets.HostSets((
            devices.Pool(0, 1, {}, 'p0'),
            devices.Pool(0, 1, {device_sets.TAG: 'gpu:0:1'})))
        self.assertFalse(found.known)
        for providers in ((), ((),), (('p0',),), (('strange',),)):
            self.assertFalse(found.is_legal('gpu', providers))
            self.assertEqual(0, found.cost(providers))


class ExplainTest(unittest.TestCase):
    def test_a_refusal_names_the_devices_in_use(self):
        left = pools([(i not in (0, 1, 6), sets)
                      for i, (_, sets) in enumerate(OCTET)])
        refused = claim.predict_new(demands.Demand(
            (), (request(count=4),), device_set='gpu4'),
            supplies.Supply((), left))
        self.assertEqual(
            'no set gpu4 of PCI devices is free: '
            'set 1 has 3 of its 4 devices free (in use: p6); '
            'set 0 has 2 of its 4 devices free (in use: p0, p1)',
            refused.message)
        self.assertEqual(reasons.Code.BROKEN_DEVICE_SET, refused.root)


class OfferTest(unittest.TestCase):
    def offers(self, host, *requests, kind=None):
        return device_sets.offers(demands.Demand(
            (), requests, device_set=kind), pools(host))

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
            placed = claim.predict_new(demand, supply)
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
        placed = claim.predict_new(demands.Demand((), device_set='gpu2'),
                               supplies.Supply(()))
        self.assertEqual(cell_assignment.CellAssignment(()), placed)
