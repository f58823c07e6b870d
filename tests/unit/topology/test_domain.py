# SPDX-License-Identifier: Apache-2.0

import pathlib
import unittest

from hpcvirt import exception
from hpcvirt.topology import domain

# As Nova 34 defines it for a guest of two cells; shortened.
TEXT = """
<domain type='qemu' id='1'>
  <uuid>8f1f2c5e-3a06-4f3a-9f5d-5f0a3c1f8a11</uuid>
  <metadata>
    <nova:instance xmlns:nova='http://openstack.org/xmlns/libvirt/nova/1.1'>
      <nova:name>solver</nova:name>
      <nova:flavor name='hpc'>
        <nova:vcpus>3</nova:vcpus>
        <nova:extraSpecs>
          <nova:extraSpec name='hw:cpu_policy'>mixed</nova:extraSpec>
          <nova:extraSpec name='hw:cpu_dedicated_mask'>0-1</nova:extraSpec>
        </nova:extraSpecs>
      </nova:flavor>
    </nova:instance>
  </metadata>
  <memory unit='KiB'>2097152</memory>
  <memoryBacking><hugepages>
    <page size='2048' unit='KiB' nodeset='0'/>
  </hugepages></memoryBacking>
  <vcpu placement='static'>3</vcpu>
  <cputune>
    <vcpupin vcpu='0' cpuset='4'/>
    <vcpupin vcpu='1' cpuset='9'/>
    <vcpupin vcpu='2' cpuset='1-2'/>
    <emulatorpin cpuset='4,9'/>
  </cputune>
  <numatune>
    <memory mode='strict' nodeset='0-1'/>
    <memnode cellid='0' mode='strict' nodeset='0'/>
    <memnode cellid='1' mode='strict' nodeset='1'/>
  </numatune>
  <cpu>
    <topology sockets='3' dies='1' cores='1' threads='1'/>
    <numa>
      <cell id='0' cpus='0' memory='524288' unit='KiB'/>
      <cell id='1' cpus='1-2' memory='1572864' unit='KiB'/>
    </numa>
  </cpu>
  <devices>
    <hostdev mode='subsystem' type='pci' managed='yes'>
      <source>
        <address domain='0x0000' bus='0x41' slot='0x02' function='0x1'/>
      </source>
      <address type='pci' domain='0x0000' bus='0x00' slot='0x05'/>
    </hostdev>
    <hostdev mode='subsystem' type='usb'>
      <source><address bus='1' device='2'/></source>
    </hostdev>
    <interface type='hostdev' managed='yes'>
      <source>
        <address type='pci' domain='0x0' bus='0x21' slot='0x0' function='0x0'/>
      </source>
    </interface>
    <interface type='bridge'><source bridge='br0'/></interface>
  </devices>
</domain>"""


class DomainTest(unittest.TestCase):
    def test_everything_is_read(self):
        self.assertEqual(domain.Domain(
            uuid='8f1f2c5e-3a06-4f3a-9f5d-5f0a3c1f8a11', name='solver',
            vcpus=3, memory_mib=2048,
            cells=(domain.DomainCell(frozenset({0}), strict=True,
                                     vcpus=frozenset({0}), memory_mib=512,
                                     page_kib=2048),
                   domain.DomainCell(frozenset({1}), strict=True,
                                     vcpus=frozenset({1, 2}), memory_mib=1536,
                                     page_kib=4)),
            pins={0: frozenset({4}), 1: frozenset({9}),
                  2: frozenset({1, 2})},
            emulator=frozenset({4, 9}),
            devices=('0000:21:00.0', '0000:41:02.1'), topology=(3, 1, 1),
            extra_specs={'hw:cpu_policy': 'mixed',
                         'hw:cpu_dedicated_mask': '0-1'},
            guest_addresses={'0000:41:02.1': '0000:00:05.0'}),
            domain.read(TEXT))

    def test_only_a_guest_cpu_with_one_host_cpu_is_pinned(self):
        found = domain.read(TEXT)
        self.assertEqual({4, 9}, found.pinned)
        self.assertEqual([{4}, {9}], [found.pinned_of(cell)
                                      for cell in found.cells])

    def test_memory_may_be_bound_to_some_host_cells_or_to_none(self):
        whole = "<memnode cellid='1' mode='strict' nodeset='1'/>"
        for change, cells, strict in (
                (whole.replace('strict', 'preferred'), {1}, False),
                (whole.replace("nodeset='1'", "nodeset='1-2'"), {1, 2}, True),
                ('', set(), False)):
            found = domain.read(TEXT.replace(whole, change))
            self.assertEqual((cells, strict), (found.cells[1].host_cells,
                                               found.cells[1].strict))
            # There is a host cell only if there is exactly one.
            self.assertEqual((0, 1 if cells == {1} else None),
                             found.host_cells)

    def test_buses_have_the_numbers_of_the_firmware(self):
        """As ``info pci`` of QEMU 7.2 with SeaBIOS 1.16 printed them."""
        found = domain.read((pathlib.Path(__file__).parents[2]
                             / 'data/guests/expander-domain.xml').read_text())
        self.assertEqual({
            '0000:98:00.0': '0000:81:00.0', '0000:19:00.0': '0000:82:00.0',
            '0000:18:00.0': '0000:c3:00.0', '0000:41:00.2': '0000:c4:00.0',
            '0000:99:00.0': '0000:02:00.0'}, found.guest_addresses)

    def test_a_device_without_a_place_has_no_guest_address(self):
        self.assertEqual({'0000:41:02.1': '0000:00:05.0'},
                         domain.read(TEXT).guest_addresses)

    def test_guest_without_any_of_it_is_empty(self):
        found = domain.read('<domain><memory>1024</memory><vcpu>1</vcpu>'
                            '</domain>')
        self.assertEqual(
            domain.Domain(uuid='', name='', vcpus=1, memory_mib=1, cells=(),
                          pins={}, emulator=frozenset(), devices=(),
                          topology=None), found)

    def test_other_documents_are_refused(self):
        whole = '<memory>1024</memory><vcpu>1</vcpu>'
        entity = '<!DOCTYPE x [<!ENTITY a "b">]>'
        for text in ('', '<domain/>', f'<network>{whole}</network>',
                     '<domain><vcpu>1</vcpu></domain>',
                     '<domain><memory>1024</memory></domain>',
                     TEXT.replace("vcpu='1'", ''),
                     TEXT.replace("bus='0x41' ", ''),
                     f'{entity}<domain>{whole}&a;</domain>'):
            with self.subTest(text=text):
                self.assertRaises(exception.InvalidInput, domain.read, text)
