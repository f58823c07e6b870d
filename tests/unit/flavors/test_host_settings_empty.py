# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from hpcvirt import exception
from hpcvirt.fit import devices
from hpcvirt.fit import guest as guests
from hpcvirt.flavors import host_settings
from tests.builders import hosts

#: Two cells of four CPUs and 4 GiB, with a card of eight VFs.
HOST = hosts.build(cores=4, mib=4096, vfs={0: 8})
ADDRESS = HOST.devices[0].address
SETTINGS = host_settings.HostSettings(
    cpu_dedicated_set='1-3,5-7', cpu_shared_set='0,4',
    reserved_host_memory_mb=512, reserved_host_cpus=1,
    cpu_allocation_ratio=3.0, ram_allocation_ratio=1.5,
    reserved_huge_pages=(host_settings.ReservedPages(1, 2048, 100),),
    pages={0: {4: 1000, 2048: 1500}, 1: {4: 2000, 2048: 1400}})


def make(**changes):
    return host_settings.make_empty_host(
        HOST, dataclasses.replace(SETTINGS, **changes))


class EmptyHostTest(unittest.TestCase):
    def test_totals_of_placement(self):
        host = make()
        self.assertEqual(guests.Resources(
            6, 3, int((8192 - 512) * 1.5), guests.UNKNOWN_DISK_GIB), host.free)
        self.assertEqual((6, 2, 8192), host.max_unit[:3])
        self.assertIsNone(host.traits)

    def test_cells(self):
        supply = make().supply
        self.assertEqual((3.0, 1.5), (supply.cpu_ratio, supply.ram_ratio))
        self.assertEqual(
            [({1, 2, 3}, {0}), ({5, 6, 7}, {4})],
            [(cell.dedicated, cell.shared) for cell in supply.cells])
        self.assertEqual(
            [((4, 1000), (2048, 1500)), ((4, 2000), (2048, 1300))],
            [tuple((pool.size_kib, pool.free) for pool in cell.pages)
             for cell in supply.cells])
        self.assertTrue(all(cell.empty for cell in supply.cells))

    def test_cores_are_limited_to_the_cpus_for_guests(self):
        whole = hosts.build(cores=2, threads=2, mib=4096)
        settings = dataclasses.replace(
            SETTINGS, cpu_dedicated_set='1', cpu_shared_set='')
        host = host_settings.make_empty_host(whole, settings)
        self.assertEqual([frozenset({1})], [
            core for cell in host.supply.cells for core in cell.siblings])

    def test_what_contradicts_the_host_is_refused(self):
        for changes, fault in (
                ({'cpu_dedicated_set': '1,99'}, 'has no CPU 99'),
                ({'pages': {0: {4: 1}}}, 'no pages of its cell 1'),
                ({'pages': {0: {0: 1}, 1: {4: 1}}}, 'pages of 0 KiB'),
                ({'pci_device_spec': ({'address': '0000:ff:00.0'},)},
                 'has no device 0000:ff:00.0')):
            with self.assertRaisesRegex(exception.InvalidInput, fault):
                make(**changes)


ALIAS = {'name': 'vf', 'vendor_id': '15b3', 'product_id': '101e',
         'device_type': 'type-VF', 'numa_policy': 'required'}


class PoolTest(unittest.TestCase):
    def pool(self, spec, *aliases, **changes):
        (pool,) = make(pci_device_spec=({'address': ADDRESS, **spec},),
                       pci_alias=aliases, **changes).supply.pools
        return pool

    def served(self, pool, *names):
        found = []
        for name in names:
            request = devices.DeviceRequest(
                ({devices.alias_tag(name): True},), name=name)
            found.append((devices.serves(pool, request),
                          devices.is_offered(pool, request)))
        return found

    def test_all_virtual_functions_unless_the_settings_count_them(self):
        self.assertEqual(8, self.pool({}, ALIAS).free)
        self.assertEqual(5, self.pool({}, ALIAS, device_counts={
            ADDRESS: 5}).free)

    def test_an_alias_serves_its_product(self):
        other = {**ALIAS, 'name': 'other', 'product_id': '1111'}
        pool = self.pool({'vendor_id': '15b3', 'product_id': '101e'},
                         ALIAS, other)
        self.assertEqual([(True, True), (False, False)],
                         self.served(pool, 'vf', 'other'))

    def test_placement_compares_traits_and_the_claim_does_not(self):
        first = {**ALIAS, 'name': 'vf-0', 'traits': 'CUSTOM_0'}
        second = {**ALIAS, 'name': 'vf-1', 'traits': 'CUSTOM_1'}
        pool = self.pool({
            'vendor_id': '15b3', 'product_id': '101e',
            'traits': 'CUSTOM_X,CUSTOM_1', 'hpcvirt_device_sets': 'vf:0:2'},
            first, second, ALIAS)
        self.assertEqual([(True, False), (True, True), (True, True)],
                         self.served(pool, 'vf-0', 'vf-1', 'vf'))
        self.assertEqual(ADDRESS, pool.provider)
