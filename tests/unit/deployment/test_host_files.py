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

import yaml

from hpcvirt.deployment import host_files
from hpcvirt.deployment import steps
from hpcvirt.deployment import tree
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from tests import hosts

VF = profiles.Devices(vendor_id='15b3', product_id='101e')


def files(host, base=profiles.DEFAULT, **choices):
    plan = planner.plan([host], dataclasses.replace(base, **choices))
    return {file.path: file.text
            for file in host_files.files(plan.hosts[0], plan)}


class HostFilesTest(unittest.TestCase):

    def test_every_file_is_known_as_hpcvirts_own(self):
        for host in hosts.shipped():
            for base in profiles.BUILT_IN.values():
                for path, text in files(host, base).items():
                    self.assertTrue(text.startswith(tree.MARK), path)
                    self.assertFalse(path.startswith('/'))
                    self.assertRegex(text, '[^\n]\n$')

    def test_a_unit_reserves_the_pages_of_each_cell(self):
        text = files(hosts.build(cores=4, mib=16384), profiles.DENSE)[
            'etc/systemd/system/hpcvirt-pages.service']
        self.assertIn(
            "ExecStart=/bin/sh -c 'echo 6656 > /sys/devices/system/node/node1"
            "/hugepages/hugepages-2048kB/nr_hugepages'\n", text)

    def test_unused_pages_are_set_to_zero(self):
        text = files(hosts.named('xeon-2s-24c-snc2-1g'))[
            'etc/systemd/system/hpcvirt-pages.service']
        self.assertIn('echo 0 > /sys/devices/system/node/node3/hugepages'
                      '/hugepages-1048576kB/nr_hugepages', text)

    def test_no_unit_for_normal_pages(self):
        found = files(hosts.build(), page_size=4)
        self.assertNotIn('etc/systemd/system/hpcvirt-pages.service', found)

    def test_virtual_functions_are_created_at_boot(self):
        self.assertNotIn(host_files.VFS, files(hosts.build(vfs={1: 8})))
        self.assertIn(
            'ACTION=="bind", SUBSYSTEM=="pci", KERNEL=="0000:41:00.0", '
            'ATTR{sriov_numvfs}="8"',
            files(hosts.build(vfs={1: 8}), devices=VF)[host_files.VFS])

    def test_guests_with_all_cpus_leave_services_everywhere(self):
        path = 'etc/systemd/system.conf.d/90-hpcvirt.conf'
        self.assertIn('CPUAffinity=\nCPUAffinity=0,16\n',
                      files(hosts.build())[path])
        dense = files(hosts.build(), profiles.DENSE)
        self.assertNotIn(path, dense)
        self.assertNotIn('isolated_cores',
                         dense['etc/tuned/hpcvirt/tuned.conf'])

    def test_the_provider_has_the_traits_that_flavors_require(self):
        text = files(hosts.build(), extra_specs=(
            ('trait:CUSTOM_HPC', 'required'),
            ('trait:CUSTOM_HPCVIRT_OVERHEAD_LE_3', 'required'),
            ('trait:CUSTOM_OLD', 'forbidden'),
            ('trait:HW_CPU_X86_AVX2', 'required')))[host_files.PROVIDER]
        (provider,) = yaml.safe_load(text)['providers']
        self.assertEqual({'additional': ['CUSTOM_HPC']}, provider['traits'])
        self.assertNotIn(host_files.PROVIDER, files(hosts.build()))


class StepsTest(unittest.TestCase):

    def test_what_is_no_longer_needed_is_removed(self):
        present = files(hosts.build(vfs={1: 8}), devices=VF)
        found = steps.compare(
            [tree.File(path, text) for path, text
             in files(hosts.build(vfs={1: 8})).items()], present)
        removed = [step for step in found
                   if step.change is steps.Change.REMOVED]
        self.assertEqual([host_files.VFS],
                         [step.file.path for step in removed])
        self.assertIn(f'--- a/{host_files.VFS}',
                      list(removed[0].difference()))

    def test_files_of_others_are_neither_changed_nor_removed(self):
        found = steps.compare([tree.File('a', tree.MARK)], {
            'a': 'mine', host_files.VFS: 'mine'})
        self.assertEqual([steps.Change.FOREIGN],
                         [step.change for step in found])

    def test_options_that_another_file_sets_are_named(self):
        own = files(hosts.build())[host_files.NOVA_CONF]
        found = list(steps.conflicts(own, {
            'etc/nova/nova.conf': '[DEFAULT]\nreserved_host_cpus=2\n'
            'cpu_dedicated_set=1\n[compute]\n# cpu_shared_set = 0\n'
            'cpu_dedicated_set = 1\n'}))
        self.assertEqual(2, len(found))
        self.assertIn('[compute]cpu_dedicated_set too', found[0])
        self.assertIn('[DEFAULT]reserved_host_cpus, with which', found[1])
