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

from hpcvirt.fit import supply
from hpcvirt.flavors import catalogue
from hpcvirt.flavors import cpu_partition
from hpcvirt.flavors import planned
from hpcvirt.flavors import settings
from hpcvirt.flavors import sizes
from hpcvirt.model import shape
from tests import hosts

#: Words that say nothing about the loss.
WORDS = sizes.Share('package')


def planned_host(page_kib=2048, pages=None, reserved=(), dedicated=32):
    """A host with two cells for guests, and one that the host keeps."""
    host = hosts.build(cells=3)
    shares = tuple(
        cpu_partition.CellShare(number, number, (), ()) for number in (0, 1))
    return planned.PlannedHost(
        host, cpu_partition.Partition(host, 1, shares), page_kib,
        settings.Settings(frozenset(range(dedicated)), frozenset(), 0,
                          tuple(reserved), pages or {}, {}),
        supply.Supply((), ()))


class GuestMemoryTest(unittest.TestCase):

    def test_the_pages_of_the_guests_cells_are_added_up(self):
        host = planned_host(pages={
            0: {4: 1000, 2048: 100}, 1: {4: 1000, 2048: 50},
            2: {4: 1000, 2048: 7}})
        self.assertEqual((100 + 50) * 2, host.guest_memory_mib)

    def test_pages_that_are_reserved_are_not_for_guests(self):
        reserved = [settings.ReservedPages(0, 2048, 30),
                    settings.ReservedPages(1, 1048576, 1),
                    settings.ReservedPages(2, 2048, 5)]
        host = planned_host(pages={
            0: {2048: 100}, 1: {2048: 50, 1048576: 1}, 2: {2048: 7}},
            reserved=reserved)
        self.assertEqual((100 - 30 + 50) * 2, host.guest_memory_mib)

    def test_normal_pages_count_by_their_size(self):
        host = planned_host(4, {0: {4: 2560}, 1: {2048: 9}}, [
            settings.ReservedPages(0, 4, 512)])
        self.assertEqual(8, host.guest_memory_mib)


class LossesTest(unittest.TestCase):

    def losses(self, pcpus, host=None, share=WORDS, count=1):
        guest = shape.Shape((shape.GuestCell(pcpus, 0, 1024),))
        flavor = planned.PlannedFlavor(
            catalogue.Flavor('f', pcpus, 1024, 0, {}), guest,
            {'host': share} if share else {}, {'host': count}, {})
        return [(loss.low, loss.high, loss.configuration)
                for loss in flavor.losses(host or planned_host())]

    def test_the_loss_is_that_of_the_share_of_the_dedicated_cpus(self):
        # [CERN-HEPiX-2015], table "VM sizes (cores)", column "After".
        self.assertEqual([(3.3, 3.3, '4x8')], self.losses(8))
        self.assertEqual([(5.0, 5.0, '1x24')], self.losses(24))
        self.assertEqual([(3.0, 6.0, '1x32')],
                         self.losses(24, planned_host(dedicated=24)))

    def test_a_modified_hypervisor_promises_nothing_to_a_package(self):
        # [LBNL-Partitioning]: "On Numa nodes 40% -> 3%".
        self.assertEqual([(4.6, 4.6, '2x16')], self.losses(
            16, share=sizes.Share('any words', is_package=True)))

    def test_a_host_that_it_was_not_sized_for_or_takes_none_has_none(self):
        self.assertEqual([], self.losses(8, share=None))
        self.assertEqual([], self.losses(8, count=0))
