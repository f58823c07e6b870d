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

import unittest

from hpcvirt.model import shape


def guest(*cells: tuple[int, int],
          emulator: shape.EmulatorThreads | None = None) -> shape.Shape:
    return shape.Shape(
        tuple(shape.GuestCell(pcpus, vcpus, 512) for pcpus, vcpus in cells),
        shape.CPUPolicy.MIXED, emulator_threads=emulator)


class ShapeTest(unittest.TestCase):
    def test_cpus_and_memory_are_those_of_all_cells(self) -> None:
        both = guest((4, 1), (2, 0))
        self.assertEqual((7, 6, 1024), (both.cpus, both.pcpus,
                                        both.memory_mib))

    def test_isolated_emulator_threads_need_one_pcpu_for_the_guest(
            self) -> None:
        isolated = guest((4, 1), (2, 0),
                         emulator=shape.EmulatorThreads.ISOLATE)
        self.assertEqual((7, 7), (isolated.cpus, isolated.pcpus))

    def test_shared_emulator_threads_need_no_pcpu(self) -> None:
        self.assertEqual(4, guest(
            (4, 0), emulator=shape.EmulatorThreads.SHARE).pcpus)

    def test_guests_without_dedicated_vcpus_isolate_nothing(self) -> None:
        self.assertEqual(0, guest(
            (0, 4), emulator=shape.EmulatorThreads.ISOLATE).pcpus)
