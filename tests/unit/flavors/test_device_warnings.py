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
import unittest

from hpcvirt import exception
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import host as host_model
from hpcvirt.model import shape
from tests import hosts

GPU = profiles.Devices(profiles.Kind.WHOLE, alias='gpu', vendor_id='10de',
                       product_id='20b0')
VGPU = profiles.Devices(profiles.Kind.VGPU, vendor_id='10de',
                        product_id='20b0', mdev_type='nvidia-474',
                        vgpus_per_device=4)


def warnings(*machines, wanted=GPU):
    plan = planner.plan(machines, profiles.Profile(
        devices=wanted, housekeeping_cores_per_cell=1))
    return {item.code.value: item.message for item in plan.warnings}


class DeviceWarningsTest(unittest.TestCase):

    def test_devices_on_their_cells_are_nothing_to_warn_of(self):
        for total_vfs in (0, 16):
            self.assertEqual({}, warnings(hosts.build(
                gpus={0: 1, 1: 1}, gpu_vfs=total_vfs)))

    def test_hosts_without_the_devices(self):
        found = warnings(hosts.build(name='with', gpus={0: 1, 1: 1}),
                         hosts.build(name='without'))
        self.assertEqual('without: the host has no device that can be given '
                         'of vendor 10de and product 20b0',
                         found['devices-missing'])

    def test_a_plan_without_the_devices_is_refused_with_the_reason(self):
        for wanted in (GPU, VGPU):
            with self.assertRaisesRegex(
                    exception.InvalidInput, 'host: no guest fits: host: the '
                    'host has no device that can be given of vendor 10de'):
                warnings(hosts.build(), wanted=wanted)

    def test_devices_of_another_type(self):
        found = warnings(
            hosts.build(name='plain', gpus={0: 1, 1: 1}),
            hosts.build(name='sriov', gpus={0: 1, 1: 1}, gpu_vfs=16))
        self.assertEqual(
            'plain: 0001:00:00.0, 0001:01:00.0 cannot be given, because Nova '
            'calls other devices of this product type-PF, which support '
            'SR-IOV, and a PCI alias has one type',
            found['device-type-differs'])
        self.assertIn('devices-missing', found)

    def test_a_source_that_does_not_know_sriov(self):
        host = hosts.build(gpus={0: 1, 1: 1})
        blind = dataclasses.replace(host, devices=tuple(
            dataclasses.replace(device, driver=None)
            for device in host.devices))
        self.assertIn('device-type-unsure', warnings(blind))
        seeing = dataclasses.replace(blind, devices=(
            *blind.devices, host_model.Device(
                '0002:00:00.0', '15b3', '101d', 0, 0, 'mlx5_core')))
        self.assertNotIn('device-type-unsure', warnings(seeing))

    def test_a_device_whose_cell_is_unknown(self):
        found = warnings(hosts.build(gpus={None: 2}))
        self.assertEqual(
            'host: the cell of 0001:00:00.0, 0001:01:00.0 is unknown, so '
            'that the affinity preferred promises nothing for them',
            found['device-without-cell'])
        self.assertNotIn('device-without-cell', warnings(
            hosts.build(cells=1, gpus={None: 2})))

    def test_devices_of_other_cells(self):
        host = hosts.build(gpus={1: 2})
        found = warnings(host)
        self.assertIn('on host, 1 of 2 instances have devices of other cells',
                      found['devices-far'])
        tied = dataclasses.replace(GPU, affinity=shape.PCIAffinity.REQUIRED)
        self.assertNotIn('devices-far', warnings(host, wanted=tied))

    def test_vgpus_of_any_card(self):
        self.assertIn('whatever the cells of its CPUs', warnings(
            hosts.build(gpus={0: 1, 1: 1}), wanted=VGPU)['vgpu-affinity'])
        self.assertEqual({}, warnings(hosts.build(cells=1, gpus={0: 1}),
                                      wanted=VGPU))

    def test_vgpus_that_may_belong_to_virtual_functions(self):
        host = hosts.build(cells=1, gpus={0: 1}, gpu_vfs=16)
        self.assertIn('vgpu-on-sriov', warnings(host, wanted=VGPU))
        card, = host.devices
        existing = dataclasses.replace(host, devices=(
            card, dataclasses.replace(card, address='0001:00:00.4',
                                      total_vfs=0)))
        self.assertNotIn('vgpu-on-sriov', warnings(existing, wanted=VGPU))
