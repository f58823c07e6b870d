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
from hpcvirt.flavors import host_part
from hpcvirt.flavors import lint_hosts
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile
from tests import hosts
from tests.unit.flavors.test_lint import flavor


class LintHostsTest(unittest.TestCase):

    def found(self, host, *args, **changes):
        return {(item.code, item.severity.value)
                for item in lint_hosts.lint(flavor(*args, **changes), [host],
                                            profile.Profile())}

    def test_a_flavor_that_tiles_has_no_findings(self):
        self.assertEqual(set(), self.found(hosts.build(), ram=8192))

    def test_unused_cpus_are_a_warning(self):
        self.assertEqual({('strands-cpus', 'warning')},
                         self.found(hosts.build(), 6))

    def test_cpus_without_memory_are_a_warning(self):
        self.assertEqual({('strands-cpus', 'warning')},
                         self.found(hosts.build(), ram=40960))

    def test_a_guest_that_is_too_large_does_not_fit(self):
        self.assertEqual({('does-not-fit', 'error')},
                         self.found(hosts.build(), 24))

    def test_isolate_is_an_error_on_smt(self):
        self.assertIn(('isolate-on-smt', 'error'), self.found(
            hosts.build(threads=2), hw__cpu_thread_policy='isolate'))

    def test_pages_that_the_host_cannot_have_are_an_error(self):
        self.assertIn(('no-such-pages', 'error'), self.found(
            hosts.build(small_kib=64), hw__mem_page_size='1GB'))

    def on_gpus(self, wanted, *args, **changes):
        host = hosts.build(gpus={0: 4, 1: 4})
        return {(item.code, item.severity.value)
                for item in lint_hosts.lint(flavor(*args, **changes), [host],
                                            profile.Profile(devices=wanted))}

    def test_devices_of_the_profile_are_counted(self):
        gpu = profile.Devices(profile.Kind.WHOLE, alias='gpu',
                              vendor_id='10de', product_id='20b0')
        for count, expected in (
                (1, {('strands-devices', 'warning')}), (2, set()),
                (8, {('strands-cpus', 'warning')}),
                (9, {('does-not-fit', 'error')})):
            self.assertEqual(expected, self.on_gpus(
                gpu, pci_passthrough__alias=f'gpu:{count}'))
        self.assertEqual(set(), self.on_gpus(
            gpu, pci_passthrough__alias='other:9'))
        self.assertEqual(set(), self.on_gpus(gpu))

    def test_vgpus_of_the_profile_are_counted(self):
        vgpu = profile.Devices(
            profile.Kind.VGPU, vendor_id='10de', product_id='20b0',
            mdev_type='nvidia-474', vgpus_per_device=2)
        for count, expected in (
                (1, {('strands-devices', 'warning')}),
                (2, {('strands-devices', 'warning')}),
                (3, {('does-not-fit', 'error')})):
            self.assertEqual(expected, self.on_gpus(
                vgpu, resources__VGPU=str(count)))
        self.assertEqual(set(), self.on_gpus(
            vgpu, resources__CUSTOM_VGPU='9'))

    def test_planned_flavors_with_devices_have_no_findings(self):
        host = hosts.build(gpus={0: 4, 1: 4})
        choices = profile.Profile(devices=profile.Devices(
            profile.Kind.WHOLE, None, alias='gpu', vendor_id='10de',
            product_id='20b0'), all_host_steps=False)
        rows = planner.plan([host], choices).flavors
        self.assertGreater(len(rows), 2)
        for row in rows:
            self.assertEqual((), lint_hosts.lint(row.flavor, [host],
                                                 choices))

    def test_flavors_that_nova_refuses_are_skipped(self):
        self.assertEqual(set(), self.found(hosts.build(),
                                           hw__numa_nodes='3'))

    def test_planned_flavors_fit_their_hosts(self):
        for host in hosts.shipped():
            for row in planner.plan([host], profile.Profile()).flavors:
                codes = {item.code for item in lint_hosts.lint(
                    row.flavor, [host], profile.Profile())}
                self.assertLessEqual(codes, {'strands-cpus'}, row.flavor)

    def test_flavors_planned_with_packing_fit_their_hosts(self):
        packing = profile.Profile(pack_cells=True)
        for host in hosts.shipped():
            for row in planner.plan([host], packing).flavors:
                codes = {item.code for item in lint_hosts.lint(
                    row.flavor, [host], packing)}
                self.assertLessEqual(codes, {'strands-cpus'}, row.flavor)

    def test_hosts_with_one_problem_share_a_finding(self):
        fleet = [hosts.build(name=f'node-{number:03}',
                             mib=65536 + number % 2)
                 for number in range(1, 301)]
        found = lint_hosts.lint(flavor(6), fleet, profile.Profile())
        self.assertEqual(1, len(found))
        self.assertEqual(
            '300 hosts (node-001, node-003, ...): the 4 instances that fit '
            'leave 8 of 32 dedicated CPUs unused', found[0].message)
        self.assertEqual({host.name for host in fleet}, set(found[0].hosts))

    def test_only_the_part_for_guests_counts(self):
        host = hosts.build(cells=2, cores=16)
        part = host_part.build('0-15', ['2M:2048'])
        flavors = {(8, 2048): set(), (8, 4096): {'strands-cpus'},
                   (16, 8192): {'does-not-fit'}}
        for (vcpus, ram), expected in flavors.items():
            self.assertEqual(expected, {
                item.code for item in lint_hosts.lint(
                    flavor(vcpus, ram), [host], profile.Profile(), part)})

    def test_a_part_that_the_host_lacks_is_an_error(self):
        with self.assertRaisesRegex(exception.InvalidInput, 'no CPU 99'):
            lint_hosts.lint(flavor(), [hosts.build()], profile.Profile(),
                            host_part.build('99', ()))
