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

from hpcvirt import exception
from hpcvirt.model import shape
from hpcvirt.specs import devices

REQUIRED = shape.PCIAffinity.REQUIRED


def request(alias, count=1, affinity=None):
    return shape.DeviceRequest(alias, count, affinity)


class ReadTest(unittest.TestCase):

    def test_each_term_is_a_request(self):
        for text, expected in (
                ('vf:1', (request('vf'),)),
                (' vf : 2 ,gpu:+1', (request('vf', 2), request('gpu'))),
                ('vf:1,vf:2', (request('vf'), request('vf', 2))),
                ('', ())):
            self.assertEqual(expected, devices.read(
                {'pci_passthrough:alias': text}))

    def test_a_request_for_none_is_no_request(self):
        self.assertEqual((request('gpu'),), devices.read(
            {'pci_passthrough:alias': 'vf:0,gpu:1'}))

    def test_the_affinity_policy_is_that_of_every_request(self):
        self.assertEqual(
            (request('vf', 1, REQUIRED), request('gpu', 2, REQUIRED)),
            devices.read({'pci_passthrough:alias': 'vf:1,gpu:2',
                          'hw:pci_numa_affinity_policy': 'required'}))

    def test_a_wrong_policy_is_refused_even_without_a_device(self):
        with self.assertRaises(exception.InvalidInput) as caught:
            devices.read({'hw:pci_numa_affinity_policy': 'near'})
        self.assertEqual('hw:pci_numa_affinity_policy',
                         caught.exception.where)

    def test_anything_else_is_refused(self):
        for text in ('vf', 'vf:', ':1', 'vf:x', 'vf:-1', 'vf:1.0', 'vf:1,',
                     'vf:1:2', f'vf:{10 ** 9 + 1}'):
            with self.subTest(text=text), self.assertRaisesRegex(
                    exception.InvalidInput, 'alias:count'):
                devices.read({'pci_passthrough:alias': text})


class WriteTest(unittest.TestCase):

    def test_what_is_written_is_read_again(self):
        for wanted in ((), (request('vf'),),
                       (request('vf', 2, REQUIRED),
                        request('gpu', 1, REQUIRED))):
            self.assertEqual(wanted, devices.read(devices.write(wanted)))

    def test_no_affinity_writes_no_policy(self):
        self.assertEqual({'pci_passthrough:alias': 'vf:2'},
                         devices.write((request('vf', 2),)))

    def test_what_no_flavor_can_request_is_refused(self):
        port = shape.DeviceRequest(None, 1, physnet='fast')
        for message, wanted in (
                ('Neutron ports', (port,)),
                ('not a PCI alias and a count', (request('a,b'),)),
                ('not a PCI alias and a count', (request(' a'),)),
                ('not a PCI alias and a count', (request('a', 0),)),
                ('same affinity policy',
                 (request('a'), request('b', 1, REQUIRED)))):
            with self.assertRaisesRegex(exception.InvalidInput, message):
                devices.write(wanted)
