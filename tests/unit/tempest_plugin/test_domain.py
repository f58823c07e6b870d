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

"""Definitions of libvirt domains."""

import unittest

from hpcvirt import exception
from hpcvirt.tempest_plugin import domain

# As Nova 34 defines it for a guest of two cells; shortened.
TEXT = """
<domain type='qemu' id='1'>
  <memoryBacking><hugepages>
    <page size='2048' unit='KiB' nodeset='0-1'/>
  </hugepages></memoryBacking>
  <vcpu placement='static'>2</vcpu>
  <cputune>
    <vcpupin vcpu='0' cpuset='4'/>
    <vcpupin vcpu='1' cpuset='9'/>
    <emulatorpin cpuset='4,9'/>
  </cputune>
  <numatune>
    <memory mode='strict' nodeset='0-1'/>
    <memnode cellid='0' mode='strict' nodeset='0'/>
    <memnode cellid='1' mode='strict' nodeset='1'/>
  </numatune>
  <cpu><topology sockets='2' dies='1' cores='1' threads='1'/></cpu>
  <devices><hostdev mode='subsystem' type='pci'/></devices>
</domain>"""


class DomainTest(unittest.TestCase):

    def test_everything_is_read(self):
        found = domain.parse(TEXT)
        self.assertEqual(2, found.vcpus)
        self.assertEqual({0: {4}, 1: {9}}, found.vcpu_pins)
        self.assertEqual({4, 9}, found.emulator_pins)
        self.assertEqual({0: {0}, 1: {1}}, found.memory_cells)
        self.assertTrue(found.strict)
        self.assertEqual({0: 2048, 1: 2048}, found.pages)
        self.assertEqual((2, 1, 1), found.topology)
        self.assertEqual(1, found.devices)

    def test_memory_that_is_not_bound_strictly_shows(self):
        text = TEXT.replace("cellid='1' mode='strict'",
                            "cellid='1' mode='preferred'")
        self.assertFalse(domain.parse(text).strict)

    def test_guest_without_any_of_it_is_empty(self):
        found = domain.parse('<domain><vcpu>1</vcpu></domain>')
        self.assertEqual({}, found.vcpu_pins)
        self.assertFalse(found.strict)
        self.assertIsNone(found.topology)

    def test_what_is_no_domain_is_refused(self):
        for text in ('', '<domain/>', '<network><vcpu>1</vcpu></network>',
                     '<!DOCTYPE x [<!ENTITY a "b">]><domain>&a;</domain>'):
            with self.subTest(text=text):
                self.assertRaises(exception.InvalidInput, domain.parse, text)
