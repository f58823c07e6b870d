# SPDX-License-Identifier: Apache-2.0

"""The sets of devices that hosts have free; other tests have the rest."""

import unittest

from hpcvirt.fleet import free_resources
from tests.unit.fit import test_device_sets


class CountSetsTest(unittest.TestCase):
    def test_sets_are_whole_broken_or_in_use(self):
        left = test_device_sets.pools([
            (number not in (0, 6, 7), sets) for number, (_, sets)
            in enumerate(test_device_sets.OCTET)])
        self.assertEqual(
            {'gpu2': (4, 2, 1), 'gpu4': (2, 0, 2), 'gpu8': (1, 0, 1)},
            free_resources.count_sets(left))

    def test_a_pool_that_is_not_reported_breaks_a_set(self):
        self.assertEqual((2, 1, 1), free_resources.count_sets(
            test_device_sets.pools(
                test_device_sets.OCTET)[1:])['gpu4'])

    def test_pools_without_provider_are_in_no_set(self):
        self.assertEqual({}, free_resources.count_sets(
            pool._replace(provider=None) for pool in test_device_sets.pools(
                test_device_sets.OCTET)))
