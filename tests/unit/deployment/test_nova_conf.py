# SPDX-License-Identifier: Apache-2.0

import json
import unittest

import yaml

from hpcvirt.deployment import nova_conf
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from tests.builders import hosts

VGPU = device_choice.Devices(
    device_choice.DeviceKind.VGPU, vendor_id='10de', product_id='20b0',
    mdev_type='nvidia-474', vgpus_per_device=4)


def lines(host, **choices):
    plan = planner.plan([host], profiles.Profile(**choices))
    return list(nova_conf.compute(plan.hosts[0], plan))


class NovaConfTest(unittest.TestCase):
    def test_options_of_nova_compute(self):
        found = lines(hosts.build(threads=2), shared_cores_per_cell=1,
                      host_pages_per_cell=((1048576, 1),), pack_cells=True)
        for line in (
                'cpu_dedicated_set = 1-15,17-31,33-47,49-63',
                'cpu_shared_set = 0,16,32,48',
                'reserved_huge_pages = node:1,size:1048576,count:1',
                'packing_host_numa_cells_allocation_strategy = true'):
            self.assertIn(line, found)
        text = '\n'.join(found)
        self.assertRegex(text, r'\[DEFAULT\]\n(#.*\n)+'
                         r'reserved_host_memory_mb = \d+\n')
        self.assertRegex(text, r'\[compute\]\n(#.*\n)+cpu_dedicated_set')

    def test_an_empty_set_is_not_written(self):
        text = '\n'.join(lines(hosts.build()))
        self.assertNotIn('cpu_shared_set', text)
        self.assertNotIn('[pci]', text)

    def test_virtual_functions_are_given(self):
        spec = next(line for line in lines(
            hosts.build(vfs={1: 8}), devices=(hosts.VFS,))
            if line.startswith('device_spec = '))
        self.assertEqual('0000:41:00.0', json.loads(
            spec.removeprefix('device_spec = '))['address'])

    def test_whole_devices_are_given_with_the_type_of_their_alias(self):
        for total_vfs, type_ in ((0, 'type-PCI'), (16, 'type-PF')):
            found = lines(
                hosts.build(gpus={0: 1, 1: 1}, gpu_vfs=total_vfs),
                devices=(device_choice.Devices(
                    device_choice.DeviceKind.WHOLE, alias='gpu',
                    vendor_id='10de', product_id='20b0'),))
            self.assertEqual(2, sum(line.startswith('device_spec = ')
                                    for line in found))
            alias = next(line for line in found if line.startswith('alias'))
            self.assertEqual(type_, json.loads(
                alias.partition(' = ')[2])['device_type'])

    def test_vgpus_need_no_pci_options(self):
        found = lines(hosts.build(gpus={0: 1, 1: 1}), devices=(VGPU,))
        at = found.index('[devices]')
        self.assertEqual(
            ['enabled_mdev_types = nvidia-474', '', '[mdev_nvidia-474]',
             'device_addresses = 0001:00:00.0,0001:01:00.0',
             'mdev_class = VGPU'], found[at + 1:at + 6])
        self.assertNotIn('[pci]', found)

    def test_a_host_without_cards_gives_no_vgpus(self):
        plan = planner.plan(
            [hosts.build(gpus={0: 1}), hosts.build(name='without')],
            profiles.Profile(devices=(VGPU,)))
        self.assertEqual([True, False], [
            '[devices]' in nova_conf.compute(host, plan)
            for host in plan.hosts])

    def test_the_shipped_profile_gives_the_virtual_functions_of_its_card(self):
        path = hosts.TOPOLOGIES.parent / 'profiles/sriov.yaml'
        choices = profiles.build(yaml.safe_load(path.read_text()), path.name)
        host = hosts.named('epyc-2s-64c-nps4')
        plan = planner.plan([host], choices)
        spec = json.loads(next(
            line for line in nova_conf.compute(plan.hosts[0], plan)
            if line.startswith('device_spec = ')).partition(' = ')[2])
        self.assertEqual(
            {(device.vendor_id, device.product_id) for device in host.devices
             if not device.total_vfs},
            {(spec['vendor_id'], spec['product_id'])})

    def test_the_memory_that_the_host_keeps_is_a_comment(self):
        text = ' '.join(lines(hosts.build())).replace('# ', '')
        self.assertRegex(text, 'For the host, without the emulators of its '
                         r'guests: cells 0-1 have \d+ MiB')

    def test_controllers_get_what_must_be_equal_there(self):
        plan = planner.plan(
            [hosts.build(vfs={1: 8})], profiles.Profile(
                pack_cells=True, devices=(hosts.VFS,)))
        (host,) = plan.hosts
        found = [line for line in nova_conf.controller(plan) if ' = ' in line]
        self.assertEqual(
            ['packing_host_numa_cells_allocation_strategy', 'alias'],
            [line.partition(' = ')[0] for line in found])
        self.assertLessEqual(set(found), set(nova_conf.compute(host, plan)))
