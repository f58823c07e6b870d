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

import dataclasses
import json
import unittest

from hpcvirt.flavors import given_devices
from hpcvirt.flavors import json_document
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import settings
from hpcvirt.model import host as host_model
from hpcvirt.model import shape
from tests import hosts

CARD = host_model.Device('0000:41:00.0', '15b3', '101d', 0, 8)
ALIAS = profiles.Devices(vendor_id='15b3', product_id='101e')
GPU_CARD = host_model.Device('0000:07:00.0', '10de', '20b0', 0, 16)
GPU = profiles.Devices(
    profiles.Kind.WHOLE, None, shape.PCIAffinity.REQUIRED, alias='gpu',
    vendor_id='10de', product_id='20b0')
VGPU = profiles.Devices(
    profiles.Kind.VGPU, vendor_id='10de', product_id='20b0',
    mdev_type='nvidia-474', vgpus_per_device=4,
    resource_class='CUSTOM_VGPU_10C', traits=('CUSTOM_A100',))
NEUTRON = profiles.Devices(ports=profiles.Ports.NEUTRON,
                           product_id='101e', physical_network='fast')


def host_settings(**changes):
    return settings.Settings(**{
        'dedicated': frozenset({1, 2, 3, 8}), 'shared': frozenset({0}),
        'reserved_host_memory_mib': 4096, 'reserved_pages': (),
        'pages': {0: {4: 1000, 2048: 20}}, 'rest_mib': {0: 4096}, **changes})


class HostConfigTest(unittest.TestCase):

    def test_settings_are_written_as_nova_reads_them(self):
        reserved = (settings.ReservedPages(1, 2048, 5),)
        config = json_document.host_config(
            host_settings(reserved_pages=reserved), profiles.Profile())
        self.assertEqual({
            'cpu_dedicated_set': '1-3,8', 'cpu_shared_set': '0',
            'reserved_host_memory_mb': 4096,
            'reserved_huge_pages': [{'node': 1, 'size': 2048, 'count': 5}],
            'pages': {'0': {'4': 1000, '2048': 20}},
            'pci_device_spec': []}, config)

    def test_virtual_functions_are_matched_by_card_and_product(self):
        given = host_settings(devices=(given_devices.Given(CARD, 8),))
        config = json_document.host_config(
            given, profiles.Profile(devices=ALIAS))
        self.assertEqual([{'address': '0000:41:00.0', 'vendor_id': '15b3',
                           'product_id': '101e'}], config['pci_device_spec'])
        self.assertEqual([{'name': 'hpc-vf', 'vendor_id': '15b3',
                           'product_id': '101e', 'device_type': 'type-VF',
                           'numa_policy': 'preferred'}],
                         config['pci_alias'])

    def test_ports_of_neutron_need_a_network_and_no_alias(self):
        given = host_settings(devices=(given_devices.Given(CARD, 8),))
        config = json_document.host_config(
            given, profiles.Profile(devices=NEUTRON))
        self.assertEqual([{'address': '0000:41:00.0', 'vendor_id': '15b3',
                           'product_id': '101e',
                           'physical_network': 'fast'}],
                         config['pci_device_spec'])
        self.assertNotIn('pci_alias', config)

    def test_whole_devices_are_matched_by_address_and_product(self):
        given = host_settings(device_type='type-PF', devices=(
            given_devices.Given(GPU_CARD, 1),))
        config = json_document.host_config(
            given, profiles.Profile(devices=GPU))
        self.assertEqual([{'address': '0000:07:00.0', 'vendor_id': '10de',
                           'product_id': '20b0'}], config['pci_device_spec'])
        self.assertEqual([{'name': 'gpu', 'vendor_id': '10de',
                           'product_id': '20b0', 'device_type': 'type-PF',
                           'numa_policy': 'required'}], config['pci_alias'])
        self.assertNotIn('mdev_types', config)

    def test_vgpus_need_a_type_and_no_alias(self):
        given = host_settings(devices=(given_devices.Given(GPU_CARD, 4),))
        config = json_document.host_config(
            given, profiles.Profile(devices=VGPU))
        self.assertEqual([], config['pci_device_spec'])
        self.assertNotIn('pci_alias', config)
        self.assertEqual([{'name': 'nvidia-474',
                           'device_addresses': ['0000:07:00.0'],
                           'mdev_class': 'CUSTOM_VGPU_10C'}],
                         config['mdev_types'])

    def test_the_product_is_that_of_the_functions_that_the_card_creates(self):
        card = dataclasses.replace(CARD, vf_product_id='101e')
        spec = json_document.device_spec(
            given_devices.Given(card, 8),
            dataclasses.replace(NEUTRON, product_id=None))
        self.assertEqual({'address': '0000:41:00.0', 'vendor_id': '15b3',
                          'product_id': '101e',
                          'physical_network': 'fast'}, spec)


class DocumentTest(unittest.TestCase):

    def document(self, *machines, **choices):
        plan = planner.plan(machines, profiles.Profile(**choices))
        document = json_document.document(plan)
        self.assertEqual(document, json.loads(json.dumps(document)))
        return document

    def test_a_host_has_its_cells_cpus_and_memory(self):
        found, = self.document(hosts.build(
            cells=2, cores=16, threads=2, memory_only=1, mib=65536))['hosts']
        guests_mib = found.pop('guest_memory_mib')
        self.assertEqual({
            'name': 'host', 'packages': 2, 'cells': 3, 'cells_with_cpus': 2,
            'cpus': 64, 'dedicated_pcpus': 64, 'memory_mib': 3 * 65536,
            'guest_page_kib': 2048, 'guest_devices': 0}, found)
        self.assertLess(0.8 * 2 * 65536, guests_mib)
        self.assertLess(guests_mib, 2 * 65536)

    def test_a_flavor_says_what_each_host_takes_and_leaves(self):
        flavors = self.document(hosts.named('hs06-2s-16c'))['flavors']
        found = next(each for each in flavors if each['vcpus'] == 24)
        self.assertEqual({'hs06-2s-16c': '3/4 host'}, found['share'])
        self.assertEqual({'hs06-2s-16c': 1}, found['per_host'])
        self.assertEqual({'hs06-2s-16c': 8}, found['stranded_pcpus'])
        self.assertEqual([12, 12],
                         [cell['vcpus'] for cell in found['guest_cells']])
        self.assertEqual(found['ram_mib'], sum(
            cell['memory_mib'] for cell in found['guest_cells']))
        loss, = found['loss']['hs06-2s-16c']
        self.assertEqual((5, 5, '1x24', '[CERN-HEPiX-2015]'), (
            loss['low_percent'], loss['high_percent'], loss['configuration'],
            loss['source']))

    def test_devices_are_counted_for_the_host_and_the_flavor(self):
        document = self.document(hosts.build(
            gpus={0: 3, 1: 3}, gpu_vfs=16), devices=dataclasses.replace(
                GPU, per_instance=2))
        self.assertEqual(6, document['hosts'][0]['guest_devices'])
        flavor, = document['flavors']
        self.assertEqual((2, {'host': 2}, {'host': 2}), (
            flavor['devices'], flavor['per_host'],
            flavor['stranded_devices']))
        self.assertEqual('gpu:2', flavor['extra_specs'][
            'pci_passthrough:alias'])

    def test_a_flavor_with_vgpus_requests_them_with_their_traits(self):
        flavor, = self.document(hosts.build(gpus={0: 1, 1: 1}),
                                devices=VGPU)['flavors']
        self.assertEqual((1, {'host': 8}, {'host': 0}), (
            flavor['devices'], flavor['per_host'],
            flavor['stranded_devices']))
        specs = flavor['extra_specs']
        self.assertEqual('1', specs['resources:CUSTOM_VGPU_10C'])
        self.assertEqual('required', specs['trait:CUSTOM_A100'])
        self.assertNotIn('pci_passthrough:alias', specs)
        self.assertNotIn('hw:pci_numa_affinity_policy', specs)

    def test_flavors_are_public_unless_they_have_projects(self):
        for projects, public in ((None, True), (('a', 'b'), False),
                                 ((), False)):
            for found in self.document(hosts.build(),
                                       projects=projects)['flavors']:
                self.assertEqual((public, list(projects or ())),
                                 (found['public'], found['projects']))

    def test_warnings_have_their_codes_and_hosts(self):
        found = self.document(hosts.build(name='good'),
                              hosts.build(name='bare', mib=0))['warnings']
        warning = next(each for each in found
                       if each['code'] == 'host-not-served')
        self.assertEqual(['bare'], warning['subjects'])
        self.assertIn('bare: ', warning['message'])
