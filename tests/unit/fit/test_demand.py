# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.fit import demand as demands
from hpcvirt.model import shape
from tests.builders import tiny


def compiled(*cells, **fields):
    return demands.compile_shape(shape.Shape(
        tuple(shape.GuestCell(*cell) for cell in cells),
        **{'cpu_policy': shape.CPUPolicy.DEDICATED, **fields}))


class OfShapeTest(unittest.TestCase):
    """A Demand compiled from a Shape."""

    def test_equal_cells_are_uniform(self):
        self.assertTrue(compiled((4, 0, 512), (4, 0, 512)).uniform)
        self.assertFalse(compiled((4, 0, 512), (4, 0, 513)).uniform)

    def test_isolated_emulator_threads_belong_to_the_first_cell(self):
        guest = compiled((4, 0, 512), (4, 0, 512), emulator_threads=(
            shape.EmulatorThreads.ISOLATE))
        self.assertEqual([1, 0], [cell.emulator_pcpus for cell in guest.cells])
        self.assertFalse(guest.uniform)

    def test_shared_guests_isolate_nothing(self):
        guest = compiled((0, 4, 512), cpu_policy=shape.CPUPolicy.SHARED,
                         emulator_threads=shape.EmulatorThreads.ISOLATE)
        self.assertEqual(0, guest.cells[0].emulator_pcpus)

    def test_page_sizes_by_class_are_recognized(self):
        self.assertTrue(compiled(
            (4, 0, 512, shape.PageClass.LARGE)).pages_by_class)
        for size in (None, 4, 2048):
            self.assertFalse(compiled((4, 0, 512, size)).pages_by_class)

    def test_a_guest_with_conditions_on_its_cells_is_selective(self):
        self.assertFalse(compiled((4, 0, 512)).selective)
        for fields in ({'devices': (shape.GuestDevices('gpu'),)},
                       {'numa_scope': shape.NUMAScope.SOCKET},
                       {'exclusive_cells': True}):
            self.assertTrue(compiled((4, 0, 512), **fields).selective)
        self.assertTrue(tiny.guest(4, physnets=frozenset({'a'})).selective)
        self.assertTrue(tiny.guest(4, tunneled=True).selective)

    def test_the_default_affinity_is_that_of_nova(self):
        guest = compiled((4, 0, 512), devices=(shape.GuestDevices('gpu'),))
        self.assertEqual(shape.PCIAffinity.LEGACY, guest.requests[0].affinity)

    def test_equal_cells_with_dedicated_cpus_are_immune_to_defects(self):
        isolate = shape.ThreadPolicy.ISOLATE
        for expected, fields in (
                (True, {}), (True, {'pcpus': 1}),
                (True, {'emulator_pcpus': 1}), (True, {'threads': isolate}),
                (False, {'emulator_pcpus': 1, 'threads': isolate}),
                (False, {'page_kib': shape.PageClass.SMALL}),
                (False, {'policy': shape.CPUPolicy.MIXED, 'pcpus': 0,
                         'vcpus': 2})):
            demand = demands.Demand((tiny.guest_cell(**fields),))
            self.assertEqual(expected, demand.immune, fields)
        self.assertFalse(tiny.guest(2, 1).immune)
