# SPDX-License-Identifier: Apache-2.0

"""The sockets, cores and threads that a guest sees."""

import testtools

from hpcvirt.model import shape
from hpcvirt.specs import guest_topology


def read(vcpus, **parts):
    return guest_topology.read(
        vcpus, {f'hw:cpu_{name}': str(part) for name, part in parts.items()})


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
