# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.model import shape


class ShapeTest(unittest.TestCase):
    def test_cpus_and_memory_are_those_of_all_cells(self) -> None:
        threads = shape.EmulatorThreads
        for emulator, cells, numbers in (
                (None, ((4, 1), (2, 0)), (7, 6, 1024)),
                # Isolated emulator threads need one PCPU for the guest.
                (threads.ISOLATE, ((4, 1), (2, 0)), (7, 7, 1024)),
                (threads.SHARE, ((4, 0),), (4, 4, 512)),
                # Without dedicated vCPUs they isolate nothing.
                (threads.ISOLATE, ((0, 4),), (4, 0, 512))):
            guest = shape.Shape(
                tuple(shape.GuestCell(*cpus, 512) for cpus in cells),
                shape.CPUPolicy.MIXED, emulator_threads=emulator)
            self.assertEqual(
                numbers, (guest.cpus, guest.pcpus, guest.memory_mib))
