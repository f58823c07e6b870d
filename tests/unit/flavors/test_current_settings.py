# SPDX-License-Identifier: Apache-2.0

import dataclasses
import json
import unittest

from hpcvirt import exception
from hpcvirt.flavors import current_settings
from hpcvirt.flavors import host_settings
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import host as host_model
from tests.builders import hosts

HOST = dataclasses.replace(hosts.build(cores=4, mib=4096, vfs={0: 8}), cells=(
    *(dataclasses.replace(cell, pages=(
        host_model.PagePool(4, 300_000), host_model.PagePool(2048, 1400)))
      for cell in hosts.build(cores=4, mib=4096).cells),))


def read(text, host=HOST, **choices):
    (planned,) = planner.plan([host], profiles.Profile(**choices)).hosts
    return current_settings.read_settings(
        host, current_settings.read_conf(text, 'nova.conf'),
        planned.settings)


class KeepPagesTest(unittest.TestCase):
    def test_pages_are_those_of_the_topology(self):
        (planned,) = planner.plan([HOST], profiles.DENSE).hosts
        found = current_settings.keep_pages(HOST, planned.settings)
        self.assertEqual({0: {4: 300_000, 2048: 1400},
                          1: {4: 300_000, 2048: 1400}}, found.pages)
        self.assertEqual(planned.settings.cpu_dedicated_set,
                         found.cpu_dedicated_set)
        self.assertEqual((512, ()), (found.reserved_host_memory_mb,
                                     found.reserved_huge_pages))


class NovaConfTest(unittest.TestCase):
    def test_defaults_are_those_of_nova(self):
        found = read('')
        self.assertEqual(('', '0-7'), (found.cpu_dedicated_set,
                                       found.cpu_shared_set))
        self.assertEqual((512, 0, 4.0, 1.0), (
            found.reserved_host_memory_mb, found.reserved_host_cpus,
            found.cpu_allocation_ratio, found.ram_allocation_ratio))
        self.assertEqual((), found.pci_device_spec)

    def test_what_the_file_says(self):
        found = read("""
[DEFAULT]
reserved_host_memory_mb = 1024
reserved_host_cpus = 1
cpu_allocation_ratio = 2.5
ram_allocation_ratio = 0.0
initial_ram_allocation_ratio = 1.5
reserved_huge_pages = node:0,size:2048,count:64
reserved_huge_pages = node:1,size:2MB,count:32
[compute]
cpu_dedicated_set = 1-3,5-7,^6
packing_host_numa_cells_allocation_strategy = True
""")
        self.assertEqual(('1-3,5,7', ''), (found.cpu_dedicated_set,
                                           found.cpu_shared_set))
        self.assertEqual((1024, 1, 2.5, 1.5), (
            found.reserved_host_memory_mb, found.reserved_host_cpus,
            found.cpu_allocation_ratio, found.ram_allocation_ratio))
        self.assertEqual([(0, 2048, 64), (1, 2048, 32)], [
            (item.node, item.size, item.count)
            for item in found.reserved_huge_pages])
        self.assertTrue(found.packing_host_numa_cells_allocation_strategy)

    def test_devices(self):
        device = HOST.devices[0]
        own = {'vendor_id': device.vendor_id}
        for spec, expected in (
                ({'address': device.address}, 8),
                ({'address': device.address[5:]}, 8),
                ({**own, 'product_id': device.product_id}, 1),
                ([{'vendor_id': '0000'}, own], 8),
                ({'address': 'ffff:*'}, None)):
            found = read(f'[pci]\ndevice_spec = {json.dumps(spec)}')
            if expected is None:
                self.assertEqual((), found.pci_device_spec)
                continue
            self.assertEqual({device.address: expected}, found.device_counts)
            (item,) = found.pci_device_spec
            self.assertEqual(own['vendor_id'], item['vendor_id'])
            (pool,) = host_settings.make_empty_host(HOST, found).supply.pools
            self.assertEqual(expected, pool.free)

    def test_the_profile_says_how_many_functions_there_are(self):
        device = HOST.devices[0]
        wanted = dataclasses.replace(hosts.VFS, vfs_per_device=2)
        for product, expected in ((hosts.VFS.product_id, 2),
                                  (device.product_id, 1)):
            spec = {'address': device.address, 'product_id': product}
            found = read(f'[pci]\ndevice_spec = {json.dumps(spec)}',
                         devices=(wanted,))
            self.assertEqual({device.address: expected}, found.device_counts)

    def test_what_is_wrong_is_named(self):
        for text, fault in (
                ('[compute]\ncpu_dedicated_set = 1-x', 'cpu_dedicated_set'),
                ('[DEFAULT]\nreserved_host_memory_mb = much',
                 "reserved_host_memory_mb: 'much' is not a number"),
                ('[DEFAULT]\nreserved_huge_pages = 9', "'9' is not node:N"),
                ('[pci]\nalias = {', r'\[pci\]alias'),
                ('[pci]\ndevice_spec = {"devname": "eth1"}', 'devname'),
                ('[pci]\ndevice_spec = {"address": {"bus": "1"}}',
                 'only text is'),
                ('[DEFAULT]\nvcpu_pin_set = 1', 'use cpu_dedicated_set'),
                ('[devices]\nenabled_mdev_types = nvidia-1',
                 'enabled_mdev_types'),
                ('cpu = 1', 'line 1: no section before this line')):
            with self.assertRaisesRegex(exception.InvalidInput, fault):
                read(text)
