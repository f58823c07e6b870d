# SPDX-License-Identifier: Apache-2.0

import dataclasses
import json
import unittest

from hpcvirt import exception
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import host_part
from hpcvirt.flavors import offered_devices
from hpcvirt.flavors import plan_document
from hpcvirt.flavors import planned_settings
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import host as host_model
from hpcvirt.model import shape
from tests.builders import hosts

CARD = host_model.Device('0000:41:00.0', '15b3', '101d', 0, 8)
GPU = dataclasses.replace(hosts.GPU, per_instance=None,
                          affinity=shape.PCIAffinity.REQUIRED)
VGPU = dataclasses.replace(hosts.VGPU, resource_class='CUSTOM_VGPU_10C',
                           traits=('CUSTOM_A100',))
NEUTRON = device_choice.Devices(ports=device_choice.Ports.NEUTRON,
                                product_id='101e', physical_network='fast')


def config(host, *wanted):
    """Plan a host, and return its settings as the document has them."""
    plan = planner.plan([host], profiles.Profile(devices=wanted))
    return plan_document.dump(plan)['host_config']['host']


def stranded(flavor):
    return {host: item['count'] for host, (item,)
            in flavor['unused_devices'].items()}


class HostConfigTest(unittest.TestCase):
    def test_virtual_functions_are_matched_by_card_and_product(self):
        found = config(hosts.build(vfs={0: 8}), hosts.VFS)
        self.assertEqual([{'address': '0000:41:00.0', 'vendor_id': '15b3',
                           'product_id': '101e'}], found['pci_device_spec'])
        self.assertEqual([{'name': 'hpc-vf', 'vendor_id': '15b3',
                           'product_id': '101e', 'device_type': 'type-VF',
                           'numa_policy': 'preferred'}], found['pci_alias'])
        self.assertEqual({'0000:41:00.0': 8}, found['device_counts'])

    def test_ports_of_neutron_need_a_network_and_no_alias(self):
        found = config(hosts.build(vfs={0: 8}), NEUTRON)
        self.assertEqual([{'address': '0000:41:00.0', 'vendor_id': '15b3',
                           'product_id': '101e',
                           'physical_network': 'fast'}],
                         found['pci_device_spec'])
        self.assertEqual([], found['pci_alias'])

    def test_whole_devices_are_matched_by_address_and_product(self):
        found = config(hosts.build(gpus={0: 1}, gpu_vfs=16), GPU)
        spec, = found['pci_device_spec']
        self.assertEqual(('10de', '20b0'),
                         (spec['vendor_id'], spec['product_id']))
        self.assertEqual([{'name': 'gpu', 'vendor_id': '10de',
                           'product_id': '20b0', 'device_type': 'type-PF',
                           'numa_policy': 'required'}], found['pci_alias'])
        self.assertEqual([], found['mdev_types'])

    def test_vgpus_need_a_type_and_no_alias(self):
        host = hosts.build(gpus={0: 1})
        found = config(host, VGPU)
        self.assertEqual(([], []), (found['pci_device_spec'],
                                    found['pci_alias']))
        self.assertEqual([{'name': 'nvidia-474',
                           'device_addresses': [host.devices[0].address],
                           'mdev_class': 'CUSTOM_VGPU_10C'}],
                         found['mdev_types'])

    def test_the_product_is_that_of_the_functions_that_the_card_creates(self):
        card = dataclasses.replace(CARD, vf_product_id='101e')
        spec = planned_settings.make_device_spec(
            offered_devices.OfferedDevice(card, 8),
            dataclasses.replace(NEUTRON, product_id=None))
        self.assertEqual({'address': '0000:41:00.0', 'vendor_id': '15b3',
                          'product_id': '101e',
                          'physical_network': 'fast'}, spec)


class DocumentTest(unittest.TestCase):
    def document(self, *machines, **choices):
        plan = planner.plan(machines, profiles.Profile(**choices))
        document = plan_document.dump(plan)
        self.assertEqual(document, json.loads(json.dumps(document)))
        # What reads a document has what was written.
        self.assertEqual(plan_document.make_document(plan),
                         plan_document.load(document, 'plan'))
        return document

    def test_a_host_has_its_cells_cpus_and_memory(self):
        found, = self.document(hosts.build(
            cells=2, cores=16, threads=2, memory_only=1, mib=65536))['hosts']
        guests_mib = found.pop('guest_memory_mib')
        self.assertEqual({
            'name': 'host', 'sockets': 2, 'cells': 3, 'cells_with_cpus': 2,
            'cpus': 64, 'dedicated_pcpus': 64, 'memory_mib': 3 * 65536,
            'guest_page_kib': 2048, 'guest_devices': [], 'fleet_class': ''},
            found)
        self.assertLess(0.8 * 2 * 65536, guests_mib)
        self.assertLess(guests_mib, 2 * 65536)

    def test_a_flavor_says_what_each_host_takes_and_leaves(self):
        flavors = self.document(hosts.named('hs06-2s-16c'))['flavors']
        found = next(each for each in flavors if each['vcpus'] == 24)
        self.assertEqual({'hs06-2s-16c': '3/4 host'}, found['share'])
        self.assertEqual({'hs06-2s-16c': 1}, found['per_host'])
        self.assertEqual({'hs06-2s-16c': 8}, found['unused_pcpus'])
        self.assertGreater(found['unused_memory_mib']['hs06-2s-16c'], 0)
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
            gpus={0: 3, 1: 3}, gpu_vfs=16), devices=(dataclasses.replace(
                GPU, per_instance=2),))
        self.assertEqual(6, document['hosts'][0]['guest_devices'][0]['count'])
        flavor, = document['flavors']
        self.assertEqual((2, {'host': 2}, {'host': 2}), (
            flavor['devices'][0]['count'], flavor['per_host'],
            stranded(flavor)))
        self.assertEqual('gpu:2', flavor['extra_specs'][
            'pci_passthrough:alias'])

    def test_a_flavor_with_vgpus_requests_them_with_their_traits(self):
        flavor, = self.document(hosts.build(gpus={0: 1, 1: 1}),
                                devices=(VGPU,))['flavors']
        self.assertEqual((1, {'host': 8}, {'host': 0}), (
            flavor['devices'][0]['count'], flavor['per_host'],
            stranded(flavor)))
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

    def test_equal_settings_are_read_as_one(self):
        document = self.document(hosts.build(name='a'), hosts.build(name='b'))
        found = plan_document.load(document, 'plan').host_config
        self.assertIs(found['a'], found['b'])

    def test_a_document_that_is_wrong_names_the_place(self):
        document = self.document(hosts.build())
        config = document['host_config']['host']
        for key, value, fault in (
                ('cpu_dedicated_set', '7-1',
                 ".host_config['host'].cpu_dedicated_set: '7-1' "),
                ('cpu_shared_set', 5, '.cpu_shared_set: must be text'),
                ('pages', {'x': {}}, "pages['x']: must have a whole number"),
                ('pages', {'0': {'2048': -1}}, "pages['0']['2048']: must be"),
                ('other', 1, "unknown key 'other'")):
            with self.assertRaises(exception.InvalidInput) as caught:
                plan_document.load({**document, 'host_config': {
                    'host': {**config, key: value}}}, 'plan.json')
            self.assertIn(fault.lstrip('.'), str(caught.exception))
        for plain in ([], {}, {'schema_version': 2}, {'schema_version': 1}):
            with self.assertRaises(exception.InvalidInput):
                plan_document.load(plain, 'plan.json')


class AlternativeTest(unittest.TestCase):
    def test_each_profile_names_the_plan_of_the_other(self):
        machines = [hosts.build(name='a'), hosts.build(name='b'),
                    hosts.build(cells=4, name='c')]
        for name, other in (('default', 'dense'), ('dense', 'default')):
            plan = planner.plan(machines, profiles.BUILT_IN[name])
            wanted = planner.plan(machines, profiles.BUILT_IN[other])
            found = plan_document.plan_other(plan)
            self.assertEqual((other, 128, ''), (
                found.profile, found.cpus, found.refusal))
            self.assertEqual(found.dedicated, sum(
                len(host.settings.dedicated) for host in wanted.hosts))
            self.assertEqual(found.vcpus, tuple(sorted({
                row.flavor.vcpus for row in wanted.flavors})))

    def test_a_plan_that_cannot_be_is_said_so(self):
        plan = planner.plan([hosts.build(cells=1, cores=1)], profiles.DENSE)
        found = plan_document.plan_other(plan)
        self.assertIn('no guest fits', found.message)
        self.assertNotIn('\n', found.message)

    def test_cpus_that_the_operator_names_are_all_for_guests(self):
        host = hosts.build()
        part = host_part.build('4-15,20-31', [])
        plan = planner.plan([host], profiles.DEFAULT, part)
        self.assertEqual(24, len(plan.hosts[0].settings.dedicated))
        self.assertEqual(24, plan_document.plan_other(plan, part).dedicated)
