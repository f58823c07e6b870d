# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt import exception
from hpcvirt.specs import policies


class ReadListTest(unittest.TestCase):
    def test_lists_of_vcpus(self):
        for text, expected in (
                ('', set()), (' , ,', set()), ('3', {3}), ('0-2', {0, 1, 2}),
                ('0-5,^2', {0, 1, 3, 4, 5}), ('^2,0-5', {0, 1, 3, 4, 5}),
                ('0-5,^1-3', {0, 4, 5}), ('4,1,4', {1, 4}),
                (' 1 - 2 , 4', {1, 2, 4})):
            with self.subTest(text=text):
                self.assertEqual(expected, policies.read_list(text, 'key'))

    def test_anything_else_is_refused_and_named(self):
        for text in ('a', '1-', '-1', '3-1', '1;2', '^', '0-2-4', '1.5'):
            with self.subTest(text=text), self.assertRaises(
                    exception.InvalidInput) as caught:
                policies.read_list(text, 'hw:numa_cpus.1')
            self.assertEqual('hw:numa_cpus.1', caught.exception.where)


class ReadTest(unittest.TestCase):
    def test_a_mask_that_starts_with_an_exclusion_means_the_others(self):
        self.assertEqual({2, 3}, policies.read_mask('^0-1', 4, 'mask'))
        self.assertEqual({1, 2}, policies.read_mask(' ^0,^3', 4, 'mask'))
        self.assertEqual({0, 3}, policies.read_mask('0,3', 4, 'mask'))

    def test_the_guest_must_have_every_vcpu_that_is_named(self):
        self.assertEqual({3}, policies.read_mask('3', 4, 'mask'))
        with self.assertRaisesRegex(exception.InvalidInput,
                                    'mask.*vCPU 4 of a guest with 4 vCPUs'):
            policies.read_mask('0-4', 4, 'mask')
