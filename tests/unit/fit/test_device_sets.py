# SPDX-License-Identifier: Apache-2.0

"""Sets of devices, compared with brute force."""

import random
import unittest

from hpcvirt.fit import device_sets
from hpcvirt.fit import devices
from tests.builders import pool_sets

Set = pool_sets.Set
OCTET = pool_sets.OCTET
pools = pool_sets.pools
a_host = pool_sets.a_host
lawful = pool_sets.lawful
broken = pool_sets.broken


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


    def test_a_tag_that_is_too_long_is_not_read(self):
        known = device_sets.parse.cache_info().currsize
        for text in ('g' * 2000, 'gpu2:0:2,' * 6000,
                     ','.join(f'g:{number}:2' for number in range(65)),
                     ' ' * 2000 + 'gpu2:0:2'):
            with (self.subTest(text[:20]),
                  self.assertRaisesRegex(ValueError, 'at most')):
                device_sets.parse(text)
        self.assertEqual(known, device_sets.parse.cache_info().currsize)
        self.assertEqual(64, len(device_sets.parse(','.join(
            f'g:{number}:2' for number in range(64)))))


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
