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

from hpcvirt.flavors import catalogue
from hpcvirt.flavors import lint
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile
from hpcvirt.specs import vocabulary
from tests import hosts

GOOD = {'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '2048',
        'hw:numa_nodes': '1', 'hw:cpu_sockets': '1', 'hw:cpu_cores': '8',
        'hw:cpu_threads': '1'}


def flavor(vcpus=8, ram=8192, **changes):
    specs = dict(GOOD)
    for key, value in changes.items():
        name = key.replace('__', ':').replace('_0', '.0').replace('_1', '.1')
        if value is None:
            del specs[name]
        else:
            specs[name] = value
    return catalogue.Flavor('f', vcpus, ram, 0, specs)


def found(vcpus=8, ram=8192, **changes):
    return {(item.code, item.severity.value, item.key)
            for item in lint.lint(flavor(vcpus, ram, **changes))}


def cells(cpus_0, cpus_1, mem_0, mem_1):
    return {'hw__numa_nodes': '2', 'hw__numa_cpus_0': cpus_0,
            'hw__numa_cpus_1': cpus_1, 'hw__numa_mem_0': mem_0,
            'hw__numa_mem_1': mem_1}


class LintTest(unittest.TestCase):

    def assert_found(self, expected, *args, **changes):
        self.assertIn(expected, found(*args, **changes))

    def test_a_good_flavor_has_no_findings(self):
        self.assertEqual(set(), found())

    def test_own_flavors_have_no_errors(self):
        for host in hosts.shipped():
            for row in planner.plan([host], profile.Profile()).flavors:
                errors = [item for item in lint.lint(row.flavor)
                          if item.severity == 'error']
                self.assertEqual([], errors)

    def test_own_flavors_for_equal_cells_have_no_warnings_either(self):
        for cells_, threads in ((1, 2), (2, 1), (4, 2)):
            plan = planner.plan([hosts.build(cells=cells_, threads=threads)],
                                profile.Profile())
            for row in plan.flavors:
                self.assertEqual((), lint.lint(row.flavor))

    def test_a_the_smallest_cell_first(self):
        self.assert_found(
            ('smallest-cell-first', 'error', 'hw:numa_cpus.0'),
            **cells('0-1', '2-7', '2048', '6144'))
        self.assert_found(
            ('smallest-cell-first', 'error', 'hw:numa_cpus.0'),
            **cells('0-3', '4-7', '2048', '6144'))

    def test_a_the_largest_cell_first_is_only_not_equal(self):
        codes = {code for code, _, _ in found(
            **cells('0-5', '6-7', '6144', '2048'))}
        self.assertEqual({'unequal-cells'}, codes)

    def test_b_several_required_devices_beside_several_cells(self):
        required = {'hw__numa_nodes': '2',
                    'hw__pci_numa_affinity_policy': 'required'}
        key = 'hw:pci_numa_affinity_policy'
        note = ('affinity-in-moves', 'note', key)
        self.assert_found(
            ('several-required-devices', 'error', key),
            pci_passthrough__alias='a:1,b:1', **required)
        self.assert_found(
            ('several-required-devices', 'warning', key),
            pci_passthrough__alias='a:2', **required)
        self.assertEqual({note}, found(pci_passthrough__alias='a:1',
                                       **required))
        self.assertEqual({note}, found(
            pci_passthrough__alias='a:1,b:1',
            hw__pci_numa_affinity_policy='required'))

    def test_i_affinity_policies_that_moves_ignore(self):
        self.assertEqual(set(), found(pci_passthrough__alias='a:1'))
        self.assertEqual(set(), found(
            hw__pci_numa_affinity_policy='preferred'))
        self.assert_found(
            ('affinity-in-moves', 'note', 'hw:pci_numa_affinity_policy'),
            pci_passthrough__alias='a:1',
            hw__pci_numa_affinity_policy='preferred')

    def test_vgpus_may_be_far_from_the_cpus(self):
        for key in ('resources__VGPU', 'resources1__VGPU'):
            self.assert_found(
                ('vgpu-anywhere', 'note', key.replace('__', ':')
                 ), **{key: '1'})
        self.assertEqual(set(), found(resources__CUSTOM_FPGA='1'))

    def test_c_page_sizes_by_class(self):
        for size in ('large', 'any'):
            self.assert_found(
                ('page-size-class', 'error', 'hw:mem_page_size'),
                hw__mem_page_size=size)

    def test_d_many_guest_cells(self):
        self.assert_found(('many-cells', 'note', 'hw:numa_nodes'),
                          hw__numa_nodes='8')

    def test_e_half_cores(self):
        key = 'hw:cpu_thread_policy'
        self.assert_found(('half-cores', 'warning', key), 7,
                          hw__cpu_cores='7')
        self.assert_found(('half-cores', 'warning', key), 7,
                          hw__cpu_cores='7', hw__cpu_thread_policy='require')

    def test_siblings_need_the_policy_require(self):
        self.assert_found(
            ('siblings-not-held', 'warning', 'hw:cpu_threads'),
            hw__cpu_cores='4', hw__cpu_threads='2')
        self.assertEqual(set(), found(
            hw__cpu_cores='4', hw__cpu_threads='2',
            hw__cpu_thread_policy='require'))

    def test_isolate_finds_only_hosts_without_smt(self):
        self.assert_found(('isolate', 'warning', 'hw:cpu_thread_policy'),
                          hw__cpu_thread_policy='isolate')

    def test_small_pages_and_no_page_size(self):
        for size in ('small', None):
            self.assert_found(('small-pages', 'warning', 'hw:mem_page_size'),
                              hw__mem_page_size=size)

    def test_memory_that_is_not_whole_pages(self):
        self.assert_found(('not-whole-pages', 'error', 'ram'), ram=8193)
        self.assert_found(('not-whole-pages', 'error', 'ram'),
                          ram=9216, hw__numa_nodes='2',
                          hw__mem_page_size='1GB')

    def test_cpus_that_are_not_dedicated(self):
        self.assert_found(('not-pinned', 'warning', 'hw:numa_nodes'),
                          hw__cpu_policy=None)
        self.assert_found(('not-pinned', 'warning', 'hw:cpu_policy'),
                          hw__cpu_policy='shared', hw__numa_nodes=None,
                          hw__mem_page_size=None)

    def test_isolated_emulators_cost_a_cpu(self):
        self.assert_found(
            ('emulator-cpu', 'note', 'hw:emulator_threads_policy'),
            hw__emulator_threads_policy='isolate')

    def test_unknown_keys_and_bad_values(self):
        self.assert_found(('unknown-key', 'error', 'hw:cpu_polcy'),
                          hw__cpu_polcy='dedicated')
        self.assert_found(('unknown-key', 'error', 'hpcvirt:scope'),
                          hpcvirt__scope='package')
        self.assert_found(('bad-value', 'error', 'hw:cpu_policy'),
                          hw__cpu_policy='Dedicated')

    def test_keys_of_others_are_theirs(self):
        self.assertEqual(set(), found(quota__cpu_shares='3',
                                      aggregate__x='y'))

    def test_what_nova_refuses_is_told_once(self):
        refused = lint.lint(flavor(hw__numa_nodes='3'))
        self.assertEqual([('refused', 'hw:numa_nodes')],
                         [(item.code, item.key) for item in refused])
        bad = lint.lint(flavor(hw__cpu_policy='Dedicated'))
        self.assertEqual(['bad-value'], [item.code for item in bad])

    def test_a_topology_that_nova_cannot_give(self):
        self.assert_found(
            ('topology-mismatch', 'warning', 'hw:cpu_sockets'),
            hw__cpu_cores='5')

    def test_cells_that_do_not_exist(self):
        self.assert_found(('no-such-cell', 'warning', 'hw:numa_mem.1'),
                          hw__numa_mem_1='4096')

    def test_a_flavor_of_ours_that_was_changed(self):
        marked = catalogue.marked(8, 8192, 0, GOOD)
        changed = catalogue.Flavor('f', 8, 8192, 0, {
            **marked, 'hw:mem_page_size': '4'})
        self.assertIn('edited', [item.code for item in lint.lint(changed)])

    def test_every_finding_has_advice_and_a_known_key(self):
        for changes in ({'hw__mem_page_size': 'any'}, {'ram': 8193},
                        {'hw__cpu_thread_policy': 'isolate'},
                        cells('0-1', '2-7', '2048', '6144')):
            for item in lint.lint(flavor(**changes)):
                self.assertTrue(item.advice)
                self.assertTrue(item.key in ('ram', 'vcpus')
                                or vocabulary.find(item.key))
