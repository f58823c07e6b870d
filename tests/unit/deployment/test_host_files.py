# SPDX-License-Identifier: Apache-2.0

import dataclasses
import re
import unittest

import yaml

from hpcvirt.deployment import host_files
from hpcvirt.deployment import tree
from hpcvirt.flavors import kernel_settings
from hpcvirt.flavors import profile as profiles
from tests.builders import hosts
from tests.builders import plans


class HostFilesTest(unittest.TestCase):
    def test_every_file_is_known_as_hpcvirts_own(self):
        for host in hosts.shipped():
            for base in profiles.BUILT_IN.values():
                for path, text in plans.host_files(host, base).items():
                    self.assertTrue(text.startswith(tree.MARK), path)
                    self.assertFalse(path.startswith('/'))
                    self.assertRegex(text, '[^\n]\n$')

    def test_a_unit_reserves_the_pages_of_each_cell(self):
        text = plans.host_files(hosts.build(cores=4, mib=16384),
                                profiles.DENSE)[
            'etc/systemd/system/hpcvirt-pages.service']
        self.assertIn(
            "ExecStart=/bin/sh -c 'echo 6656 > /sys/devices/system/node/node1"
            "/hugepages/hugepages-2048kB/nr_hugepages'\n", text)

    def test_a_host_that_runs_keeps_its_pages_and_its_merged_memory(self):
        # Whatever starts a unit starts those that sysinit.target wants, too.
        found = plans.host_files(hosts.build(cores=4, mib=16384),
                                 profiles.DENSE)
        self.assertIn('\nConditionKernelCommandLine=hugepages=0:6656,1:6656\n',
                      found[host_files.PAGES[0]])
        # systemd-tmpfiles runs at boot, and whenever a package asks for it.
        self.assertIn('\nw! /sys/kernel/mm/ksm/run - - - - 2\n',
                      found['etc/tmpfiles.d/hpcvirt.conf'])
        for path, text in found.items():
            if path.startswith('etc/systemd'):
                self.assertNotIn('echo 2 > /sys/kernel/mm/ksm/run', text)

    def test_unused_pages_are_set_to_zero(self):
        text = plans.host_files(hosts.named('xeon-2s-24c-snc2-1g'))[
            'etc/systemd/system/hpcvirt-pages.service']
        self.assertIn('echo 0 > /sys/devices/system/node/node3/hugepages'
                      '/hugepages-1048576kB/nr_hugepages', text)

    def test_no_unit_for_normal_pages(self):
        found = plans.host_files(hosts.build(), page_size=4)
        self.assertNotIn('etc/systemd/system/hpcvirt-pages.service', found)

    def test_virtual_functions_are_created_at_boot(self):
        self.assertNotIn(host_files.VFS,
                         plans.host_files(hosts.build(vfs={1: 8})))
        self.assertIn(
            'ACTION=="add|bind", SUBSYSTEM=="pci", KERNEL=="0000:41:00.0", '
            'ATTR{sriov_numvfs}="8"',
            plans.host_files(hosts.build(vfs={1: 8}),
                             devices=(hosts.VFS,))[host_files.VFS])

    def test_network_devices_interrupt_and_have_rings_as_a_profile_says(self):
        for choices, commands in (
                ({}, ''),
                ({'moderate_interrupts': False},
                 'ethtool -C $$INTERFACE adaptive-rx off rx-usecs 0'),
                ({'ring_entries': 64}, 'ethtool -G $$INTERFACE rx 64 tx 64'),
                ({'moderate_interrupts': False, 'ring_entries': 128},
                 ('ethtool -C $$INTERFACE adaptive-rx off rx-usecs 0; '
                  'ethtool -G $$INTERFACE rx 128 tx 128'))):
            found = plans.host_files(hosts.build(), **choices)
            text = found.get(host_files.NETWORK, '')
            self.assertEqual(bool(commands), bool(text))
            self.assertIn(commands, text)

    def test_infiniband_cards_get_guids(self):
        host = hosts.build(vfs={1: 8})
        text = plans.host_files(host, devices=(hosts.VFS,))[host_files.VFS]
        self.assertIn('KERNELS=="0000:41:00.0", ATTR{type}=="32"', text)
        other = dataclasses.replace(host, devices=tuple(
            dataclasses.replace(device, vendor_id='8086')
            for device in host.devices))
        self.assertNotIn('guid', plans.host_files(
            other, devices=(dataclasses.replace(
                hosts.VFS, vendor_id='8086'),))[host_files.VFS])

    def test_no_variable_of_a_rule_is_one_of_udev(self):
        # udev replaces these even behind a doubled sign.
        rule = kernel_settings.format_guid_rule('0000:41:00.0', 8)
        names = re.findall(r'[$][$]([a-z_]+)', rule)
        self.assertIn('guid', names)
        for name in names:
            self.assertNotRegex(name, '^(kernel|number|devpath|id|driver|attr'
                                '|env|major|minor|result|parent|name|links|'
                                'root|sys|devnode|tempnode|sysfs)')

    def test_the_iommu_is_switched_by_what_each_architecture_knows(self):
        for processor, intel in ((None, True), ('Intel(R) Xeon(R)', True),
                                 ('AMD EPYC 9554', False),
                                 ('Arm, implementer 0x41, part 0xd0c', False)):
            host = dataclasses.replace(hosts.build(vfs={1: 8}),
                                       processor=processor)
            text = plans.host_files(host, devices=(hosts.VFS,))[
                host_files.COMMAND_LINE]
            self.assertRegex(text, r'\n.* iommu\.passthrough=1"')
            self.assertEqual(intel, 'intel_iommu=on' in text)

    def test_guests_with_all_cpus_leave_services_everywhere(self):
        path = 'etc/systemd/system.conf.d/90-hpcvirt.conf'
        self.assertIn('CPUAffinity=\nCPUAffinity=0,16\n',
                      plans.host_files(hosts.build())[path])
        slices = [plans.host_files(hosts.build())[path].rpartition('\n\n')[2]
                  for path in host_files.ALLOWED.values()]
        self.assertEqual(['[Slice]\nAllowedCPUs=0,16\n'] * 2
                         + ['[Scope]\nAllowedCPUs=0,16\n'], slices)
        dense = plans.host_files(hosts.build(), profiles.DENSE)
        self.assertNotIn(path, dense)
        self.assertFalse(set(host_files.ALLOWED.values()) & set(dense))
        path = 'etc/systemd/system/irqbalance.service.d/90-hpcvirt.conf'
        self.assertNotIn(path, dense)
        self.assertIn('\n[Service]\nEnvironment=IRQBALANCE_BANNED_CPULIST='
                      '1-15,17-31\n', plans.host_files(hosts.build())[path])

    def test_the_provider_has_the_traits_that_flavors_require(self):
        text = plans.host_files(hosts.build(), extra_specs=(
            ('trait:CUSTOM_HPC', 'required'),
            ('trait:CUSTOM_HPCVIRT_OVERHEAD_LE_3', 'required'),
            ('trait:CUSTOM_OLD', 'forbidden'),
            ('trait:HW_CPU_X86_AVX2', 'required')))[host_files.PROVIDER]
        (provider,) = yaml.safe_load(text)['providers']
        self.assertEqual({'additional': ['CUSTOM_HPC']}, provider['traits'])
        self.assertNotIn(host_files.PROVIDER, plans.host_files(hosts.build()))
