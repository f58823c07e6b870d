# SPDX-License-Identifier: Apache-2.0

import itertools
import unittest

import testtools

from hpcvirt import exception
from hpcvirt.model import shape
from hpcvirt.specs import codec

NAMES = ('sockets', 'cores', 'threads')


def read(vcpus, **parts):
    return codec.read_topology(
        vcpus, {f'hw:cpu_{name}': str(part) for name, part in parts.items()})


class ReadTest(unittest.TestCase):
    def test_a_flavor_that_sets_nothing(self):
        self.assertIsNone(read(8))

    def test_the_requested_topology_if_it_matches_the_vcpus(self):
        for parts in itertools.product((1, 2, 4), repeat=3):
            vcpus = parts[0] * parts[1] * parts[2]
            self.assertEqual(
                shape.GuestTopology(*parts),
                read(vcpus, **dict(zip(NAMES, parts, strict=True))))

    def test_limits_that_allow_no_arrangement(self):
        with self.assertRaisesRegex(exception.InvalidInput,
                                    'hw:cpu_max_sockets.*7 vCPUs'):
            read(7, max_sockets=2, max_cores=2, max_threads=2)

    def test_values_that_are_not_integers(self):
        with self.assertRaisesRegex(exception.InvalidInput, 'hw:cpu_cores'):
            read(8, cores='many')


class WriteTest(unittest.TestCase):
    def test_a_topology_must_have_the_vcpus(self):
        self.assertEqual(
            {'hw:cpu_sockets': '2', 'hw:cpu_cores': '3',
             'hw:cpu_threads': '1'},
            codec.write_topology(shape.GuestTopology(2, 3, 1), 6))
        for parts, vcpus in (((2, 3, 1), 7), ((0, 1, 1), 0)):
            with self.assertRaises(exception.InvalidInput):
                codec.write_topology(shape.GuestTopology(*parts), vcpus)


class LimitsTest(testtools.TestCase):
    def test_a_limit_may_be_reached(self):
        self.assertEqual(shape.GuestTopology(1, 2, 2), read(
            4, max_sockets=1, max_cores=2, max_threads=2))

    def test_sockets_and_cores_come_before_threads(self):
        self.assertEqual(shape.GuestTopology(2, 4, 1),
                         read(8, max_sockets=2, max_threads=2))
        self.assertEqual(shape.GuestTopology(1, 8, 1),
                         read(8, max_sockets=1, max_threads=2))

    def test_a_wish_beyond_a_limit_counts_for_nothing(self):
        self.assertEqual(shape.GuestTopology(2, 4, 1),
                         read(8, sockets=4, cores=2, max_sockets=2))
