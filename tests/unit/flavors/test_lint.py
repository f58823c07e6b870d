# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt import exception
from hpcvirt.flavors import catalogue
from hpcvirt.flavors import host_part
from hpcvirt.flavors import lint
from hpcvirt.flavors import lint_hosts
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile
from hpcvirt.model import flavor as flavor_model
from hpcvirt.specs import vocabulary
from tests.builders import hosts

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
    return flavor_model.Flavor('f', vcpus, ram, 0, specs)


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
        self.assert_found(('half-cores', 'warning', key), 7, hw__cpu_cores='7')
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
        self.assert_found(('not-whole-pages', 'error', 'ram'), ram=9216,
                          hw__numa_nodes='2', hw__mem_page_size='1GB')

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
                          hpcvirt__scope='socket')
        self.assert_found(('bad-value', 'error', 'hw:cpu_policy'),
                          hw__cpu_policy='Dedicated')

    def test_keys_of_others_are_theirs(self):
        self.assertEqual(set(), found(quota__cpu_shares='3', aggregate__x='y'))

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
        marked = catalogue.mark_specs(8, 8192, 0, GOOD)
        changed = flavor_model.Flavor('f', 8, 8192, 0, {
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


class LintHostsTest(unittest.TestCase):
    def found(self, host, *args, **changes):
        return {(item.code, item.severity.value)
                for item
                in lint_hosts.check_hosts(flavor(*args, **changes), [host],
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
                for item
                in lint_hosts.check_hosts(flavor(*args, **changes), [host],
                                              profile.Profile(
                                                  devices=(wanted,)))}

    def test_devices_of_the_profile_are_counted(self):
        gpu = profile.Devices(profile.DeviceKind.WHOLE, alias='gpu',
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
            profile.DeviceKind.VGPU, vendor_id='10de', product_id='20b0',
            mdev_type='nvidia-474', vgpus_per_device=2)
        for count, expected in (
                (1, {('strands-devices', 'warning')}),
                (2, {('strands-devices', 'warning')}),
                (3, {('does-not-fit', 'error')})):
            self.assertEqual(expected, self.on_gpus(
                vgpu, resources__VGPU=str(count)))
        self.assertEqual(set(), self.on_gpus(vgpu, resources__CUSTOM_VGPU='9'))

    def test_planned_flavors_with_devices_have_no_findings(self):
        host = hosts.build(gpus={0: 4, 1: 4})
        choices = profile.Profile(devices=(profile.Devices(
            profile.DeviceKind.WHOLE, None, alias='gpu', vendor_id='10de',
            product_id='20b0'),), all_host_steps=False)
        rows = planner.plan([host], choices).flavors
        self.assertGreater(len(rows), 2)
        for row in rows:
            self.assertEqual((), lint_hosts.check_hosts(
                row.flavor, [host], choices))

    def test_flavors_that_nova_refuses_are_skipped(self):
        self.assertEqual(set(), self.found(hosts.build(), hw__numa_nodes='3'))

    def test_planned_flavors_fit_their_hosts(self):
        for host in hosts.shipped():
            for row in planner.plan([host], profile.Profile()).flavors:
                codes = {item.code for item in lint_hosts.check_hosts(
                    row.flavor, [host], profile.Profile())}
                self.assertLessEqual(codes, {'strands-cpus'}, row.flavor)

    def test_flavors_planned_with_packing_fit_their_hosts(self):
        packing = profile.Profile(pack_cells=True)
        for host in hosts.shipped():
            for row in planner.plan([host], packing).flavors:
                codes = {item.code for item in lint_hosts.check_hosts(
                    row.flavor, [host], packing)}
                self.assertLessEqual(codes, {'strands-cpus'}, row.flavor)

    def test_hosts_with_one_problem_share_a_finding(self):
        fleet = [hosts.build(name=f'node-{number:03}',
                             mib=65536 + number % 2)
                 for number in range(1, 301)]
        found = lint_hosts.check_hosts(flavor(6), fleet, profile.Profile())
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
                item.code for item in lint_hosts.check_hosts(
                    flavor(vcpus, ram), [host], profile.Profile(),
                    part)})

    def test_a_part_that_the_host_lacks_is_an_error(self):
        with self.assertRaisesRegex(exception.InvalidInput, 'no CPU 99'):
            lint_hosts.check_hosts(flavor(), [hosts.build()],
                                   profile.Profile(),
                                   host_part.build('99', ()))
