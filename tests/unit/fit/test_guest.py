# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from hpcvirt.fit import guest as guests
from hpcvirt.model import shape as shapes
from tests.builders import used_hosts


class ResourcesTest(unittest.TestCase):
    def test_sums(self):
        one = guests.Resources(4, 1, 1000, 7)
        other = guests.Resources(1, 0, 300, 2)
        self.assertEqual((3, 1, 700, 5), one.minus(other))
        self.assertEqual((5, 1, 1300, 9), one.plus(other))

    def test_how_often_amounts_contain_others(self):
        one = guests.Resources(4, 1, 1000, 7)
        for other, expected in (
                ((1, 0, 300, 0), 3), ((1, 0, 0, 0), 4), ((5, 0, 0, 0), 0),
                ((0, 0, 0, 0), 0)):
            self.assertEqual(expected, one.times(guests.Resources(*other)))
        self.assertEqual(0, guests.Resources(-3, 0, 9).times(
            guests.Resources(1, 0, 1)))


class CompileShapeTest(unittest.TestCase):
    def test_a_mixed_guest_with_isolated_emulator_threads(self):
        cells = (shapes.GuestCell(3, 1, 512, 2048),
                 shapes.GuestCell(4, 0, 256, 4))
        guest = guests.compile_shape(shapes.Shape(
            cells, shapes.CPUPolicy.MIXED,
            emulator_threads=shapes.EmulatorThreads.ISOLATE), 8, 768)
        self.assertEqual((8, 1, 768, 0), guest.sums)
        self.assertEqual({2048: 512, 4: 256}, guest.pages_mib)

    def test_a_guest_without_cells_has_the_vcpus_of_its_flavor(self):
        guest = guests.compile_shape(shapes.Shape(()), 6, 100)
        self.assertEqual((0, 6, 100, 0), guest.sums)

    def test_page_classes_name_no_size(self):
        guest = used_hosts.equal_cells(1, 2, 64, shapes.PageClass.LARGE)
        self.assertEqual({}, guest.pages_mib)


class GuestTest(unittest.TestCase):
    def test_a_guest_without_cells_has_the_vcpus_of_its_sums(self):
        guest = guests.compile_shape(shapes.Shape(()), 6, 100)
        self.assertEqual(6, guest.cpus)
        pinned = dataclasses.replace(guest, sums=guests.Resources(4, 2, 100))
        self.assertEqual(6, pinned.cpus)
