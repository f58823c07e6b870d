# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.flavors import device_choice
from hpcvirt.flavors import host_settings as settings
from hpcvirt.flavors import plan_document
from tests.builders import hosts
from tests.builders import plans
from tests.builders.plans import plan


class GuestMemoryTest(unittest.TestCase):
    def test_the_pages_of_the_guests_cells_are_added_up(self):
        host = plans.planned_host(pages={
            0: {4: 1000, 2048: 100}, 1: {4: 1000, 2048: 50},
            2: {4: 1000, 2048: 7}})
        self.assertEqual((100 + 50) * 2, host.guest_memory_mib)

    def test_pages_that_are_reserved_are_not_for_guests(self):
        reserved = [settings.ReservedPages(0, 2048, 30),
                    settings.ReservedPages(1, 1048576, 1),
                    settings.ReservedPages(2, 2048, 5)]
        host = plans.planned_host(pages={
            0: {2048: 100}, 1: {2048: 50, 1048576: 1}, 2: {2048: 7}},
            reserved=reserved)
        self.assertEqual((100 - 30 + 50) * 2, host.guest_memory_mib)

    def test_normal_pages_count_by_their_size(self):
        host = plans.planned_host(4, {0: {4: 2560}, 1: {2048: 9}}, [
            settings.ReservedPages(0, 4, 512)])
        self.assertEqual(8, host.guest_memory_mib)


def config(host, **choices):
    return plan_document.dump(plan(host, **choices))['host_config']['host']


class SettingsTest(unittest.TestCase):
    def test_a_host_of_two_cells(self):
        found = config(hosts.build(cores=4, mib=16384))
        self.assertEqual('0-7', found['cpu_dedicated_set'])
        self.assertEqual('', found['cpu_shared_set'])
        self.assertEqual([], found['reserved_huge_pages'])
        self.assertEqual([], found['pci_device_spec'])
        self.assertEqual([], found['pci_alias'])
        # 13 GiB of 16 GiB in pages of 2 MiB, the rest in pages of 4 KiB.
        self.assertEqual(
            {'4': 786432, '2048': 6656, '1048576': 0}, found['pages']['0'])

    def test_no_more_pages_are_set_aside_than_guests_can_fill(self):
        for host in hosts.shipped():
            found = plan(host)
            for each in found.hosts:
                pages = sum(
                    each.settings.pages[share.id][each.page_kib]
                    for share in each.partition.cells)
                most = max(
                    row.per_host[host.name] * row.flavor.ram_mib * 1024
                    // each.page_kib for row in found.flavors)
                self.assertLessEqual(most, pages)
                self.assertLess(pages - most, pages * 0.06)

    def test_small_pages_are_counted_from_what_the_source_says(self):
        host = hosts.named('hs06-2s-16c')
        found = plan_document.dump(plan(host))['host_config'][host.name]
        for cell in host.cells:
            before = sum(pool.size_kib * pool.total for pool in cell.pages)
            pages = found['pages'][str(cell.id)]
            after = sum(int(size) * count for size, count in pages.items())
            self.assertEqual(before, after)

    def test_neutron_devices_name_their_physical_network(self):
        found = config(hosts.build(vfs={0: 4}), devices=(device_choice.Devices(
            ports=device_choice.Ports.NEUTRON, physical_network='fast'),))
        self.assertEqual(
            [{'address': '0000:41:00.0', 'physical_network': 'fast'}],
            found['pci_device_spec'])
        self.assertEqual([], found['pci_alias'])
