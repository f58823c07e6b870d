# SPDX-License-Identifier: Apache-2.0

"""What nova-compute takes after its claim."""

import unittest

from hpcvirt.fit import devices
from hpcvirt.fit import reasons
from tests.builders import pci

pool = pci.pool
request = pci.request
SOCKETS = pci.SOCKETS


class TakeTest(unittest.TestCase):
    def take(self, requests, pools, providers=()):
        allocator = devices.ClaimAllocator(requests, pools, SOCKETS,
                                           providers)
        taken = allocator.take({0})
        if isinstance(taken, list):
            self.assertIsNone(allocator.loss({0}))
            return taken
        # It is a loss for the claim as well.
        self.assertEqual(taken, allocator.loss({0}))
        return taken.details

    def test_devices_of_distant_providers_are_missing(self):
        self.assertEqual(
            {'request': '', 'free': 2, 'needed': 3,
             'defect': reasons.Defect.FEWER_DEVICES},
            self.take([request(3, affinity='legacy')],
                      [pool(0, 3, 'x'), pool(1, 3, 'y')], [['x', 'y', 'x']]))

    def test_a_distant_provider_of_two_is_missing_as_well(self):
        self.assertEqual(
            {'request': '', 'free': 1, 'needed': 2,
             'defect': reasons.Defect.FEWER_DEVICES},
            self.take([request(2, affinity='legacy')],
                      [pool(0, 2, 'x'), pool(1, 2, 'y')], [['x', 'y']]))

    def test_each_device_of_a_provider_is_counted(self):
        self.assertEqual([2, 1], self.take(
            [request(3)], [pool(0, 3, 'x'), pool(0, 3, 'y')],
            [['x', 'y', 'x']]))

    def test_devices_without_an_address_belong_to_no_card(self):
        self.assertEqual([1, 1], self.take(
            [request(kind='pf', dev_type='type-pf'), request(kind='vf')],
            [pool(0, 1, kind='pf', dev_type='type-PF'),
             pool(0, 4, kind='vf', dev_type='type-VF')]))

    def test_a_vdpa_device_is_one_of_its_card(self):
        self.assertEqual(
            {'request': '', 'free': 0, 'needed': 1,
             'defect': reasons.Defect.DEPENDENT_DEVICES},
            self.take([request(dev_type='vdpa'),
                       request(kind='pf', dev_type='type-pf')],
                      [pool(0, 1, kind='pf', dev_type='type-PF', address='a'),
                       pool(0, 4, dev_type='vdpa', address='a')]))

    def test_a_card_that_is_taken_has_no_functions_left(self):
        self.assertEqual(
            {'request': '', 'free': 0, 'needed': 1,
             'defect': reasons.Defect.DEPENDENT_DEVICES},
            self.take([request(kind='pf', dev_type='type-pf'),
                       request(dev_type='type-vf')],
                      [pool(0, 1, kind='pf', dev_type='type-PF', address='a'),
                       pool(0, 4, dev_type='type-VF', address='a')]))

    def test_a_provider_that_an_earlier_request_has_emptied_is_missing(self):
        self.assertEqual(
            {'request': '', 'free': 1, 'needed': 3,
             'defect': reasons.Defect.FEWER_DEVICES},
            self.take([request(2), request(3)],
                      [pool(0, 3, 'x'), pool(0, 5, 'y')],
                      [[], ['x', 'x', 'y']]))

    def test_each_function_takes_its_card_once_more(self):
        self.assertEqual([2, 2], self.take(
            [request(2, dev_type='type-vf')],
            [pool(0, 1, dev_type='type-PF', address='a'),
             pool(0, 4, dev_type='type-VF', address='a')]))
