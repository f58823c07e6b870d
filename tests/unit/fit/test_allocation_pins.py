# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.fit import allocation
from hpcvirt.model import shape
from tests.builders import tiny

REQUIRE = shape.ThreadPolicy.REQUIRE
ISOLATE = shape.ThreadPolicy.ISOLATE


class ChooseTest(unittest.TestCase):
    """The CPUs to which Nova pins a guest."""

    def choose(self, guest, host):
        chosen = allocation.choose_pins(guest, host)
        return chosen.cpus, set(chosen.emulator), set(chosen.idle)

    def test_siblings_are_filled_core_by_core(self):
        host = tiny.host_cell(threads=2, free=frozenset({1, 2, 3, 6, 7}))
        self.assertEqual(((2, 3, 6, 7), set(), set()),
                         self.choose(tiny.guest_cell(4), host))

    def test_single_threads_are_used_if_siblings_are_too_few(self):
        host = tiny.host_cell(threads=2, free=frozenset({1, 2, 3, 6, 7}))
        self.assertEqual(((1, 2, 3, 6, 7), set(), set()),
                         self.choose(tiny.guest_cell(5), host))

    def test_one_thread_of_each_core_if_that_is_enough(self):
        host = tiny.host_cell(threads=2, free=frozenset({1, 2, 3, 5}))
        self.assertEqual(((1, 2, 5), set(), set()),
                         self.choose(tiny.guest_cell(3), host))

    def test_part_of_a_wide_core_is_used_before_a_narrow_core(self):
        host = tiny.host_cell(threads=4, free=frozenset({0, 1, 2, 4, 5}))
        self.assertEqual(
            ((0, 1, 4, 5), set(), set()),
            self.choose(tiny.guest_cell(4, threads=REQUIRE), host))

    def test_emulator_threads_get_the_first_cpu_left(self):
        host = tiny.host_cell(threads=2, free=frozenset({1, 2, 3}))
        self.assertEqual(
            ((2, 3), {1}, set()),
            self.choose(tiny.guest_cell(2, emulator_pcpus=1), host))

    def test_isolate_keeps_siblings_idle(self):
        host = tiny.host_cell(threads=2, taken=2, shared=frozenset(range(8)))
        self.assertEqual(
            ((2, 4), {6}, {3, 5, 7}),
            self.choose(tiny.guest_cell(2, threads=ISOLATE,
                                        emulator_pcpus=1), host))
        self.assertEqual(
            {2, 3, 4, 5}, allocation.choose_pins(tiny.guest_cell(
                2, threads=ISOLATE), host).taken)

    def test_shared_vcpus_are_not_pinned(self):
        guest = tiny.guest_cell(0, vcpus=2, policy=shape.CPUPolicy.SHARED)
        self.assertEqual(((), set(), set()),
                         self.choose(guest, tiny.host_cell()))
