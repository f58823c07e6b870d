# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

import itertools
import unittest

from hpcvirt import exception
from hpcvirt.model import shape
from hpcvirt.specs import guest_topology

NAMES = ('sockets', 'cores', 'threads')


def read(vcpus, **parts):
    return guest_topology.read(
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

    def test_the_rest_is_sockets_first_and_threads_last(self):
        # The order of preference of Nova's get_best_cpu_topology.
        self.assertEqual(shape.GuestTopology(4, 1, 2), read(8, threads=2))
        self.assertEqual(shape.GuestTopology(2, 4, 1), read(8, cores=4))
        self.assertEqual(shape.GuestTopology(2, 4, 1), read(8, max_sockets=2))

    def test_requests_above_a_limit_are_ignored(self):
        self.assertEqual(shape.GuestTopology(4, 2, 1),
                         read(8, sockets=8, max_sockets=4))

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
            guest_topology.write(shape.GuestTopology(2, 3, 1), 6))
        for parts, vcpus in (((2, 3, 1), 7), ((0, 1, 1), 0)):
            with self.assertRaises(exception.InvalidInput):
                guest_topology.write(shape.GuestTopology(*parts), vcpus)
