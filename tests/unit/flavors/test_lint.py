# SPDX-License-Identifier: Apache-2.0

import dataclasses
import unittest

from hpcvirt import exception
from hpcvirt.flavors import catalogue
from hpcvirt.flavors import compiled_flavor
from hpcvirt.flavors import host_part
from hpcvirt.flavors import lint
from hpcvirt.flavors import lint_hosts
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile
from hpcvirt.model import flavor as flavor_model
from hpcvirt.specs import vocabulary
from tests.builders import hosts
from tests.builders import planned_sets
from tests.builders import wired

GOOD = {'hw:cpu_policy': 'dedicated', 'hw:mem_page_size': '2048',
        'hw:numa_nodes': '1', 'hw:cpu_sockets': '1', 'hw:cpu_cores': '8',
        'hw:cpu_threads': '1'}


AFFINITY = 'hw:pci_numa_affinity_policy'
ALIAS = 'pci_passthrough:alias'
SET = 'hpcvirt:device_set'
THREADS = 'hw:cpu_thread_policy'


def flavor(specs=None, vcpus=8, ram=8192):
    """Change extra specs of a good flavor; None takes one away."""
    changed = {**GOOD, **(specs or {})}
    return flavor_model.Flavor('f', vcpus, ram, 0, {
        key: value for key, value in changed.items() if value is not None})


def found(specs=None, **sizes):
    return {(item.code, item.severity.value, item.key)
            for item in lint.lint(flavor(specs, **sizes))}


def cells(cpus_0, cpus_1, mem_0, mem_1):
    return {'hw:numa_nodes': '2', 'hw:numa_cpus.0': cpus_0,
            'hw:numa_cpus.1': cpus_1, 'hw:numa_mem.0': mem_0,
            'hw:numa_mem.1': mem_1}


#: What is found, how severe it is, of which key, in a flavor with which specs
#: and sizes.
FINDINGS = (
    ('smallest-cell-first', 'error', 'hw:numa_cpus.0',
     cells('0-1', '2-7', '2048', '6144'), {}),
    ('smallest-cell-first', 'error', 'hw:numa_cpus.0',
     cells('0-3', '4-7', '2048', '6144'), {}),
    ('several-required-devices', 'error', AFFINITY,
     {'hw:numa_nodes': '2', AFFINITY: 'required', ALIAS: 'a:1,b:1'}, {}),
    ('several-required-devices', 'warning', AFFINITY,
     {'hw:numa_nodes': '2', AFFINITY: 'required', ALIAS: 'a:2'}, {}),
    ('affinity-in-moves', 'note', AFFINITY,
     {ALIAS: 'a:1', AFFINITY: 'preferred'}, {}),
    ('vgpu-anywhere', 'note', 'resources:VGPU', {'resources:VGPU': '1'}, {}),
    ('vgpu-anywhere', 'note', 'resources1:VGPU', {'resources1:VGPU': '1'}, {}),
    ('page-size-class', 'warning', 'hw:mem_page_size',
     {'hw:mem_page_size': 'large'}, {}),
    ('page-size-class', 'warning', 'hw:mem_page_size',
     {'hw:mem_page_size': 'any'}, {}),
    ('many-cells', 'note', 'hw:numa_nodes', {'hw:numa_nodes': '6'},
     {'vcpus': 12, 'ram': 12288}),
    ('half-cores', 'warning', THREADS, {'hw:cpu_cores': '7'}, {'vcpus': 7}),
    ('half-cores', 'warning', THREADS,
     {'hw:cpu_cores': '7', THREADS: 'require'}, {'vcpus': 7}),
    ('siblings-not-held', 'warning', 'hw:cpu_threads',
     {'hw:cpu_cores': '4', 'hw:cpu_threads': '2'}, {}),
    ('isolate', 'warning', THREADS, {THREADS: 'isolate'}, {}),
    ('small-pages', 'warning', 'hw:mem_page_size',
     {'hw:mem_page_size': 'small'}, {}),
    ('small-pages', 'warning', 'hw:mem_page_size',
     {'hw:mem_page_size': None}, {}),
    ('not-whole-pages', 'error', 'ram', {}, {'ram': 8193}),
    ('not-whole-pages', 'error', 'ram',
     {'hw:numa_nodes': '2', 'hw:mem_page_size': '1GB'}, {'ram': 9216}),
    ('not-pinned', 'warning', 'hw:numa_nodes', {'hw:cpu_policy': None}, {}),
    ('not-pinned', 'warning', 'hw:cpu_policy',
     {'hw:cpu_policy': 'shared', 'hw:numa_nodes': None,
      'hw:mem_page_size': None}, {}),
    ('emulator-cpu', 'note', 'hw:emulator_threads_policy',
     {'hw:emulator_threads_policy': 'isolate'}, {}),
    ('unknown-key', 'error', 'hw:cpu_polcy',
     {'hw:cpu_polcy': 'dedicated'}, {}),
    ('unknown-key', 'error', 'hpcvirt:scope', {'hpcvirt:scope': 'socket'}, {}),
    ('bad-value', 'error', 'hw:cpu_policy',
     {'hw:cpu_policy': 'Dedicated'}, {}),
    ('topology-mismatch', 'warning', 'hw:cpu_sockets',
     {'hw:cpu_cores': '5'}, {}),
    ('no-such-cell', 'warning', 'hw:numa_mem.1',
     {'hw:numa_mem.1': '4096'}, {}),
    ('set-without-devices', 'error', SET, {SET: 'gpu2'}, {}),
    ('set-by-count', 'warning', ALIAS, {SET: 'gpu4', ALIAS: 'gpu:4'}, {}),
    ('set-places', 'error', ALIAS, {SET: 'gpu2', ALIAS: 'gpu2-0:2'}, {}),
    ('set-places', 'error', ALIAS,
     {SET: 'gpu2', ALIAS: 'gpu2-0:1,gpu2-2:1'}, {}),
    ('set-places', 'error', ALIAS,
     {SET: 'gpu1', ALIAS: 'gpu1-0:1,gpu1-ib-1:1'}, {}),
    ('not-validated', 'note', 'hw:maxphysaddr_mode',
     {'hw:maxphysaddr_mode': 'passthrough'}, {}),
    ('not-validated', 'note', 'hw:maxphysaddr_bits',
     {'hw:maxphysaddr_mode': 'emulate', 'hw:maxphysaddr_bits': '46'}, {}),
    ('bad-value', 'error', 'hw:maxphysaddr_mode',
     {'hw:maxphysaddr_mode': 'host'}, {}),
    # Cases W1 and W2 of tests/data/public-cases.csv.
    *(('bad-value', 'error', 'hw:maxphysaddr_bits',
       {'hw:maxphysaddr_mode': 'emulate', 'hw:maxphysaddr_bits': bits}, {})
      for bits in ('-1', '0', '1', '31', '53', '64', 'host')),
    ('address-width', 'warning', 'hw:maxphysaddr_mode',
     {'hw:maxphysaddr_mode': 'emulate'}, {}),
    ('address-width', 'warning', 'hw:maxphysaddr_bits',
     {'hw:maxphysaddr_mode': 'passthrough', 'hw:maxphysaddr_bits': '46'}, {}),
    ('address-width', 'warning', 'hw:maxphysaddr_bits',
     {'hw:maxphysaddr_bits': '46'}, {}),
    ('address-width', 'warning', 'ram', {}, {'ram': 1990 * 1024}),
    ('address-width', 'error', 'hw:maxphysaddr_bits',
     {'hw:maxphysaddr_mode': 'emulate', 'hw:maxphysaddr_bits': '40'},
     {'ram': 1990 * 1024}),
    ('too-long', 'error', ALIAS, {ALIAS: ','.join(
        f'gpu16-{number}:1' for number in range(26))}, {}),
)


class LintTest(unittest.TestCase):
    def test_what_is_wrong_is_found_with_its_key(self):
        for code, severity, key, specs, sizes in FINDINGS:
            with self.subTest(code, specs=specs, **sizes):
                self.assertIn((code, severity, key), found(specs, **sizes))

    def test_a_width_that_fits_the_memory_is_no_finding(self):
        mode, bits = 'hw:maxphysaddr_mode', 'hw:maxphysaddr_bits'
        for specs in ({mode: 'passthrough'},
                      {mode: 'emulate', bits: '41'}):
            self.assertNotIn('address-width', {
                code for code, *_ in found(specs, ram=1990 * 1024)})
        self.assertNotIn('address-width', {
            code for code, *_ in found({}, ram=990 * 1024)})

    def test_a_good_flavor_has_no_findings(self):
        for specs in (
                {}, {ALIAS: 'a:1'}, {AFFINITY: 'preferred'},
                {'resources:CUSTOM_FPGA': '1'},
                {'hw:cpu_cores': '4', 'hw:cpu_threads': '2',
                 THREADS: 'require'},
                {SET: 'gpu2', ALIAS: 'gpu2-0:1,gpu2-1:1,gpu2-ib-0:1,nic:1'},
                {'quota:cpu_shares': '3', 'aggregate:x': 'y'}):
            self.assertEqual(set(), found(specs), specs)

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

    def test_the_largest_cell_first_is_only_not_equal(self):
        codes = {code for code, _, _ in found(
            cells('0-5', '6-7', '6144', '2048'))}
        self.assertEqual({'unequal-cells'}, codes)

    def test_one_required_device_or_one_cell_is_only_noted(self):
        for specs in ({'hw:numa_nodes': '2', ALIAS: 'a:1'},
                      {ALIAS: 'a:1,b:1'}):
            self.assertEqual({('affinity-in-moves', 'note', AFFINITY)},
                             found({AFFINITY: 'required', **specs}))

    def test_what_nova_refuses_is_told_once(self):
        refused = lint.lint(flavor({'hw:numa_nodes': '3'}))
        self.assertEqual([('refused', 'hw:numa_nodes')],
                         [(item.code, item.key) for item in refused])
        bad = lint.lint(flavor({'hw:cpu_policy': 'Dedicated'}))
        self.assertEqual(['bad-value'], [item.code for item in bad])

    def test_all_mistakes_are_told_at_once(self):
        self.assertEqual(
            {('unknown-key', 'hw:cpu_polcy'), ('refused', 'hw:numa_nodes'),
             ('bad-value', 'hw:cpu_thread_policy'),
             ('page-size-class', 'hw:mem_page_size'),
             ('topology-mismatch', 'hw:cpu_sockets')},
            {(code, key) for code, _, key in found({
                'hw:cpu_polcy': 'dedicated', 'hw:numa_nodes': '3',
                'hw:cpu_thread_policy': 'requires',
                'hw:mem_page_size': 'large', 'hw:cpu_cores': '5'})})

    def test_what_follows_from_a_mistake_is_not_told(self):
        for specs in ({'hw:cpu_policy': 'pinned', THREADS: 'require'},
                      {'hw:mem_page_size': '2 MB', 'hw:locked_memory': '1'},
                      {'hw:numa_nodes': '3', 'hw:numa_cpus.5': '1'},
                      {SET: 'gpu4', ALIAS: 'gpu'}):
            with self.subTest(specs):
                self.assertEqual(1, len(found(specs)))

    def test_an_unknown_key_has_a_suggestion(self):
        for name, meant in (('hw:cpu_polcy', 'hw:cpu_policy'),
                            ('hw:numa_cpu.1', 'hw:numa_cpus.1'),
                            ('hw:numa_scope', 'hpcvirt:numa_scope'),
                            ('hw:maxphysaddr', 'hw:maxphysaddr_')):
            advice = {item.key: item.advice for item in lint.lint(
                flavor({name: '1'}))}[name]
            self.assertIn(f'(did you mean {meant}', advice)

    def test_a_flavor_of_ours_that_was_changed(self):
        marked = catalogue.mark_specs(8, 8192, 0, GOOD)
        changed = flavor_model.Flavor('f', 8, 8192, 0, {
            **marked, 'hw:mem_page_size': '4'})
        self.assertIn('edited', [item.code for item in lint.lint(changed)])

    def test_every_finding_has_advice_and_a_known_key(self):
        for *_, specs, sizes in FINDINGS:
            for item in lint.lint(flavor(specs, **sizes)):
                self.assertTrue(item.advice)
                self.assertTrue(item.key in ('ram', 'vcpus')
                                or item.code == 'unknown-key'
                                or vocabulary.find(item.key), item.key)


def check(flavor, machines, choices, part=host_part.WHOLE, others=()):
    """Check a flavor against the empty hosts of a plan."""
    plan = planner.plan_hosts(machines, choices, part)
    states = {host.name: host.state for host in plan.hosts}
    planned = [row.flavor for row in plan.flavors]
    policies = compiled_flavor.read_policies(plan.hosts[0].settings.pci_alias)
    complete = compiled_flavor.complete(flavor, policies)
    return lint_hosts.check_hosts([complete, *others], states,
                                  planned).get(flavor.name, ())


class LintSetsTest(unittest.TestCase):
    def setUp(self):
        self.machines = [wired.tree(nics=2, name=f'n{number}')
                         for number in range(4)]
        self.profile = dataclasses.replace(
            profile.DENSE, devices=(planned_sets.GPUS, planned_sets.VFS))
        self.plan = planner.plan(self.machines, self.profile)

    def found(self, flavor, *machines):
        return {item.code: item for item in check(
            flavor, machines or self.machines, self.profile)}

    def test_flavors_of_a_plan_have_no_findings(self):
        for row in self.plan.flavors:
            self.assertEqual({}, self.found(row.flavor))
            self.assertEqual((), lint.lint(row.flavor))

    def test_others_may_need_more_candidates(self):
        for row in self.plan.flavors:
            foreign = dataclasses.replace(row.flavor, name='foreign')
            many = self.found(foreign).get('many-candidates')
            self.assertEqual(row.guest.device_set in ('gpu2', 'gpu4'),
                             many is not None)
            if many:
                self.assertIn('on 4 hosts, a request has 1024 allocation',
                              many.message)

    def test_hosts_without_such_a_set_do_not_fit(self):
        row = next(row for row in self.plan.flavors
                   if row.guest.device_set == 'gpu2')
        found = self.found(row.flavor, wired.tree(links='none'))
        self.assertIn('no set gpu2 of PCI devices',
                      found['does-not-fit'].message)

    def test_other_flavors_are_counted_without_sets(self):
        self.assertEqual({}, self.found(flavor()))


class LintHostsTest(unittest.TestCase):
    def found(self, host, specs=None, devices=(), **sizes):
        return {(item.code, item.severity.value) for item in check(
            flavor(specs, **sizes), [host], profile.Profile(devices=devices))}

    def test_the_key_and_the_advice_are_those_of_what_is_missing(self):
        host = dataclasses.replace(hosts.build(), address_bits=46)
        for specs, code, key, advice in (
                ({'resources1:VGPU': '1'}, 'does-not-fit', 'resources1:VGPU',
                 'request fewer'),
                ({'resources:CUSTOM_X': '2'}, 'does-not-fit',
                 'resources:CUSTOM_X', 'request fewer'),
                ({'hw:maxphysaddr_mode': 'emulate',
                  'hw:maxphysaddr_bits': '52'}, 'address-width',
                 'hw:maxphysaddr_bits', 'ask for as many bits'),
                ({'hw:mem_page_size': '1GB'}, 'does-not-fit',
                 'hw:mem_page_size', 'use pages of which the hosts have'),
                ({}, 'does-not-fit', 'vcpus', 'make the guest smaller')):
            found = [item for item in check(flavor(
                specs, **({} if specs else {'vcpus': 24})), [host],
                profile.Profile()) if item.severity.value == 'error']
            self.assertEqual([(code, key)], [(item.code, item.key)
                                             for item in found])
            self.assertTrue(found[0].advice.startswith(advice))

    def test_what_a_host_makes_of_a_flavor(self):
        for specs, sizes, expected in (
                ({}, {}, set()),
                ({}, {'vcpus': 6}, {('strands-cpus', 'warning')}),
                ({}, {'ram': 40960}, {('strands-cpus', 'warning')}),
                ({}, {'vcpus': 24}, {('does-not-fit', 'error')}),
                ({}, {'ram': 1 << 20}, {('does-not-fit', 'error')}),
                # Nova refuses it: nothing to say of hosts.
                ({'hw:numa_nodes': '3'}, {}, set())):
            self.assertEqual(expected, self.found(
                hosts.build(), specs, **sizes), (specs, sizes))
        for host, specs, expected in (
                ({'threads': 2}, {THREADS: 'isolate'}, 'isolate-on-smt'),
                ({'threads': 1}, {THREADS: 'require'}, 'does-not-fit'),
                ({'small_kib': 64}, {'hw:mem_page_size': '1GB'},
                 'no-such-pages')):
            self.assertIn((expected, 'error'),
                          self.found(hosts.build(**host), specs))

    def test_cpus_that_another_flavor_can_use_are_not_stranded(self):
        machine, small = hosts.build(), flavor(vcpus=2, ram=1024)
        small = dataclasses.replace(small, name='small')
        alone = check(flavor(vcpus=6), [machine], profile.Profile())
        self.assertEqual(['strands-cpus'], [item.code for item in alone])
        self.assertEqual((), check(flavor(vcpus=6), [machine],
                                   profile.Profile(), others=[small]))

    def on_gpus(self, wanted, specs=None):
        return self.found(hosts.build(gpus={0: 4, 1: 4}), specs, (wanted,))

    def test_devices_of_the_hosts_are_counted(self):
        for count, expected in (
                (1, {('strands-devices', 'warning')}), (2, set()),
                (8, {('strands-cpus', 'warning')}),
                (9, {('does-not-fit', 'error')})):
            self.assertEqual(expected, self.on_gpus(
                hosts.GPU, {ALIAS: f'gpu:{count}'}))
        self.assertEqual({('does-not-fit', 'error')},
                         self.on_gpus(hosts.GPU, {ALIAS: 'other:9'}))
        self.assertEqual(set(), self.on_gpus(hosts.GPU))

    def test_a_smaller_guest_is_no_advice_where_devices_are_missing(self):
        for wanted in ((), (hosts.GPU,)):
            (found,) = check(
                flavor({ALIAS: 'gpu:9'}), [hosts.build(gpus={0: 4, 1: 4})],
                profile.Profile(devices=wanted))
            self.assertEqual(ALIAS, found.key)
            self.assertIn('in the profile of hosts', found.advice)

    def test_vgpus_are_counted(self):
        vgpu = dataclasses.replace(hosts.VGPU, vgpus_per_device=2)
        for count, expected in (
                (1, {('strands-devices', 'warning')}),
                (2, {('strands-devices', 'warning')}),
                (3, {('does-not-fit', 'error')})):
            self.assertEqual(expected, self.on_gpus(
                vgpu, {'resources:VGPU': str(count)}))
        self.assertEqual({('does-not-fit', 'error')}, self.on_gpus(
            vgpu, {'resources:CUSTOM_VGPU': '9'}))

    def test_planned_flavors_have_no_findings(self):
        gpus = dataclasses.replace(hosts.GPU, per_instance=None)
        for host, choices in (
                (hosts.build(gpus={0: 4, 1: 4}), {'devices': (gpus,)}),
                *((host, {'pack_cells': packing}) for host in hosts.shipped()
                  for packing in (False, True))):
            own = profile.Profile(**choices)
            rows = planner.plan([host], own).flavors
            self.assertGreater(len(rows), 2)
            for row in rows:
                self.assertEqual((), check(row.flavor, [host], own))
                self.assertEqual((), lint.lint(row.flavor))

    def test_hosts_with_one_problem_share_a_finding(self):
        fleet = [hosts.build(name=f'node-{number:03}',
                             mib=65536 + number % 2)
                 for number in range(1, 301)]
        found = check(flavor(vcpus=6), fleet, profile.Profile())
        self.assertEqual(1, len(found))
        self.assertEqual(
            '300 hosts (node-001, node-003, ...): the 4 instances that fit '
            'leave 8 of 32 dedicated CPUs unused', found[0].message)
        self.assertEqual({host.name for host in fleet}, set(found[0].hosts))
        (found,) = check(flavor(vcpus=12), [hosts.build(cells=1)],
                         profile.Profile())
        self.assertIn('the one instance that fits leaves 4 of 16 dedicated',
                      found.message)

    def test_only_the_part_for_guests_counts(self):
        host = hosts.build(cells=2, cores=16)
        part = host_part.build('0-15', ['2M:2048'])
        flavors = {(8, 2048): set(), (8, 4096): {'strands-cpus'},
                   (16, 8192): {'does-not-fit'}}
        for (vcpus, ram), expected in flavors.items():
            self.assertEqual(expected, {item.code for item in check(
                flavor({}, vcpus, ram), [host], profile.Profile(), part)})

    def test_a_part_that_the_host_lacks_is_an_error(self):
        with self.assertRaisesRegex(exception.InvalidInput, 'no CPU 99'):
            check(flavor(), [hosts.build()], profile.Profile(),
                  host_part.build('99', ()))
