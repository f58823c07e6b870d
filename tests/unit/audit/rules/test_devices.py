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

"""IOMMU and virtual functions."""

import dataclasses

from hpcvirt.flavors import profile as profiles
from tests import audited

FUNCTIONS = audited.GOOD.devices.functions
ADDRESS = FUNCTIONS[0].address


class DevicesTest(audited.Case):

    def devices(self, code, profile=audited.PROFILE, facts=audited.GOOD,
                **fields):
        return self.found(code, self.but(facts, devices=fields), profile)

    def first(self, **fields):
        return {'functions': (dataclasses.replace(FUNCTIONS[0], **fields),
                              *FUNCTIONS[1:])}

    def test_devices_of_guests_need_an_iommu(self):
        (severity, _), = self.devices('iommu', iommus=())
        self.assertEqual('error', severity)

    def test_who_passes_no_device_needs_none(self):
        plain = self.but(nova={('pci', 'device_spec'): None},
                         devices={'functions': (), 'iommus': ()})
        self.assertEqual([], self.found('iommu', plain, profiles.DEFAULT))
        self.assertEqual([], self.found('iommu', plain, None))
        listed = self.but(plain, nova={('pci', 'device_spec'): ('{}',)})
        self.assertEqual(1, len(self.found('iommu', listed, None)))

    def test_the_host_itself_is_not_translated(self):
        for types, expected in (({'DMA-FQ'}, 1), ({'DMA', 'identity'}, 0),
                                (set(), 0)):
            self.assertEqual(expected, len(self.devices(
                'iommu-passthrough', iommu_types=frozenset(types))))

    def test_as_many_functions_as_the_flavors_need(self):
        self.assertEqual([('error', f'{ADDRESS} has 1 virtual functions')],
                         self.devices('virtual-functions',
                                      **self.first(count=1)))
        for count in (2, 3):
            self.assertEqual([], self.devices('virtual-functions',
                                              **self.first(count=count)))
        self.assertEqual([], self.devices('virtual-functions', None,
                                          **self.first(count=0)))

    def test_a_device_without_driver_creates_none(self):
        host = dataclasses.replace(audited.HOST, devices=tuple(
            dataclasses.replace(device, driver=None)
            for device in audited.HOST.devices))
        found = self.devices('virtual-functions', facts=dataclasses.replace(
            audited.GOOD, host=host), **self.first(count=0))
        self.assertEqual(2, len(found))

    def test_cells_of_devices_are_known(self):
        self.assertEqual(1, len(self.devices(
            'device-cell', **self.first(cells=frozenset({None})))))
        lost = dataclasses.replace(audited.HOST, devices=(
            dataclasses.replace(audited.HOST.devices[0], cell=None),))
        facts = dataclasses.replace(audited.GOOD, host=lost)
        self.assertEqual(1, len(self.devices('device-cell', None, facts)))

    def test_functions_are_created_at_boot(self):
        self.assertEqual(2, len(self.devices('persistent-functions',
                                             creators={})))
        self.assertEqual(1, len(self.devices(
            'persistent-functions', creators={ADDRESS: ('/etc/rc.local',)})))
        self.assertEqual(0, len(self.devices(
            'persistent-functions', creators={'*': ('/etc/rc.local',)})))
        self.assertEqual(1, len(self.devices(
            'persistent-functions', creators={}, **self.first(count=0))))
