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

from hpcvirt.flavors import json_document
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from tests import hosts


def plan(host, **choices):
    return planner.plan([host], profiles.Profile(**choices))


def config(host, **choices):
    return json_document.document(plan(host, **choices))['host_config']['host']


class SettingsTest(unittest.TestCase):

    def test_a_host_of_two_cells(self):
        found = config(hosts.build(cores=4, mib=16384))
        self.assertEqual('0-7', found['cpu_dedicated_set'])
        self.assertEqual('', found['cpu_shared_set'])
        self.assertEqual([], found['reserved_huge_pages'])
        self.assertEqual([], found['pci_device_spec'])
        self.assertNotIn('pci_alias', found)
        # 13 GiB of 16 GiB in pages of 2 MiB, the rest in pages of 4 KiB.
        self.assertEqual(
            {'4': 786432, '2048': 6656, '1048576': 0}, found['pages']['0'])

    def test_no_more_pages_are_set_aside_than_guests_can_fill(self):
        for host in hosts.shipped():
            found = plan(host)
            for planned in found.hosts:
                pages = sum(
                    planned.settings.pages[share.id][planned.page_kib]
                    for share in planned.partition.cells)
                most = max(
                    row.per_host[host.name] * row.flavor.ram_mib * 1024
                    // planned.page_kib for row in found.flavors)
                self.assertLessEqual(most, pages)
                self.assertLess(pages - most, pages * 0.06)

    def test_small_pages_are_counted_from_what_the_source_says(self):
        host = hosts.named('hs06-2s-16c')
        found = json_document.document(plan(host))['host_config'][host.name]
        for cell in host.cells:
            before = sum(pool.size_kib * pool.total for pool in cell.pages)
            pages = found['pages'][str(cell.id)]
            after = sum(int(size) * count for size, count in pages.items())
            self.assertEqual(before, after)

    def test_devices_are_given_by_their_address_and_product(self):
        found = config(hosts.build(vfs={0: 4, 1: 8}),
                       devices=profiles.Devices(
                           vendor_id='15b3', product_id='101e',
                           vfs_per_device=6))
        self.assertEqual(
            [{'address': '0000:41:00.0', 'vendor_id': '15b3',
              'product_id': '101e'},
             {'address': '0000:61:00.0', 'vendor_id': '15b3',
              'product_id': '101e'}], found['pci_device_spec'])
        self.assertEqual(
            [{'name': 'hpc-vf', 'vendor_id': '15b3', 'product_id': '101e',
              'device_type': 'type-VF', 'numa_policy': 'preferred'}],
            found['pci_alias'])

    def test_neutron_devices_name_their_physical_network(self):
        found = config(hosts.build(vfs={0: 4}), devices=profiles.Devices(
            ports=profiles.Ports.NEUTRON, physical_network='fast'))
        self.assertEqual(
            [{'address': '0000:41:00.0', 'physical_network': 'fast'}],
            found['pci_device_spec'])
        self.assertNotIn('pci_alias', found)

    def test_devices_of_other_vendors_are_not_taken(self):
        planned = plan(hosts.build()).hosts[0]
        self.assertEqual((), planned.settings.devices)
