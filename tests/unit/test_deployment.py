# SPDX-License-Identifier: Apache-2.0

import dataclasses
import itertools
import json
import pathlib
import re
import unittest

import yaml

from hpcvirt.deployment import formats
from hpcvirt.deployment import host_files
from hpcvirt.deployment import nova_conf
from hpcvirt.deployment import steps
from hpcvirt.deployment import tree
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from tests.builders import hosts
from tests.builders import wired
from tests.unit.flavors import test_planned_sets as sets

ROLE = pathlib.Path(__file__).parents[2] / 'ansible/roles/host'
VF = profiles.Devices(vendor_id='15b3', product_id='101e')


def files(form, *machines, base=profiles.DEFAULT, **choices):
    plan = planner.plan(machines, dataclasses.replace(base, **choices))
    return {file.path: file.text for file in formats.FORMATS[form](plan)}


def document(text):
    return yaml.safe_load(text)


def twins(**more):
    return [hosts.build(name=name, **more) for name in ('n1', 'n2')]


class FormatsTest(unittest.TestCase):
    def test_every_form_of_every_machine_is_marked_and_reads(self):
        for base in profiles.BUILT_IN.values():
            plan = planner.plan(hosts.shipped(), base)
            for file in itertools.chain(*(
                    write(plan) for write in formats.FORMATS.values())):
                self.assertTrue(file.text.startswith(tree.MARK), file.path)
                # Ansible would take these for a template.
                if file.path != 'hpcvirt.yml':
                    self.assertNotRegex(
                        re.sub(r'\{\{ (compute_sysctl|\(default_container'
                               '|hpcvirt_host_serial)', '', file.text),
                        r'\{[{%#]')
                if file.path.endswith(('.yml', '.yaml')):
                    self.assertTrue(all(yaml.safe_load_all(file.text)))

    def test_hosts_that_are_alike_share_a_group(self):
        for form in ('ansible', 'kolla', 'kayobe'):
            found = files(form, *twins(), hosts.build(name='odd', cores=8))
            groups = document(found['inventory/hpcvirt.yml'])[
                'hpcvirt_hosts']['children']
            self.assertEqual([['n1', 'n2'], ['odd']], [
                list(group['hosts']) for group in groups.values()])
            for name in groups:
                self.assertRegex(name, '^[a-z_][a-z0-9_]*$')
                self.assertEqual(1, sum(
                    f'group_vars/{name}' in path and
                    not path.startswith('kolla/') for path in found))

    def test_names_that_become_the_same_group_stay_apart(self):
        found = document(files(
            'ansible', hosts.build(name='n-1'),
            hosts.build(name='n.1', cores=8), hosts.build(name='hosts'))[
                'inventory/hpcvirt.yml'])['hpcvirt_hosts']['children']
        self.assertEqual(
            [{'n-1': {}, 'hosts': {}}, {'n.1': {}}],
            [group['hosts'] for group in found.values()])

    def test_the_role_gets_all_files(self):
        host = hosts.build(vfs={1: 8}, name='n1')
        found = files('ansible', host, devices=(VF,))
        variables = document(found['inventory/group_vars/hpcvirt_n1.yml'])
        plan = planner.plan([host], dataclasses.replace(
            profiles.DEFAULT, devices=(VF,)))
        self.assertEqual(
            [(f'/{file.path}', file.text)
             for file in host_files.files(plan.hosts[0], plan)],
            [(item['path'], item['content'])
             for item in variables['hpcvirt_host_files']])
        self.assertEqual([f'/{host_files.PROVIDER}'],
                         variables['hpcvirt_host_absent'])

    def test_the_role_knows_the_files_and_what_makes_them_effective(self):
        role = ''.join((ROLE / name).read_text() for name in (
            'tasks/activate.yml', 'vars/main.yml'))
        self.assertIn(tree.MARK, (ROLE / 'tasks/main.yml').read_text())
        plan = planner.plan([hosts.build(vfs={1: 8})], dataclasses.replace(
            profiles.DEFAULT, devices=(VF,)))
        notified = {words for file in host_files.files(plan.hosts[0], plan)
                    for words in file.activate}
        for words in notified - {'systemctl daemon-reload', host_files.STOP}:
            self.assertTrue(words in role
                            or str(words.split())[1:-1] in role, words)
        for path in (host_files.SYSCTL, host_files.COMMAND_LINE,
                     host_files.TUNED[1]):
            self.assertIn(f"'/{path}'", role)

    def test_the_collection_has_the_version_of_hpcvirt(self):
        version = re.search('(?m)^version = (.*)', (
            ROLE.parents[2] / 'setup.cfg').read_text())[1]
        self.assertEqual(version, document(
            (ROLE.parents[1] / 'galaxy.yml').read_text())['version'])

    def test_the_exporters_run_as_the_samples_do(self):
        template = (ROLE.parent / 'exporter/templates/watch.service.j2'
                    ).read_text().splitlines()
        sample = (ROLE.parents[2] / 'etc/hpcvirt/systemd/hpcvirt-watch.service'
                  ).read_text().splitlines()
        for line in sample:
            if line and not line.startswith(('#', 'ExecStart=')):
                self.assertIn(line, template)

    def test_containers_of_nova_get_no_file_of_the_host(self):
        for form, path in (
                ('kolla', 'inventory/group_vars/hpcvirt_n1.yml'),
                ('kayobe', 'inventory/group_vars/hpcvirt_n1/hpcvirt.yml')):
            variables = document(files(form, *twins())[path])
            self.assertFalse([
                item for item in variables['hpcvirt_host_files']
                if item['path'].startswith('/etc/nova')])

    def test_kolla_merges_a_file_for_each_host_and_controller(self):
        found = files('kolla', *twins(vfs={1: 8}), devices=(VF,),
                      pack_cells=True)
        for name in ('n1', 'n2'):
            self.assertIn('cpu_dedicated_set = 1-15,17-31\n',
                          found[f'config/nova/{name}/nova.conf'])
        for service in ('nova-api', 'nova-scheduler'):
            text = found[f'config/nova/{service}.conf']
            self.assertIn('\nalias = ', text)
            self.assertIn('\npacking_host', text)
            self.assertNotIn('cpu_dedicated_set', text)

    def test_controllers_get_what_sets_of_devices_need(self):
        machines = [wired.tree(nics=2, name=f'n{number}')
                    for number in range(5)]
        choices = {'base': profiles.DENSE, 'devices': (sets.GPUS, sets.VFS)}
        for form, folder in (('kolla', 'config/'), ('kayobe', 'kolla/config/'),
                             ('files', ''), ('edpm', ''), ('ansible', '')):
            found = files(form, *machines, **choices)
            paths = [f'{folder}nova/{service}.conf' for service in (
                'nova-api', 'nova-scheduler', 'nova-conductor',
                'nova-super-conductor')] if folder else [
                    'controllers/nova.conf']
            for path in paths:
                for line in ('pci_in_placement = true',
                             'max_placement_results = 1280',
                             'disable_fallback_pcpu_query = true'):
                    self.assertIn(f'\n{line}\n', found[path])
                self.assertIn('"gpu4-ib-1"', found[path])
            self.assertIn(
                '\nmax_allocation_candidates = 1280\n'
                'allocation_candidates_generation_strategy = breadth-first\n',
                found[f'{folder or "controllers/"}placement.conf'])
        text = files('files', *machines, **choices)[
            f'n0/{host_files.NOVA_CONF}']
        self.assertIn('\nreport_in_placement = true\n', text)
        for form in formats.FORMATS:
            self.assertFalse([
                path for path in files(form, *twins(vfs={1: 8}),
                                       devices=(VF,))
                if 'placement' in path or 'controllers' in path
                or 'conductor' in path])

    def test_only_virtual_functions_are_created(self):
        (planned,) = planner.plan([wired.tree()], dataclasses.replace(
            profiles.DENSE, devices=(sets.GPUS, sets.VFS))).hosts
        self.assertEqual(
            ['0000:14:00.0', '0000:24:00.0', '0000:44:00.0', '0000:54:00.0'],
            [re.search('KERNEL=="([^"]*)"', rule)[1]
             for rule in host_files.vf_rules(planned)])

    def test_traits_of_former_flavors_are_taken_away(self):
        path = 'inventory/group_vars/hpcvirt_n1.yml'
        name = 'nova_cell_compute_provider_config'
        self.assertEqual({'meta': {'schema_version': '1.0'}}, document(
            files('kolla', *twins())[path])[name])
        found = document(files('kolla', *twins(), extra_specs=(
            ('trait:CUSTOM_HPC', 'required'),))[path])[name]
        self.assertEqual(['CUSTOM_HPC'],
                         found['providers'][0]['traits']['additional'])


class EdpmTest(unittest.TestCase):
    def variables(self, host, **choices):
        (text,) = files('edpm', host, **choices).values()
        node_set, self.config_map = yaml.safe_load_all(text)
        self.text = re.sub(r'\n# ', ' ', text)
        return node_set['spec']['nodeTemplate']['ansible']['ansibleVars']

    def test_equal_cells_have_one_number_of_pages(self):
        found = self.variables(hosts.build(cores=4, mib=16384),
                               base=profiles.DENSE)
        self.assertRegex(
            found['edpm_kernel_args'],
            '^default_hugepagesz=2M hugepagesz=2M hugepages=13312 ')
        # The role of EDPM writes sizes that the kernel does not know.
        self.assertNotIn('edpm_kernel_hugepages', found)

    def test_unequal_cells_have_pages_of_their_own(self):
        found = self.variables(hosts.build(mib=(32768, 65536)))
        self.assertNotIn('edpm_kernel_hugepages', found)
        self.assertRegex(found['edpm_kernel_args'],
                         r'hugepagesz=2M hugepages=0:\d+,1:\d+ ')
        self.assertIn('Cells have different numbers of pages', self.text)

    def test_parameters_of_the_profile_of_tuned_are_left_to_it(self):
        found = self.variables(hosts.build())
        self.assertEqual(('cpu-partitioning', '1-15,17-31'), (
            found['edpm_tuned_profile'], found['edpm_tuned_isolated_cores']))
        self.assertNotIn('nohz_full', found['edpm_kernel_args'])
        found = self.variables(hosts.build(), base=profiles.DENSE)
        self.assertEqual('hpcvirt', found['edpm_tuned_profile'])
        self.assertIn('\ninclude=virtual-host\n',
                      found['edpm_tuned_custom_profile'])
        self.assertNotIn('edpm_tuned_isolated_cores', found)

    def test_the_map_has_files_that_the_role_copies(self):
        self.variables(hosts.build(vfs={1: 8}), devices=(VF,), extra_specs=(
            ('trait:CUSTOM_HPC', 'required'),))
        self.assertEqual(['90-nova-hpcvirt.conf', 'provider-hpcvirt.yaml'],
                         list(self.config_map['data']))
        self.assertIn('numvfs of type sriov_pf: 0000:41:00.0 8', self.text)

    def test_names_are_those_of_kubernetes(self):
        self.variables(hosts.build(name='N_1.example'))
        self.assertRegex(self.config_map['metadata']['name'],
                         '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')


def host_files_files(host, base=profiles.DEFAULT, **choices):
    plan = planner.plan([host], dataclasses.replace(base, **choices))
    return {file.path: file.text
            for file in host_files.files(plan.hosts[0], plan)}


class HostFilesTest(unittest.TestCase):
    def test_every_file_is_known_as_hpcvirts_own(self):
        for host in hosts.shipped():
            for base in profiles.BUILT_IN.values():
                for path, text in host_files_files(host, base).items():
                    self.assertTrue(text.startswith(tree.MARK), path)
                    self.assertFalse(path.startswith('/'))
                    self.assertRegex(text, '[^\n]\n$')

    def test_a_unit_reserves_the_pages_of_each_cell(self):
        text = host_files_files(hosts.build(cores=4, mib=16384),
                                profiles.DENSE)[
            'etc/systemd/system/hpcvirt-pages.service']
        self.assertIn(
            "ExecStart=/bin/sh -c 'echo 6656 > /sys/devices/system/node/node1"
            "/hugepages/hugepages-2048kB/nr_hugepages'\n", text)

    def test_a_host_that_runs_keeps_its_pages_and_its_merged_memory(self):
        # Whatever starts a unit starts those that sysinit.target wants, too.
        found = host_files_files(hosts.build(cores=4, mib=16384),
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
        text = host_files_files(hosts.named('xeon-2s-24c-snc2-1g'))[
            'etc/systemd/system/hpcvirt-pages.service']
        self.assertIn('echo 0 > /sys/devices/system/node/node3/hugepages'
                      '/hugepages-1048576kB/nr_hugepages', text)

    def test_no_unit_for_normal_pages(self):
        found = host_files_files(hosts.build(), page_size=4)
        self.assertNotIn('etc/systemd/system/hpcvirt-pages.service', found)

    def test_virtual_functions_are_created_at_boot(self):
        self.assertNotIn(host_files.VFS,
                         host_files_files(hosts.build(vfs={1: 8})))
        self.assertIn(
            'ACTION=="add|bind", SUBSYSTEM=="pci", KERNEL=="0000:41:00.0", '
            'ATTR{sriov_numvfs}="8"',
            host_files_files(hosts.build(vfs={1: 8}),
                             devices=(VF,))[host_files.VFS])

    def test_the_iommu_is_switched_by_what_each_architecture_knows(self):
        for processor, intel in ((None, True), ('Intel(R) Xeon(R)', True),
                                 ('AMD EPYC 9554', False),
                                 ('Arm, implementer 0x41, part 0xd0c', False)):
            host = dataclasses.replace(hosts.build(vfs={1: 8}),
                                       processor=processor)
            text = host_files_files(host, devices=(VF,))[
                host_files.COMMAND_LINE]
            self.assertRegex(text, r'\n.* iommu\.passthrough=1"')
            self.assertEqual(intel, 'intel_iommu=on' in text)

    def test_guests_with_all_cpus_leave_services_everywhere(self):
        path = 'etc/systemd/system.conf.d/90-hpcvirt.conf'
        self.assertIn('CPUAffinity=\nCPUAffinity=0,16\n',
                      host_files_files(hosts.build())[path])
        slices = [host_files_files(hosts.build())[path].rpartition('\n\n')[2]
                  for path in host_files.ALLOWED.values()]
        self.assertEqual(['[Slice]\nAllowedCPUs=0,16\n'] * 2
                         + ['[Scope]\nAllowedCPUs=0,16\n'], slices)
        dense = host_files_files(hosts.build(), profiles.DENSE)
        self.assertNotIn(path, dense)
        self.assertFalse(set(host_files.ALLOWED.values()) & set(dense))
        path = 'etc/systemd/system/irqbalance.service.d/90-hpcvirt.conf'
        self.assertNotIn(path, dense)
        self.assertIn('\n[Service]\nEnvironment=IRQBALANCE_BANNED_CPULIST='
                      '1-15,17-31\n', host_files_files(hosts.build())[path])

    def test_the_provider_has_the_traits_that_flavors_require(self):
        text = host_files_files(hosts.build(), extra_specs=(
            ('trait:CUSTOM_HPC', 'required'),
            ('trait:CUSTOM_HPCVIRT_OVERHEAD_LE_3', 'required'),
            ('trait:CUSTOM_OLD', 'forbidden'),
            ('trait:HW_CPU_X86_AVX2', 'required')))[host_files.PROVIDER]
        (provider,) = yaml.safe_load(text)['providers']
        self.assertEqual({'additional': ['CUSTOM_HPC']}, provider['traits'])
        self.assertNotIn(host_files.PROVIDER, host_files_files(hosts.build()))


class StepsTest(unittest.TestCase):
    def test_what_is_no_longer_needed_is_removed(self):
        present = host_files_files(hosts.build(vfs={1: 8}), devices=(VF,))
        found = steps.compare(
            [tree.File(path, text) for path, text
             in host_files_files(hosts.build(vfs={1: 8})).items()], present)
        removed = [step for step in found
                   if step.change is steps.FileStatus.REMOVED]
        self.assertEqual([host_files.VFS],
                         [step.file.path for step in removed])
        self.assertIn(f'--- a/{host_files.VFS}', list(removed[0].difference()))

    def test_files_of_others_are_neither_changed_nor_removed(self):
        found = steps.compare([tree.File('a', tree.MARK)], {
            'a': 'mine', host_files.VFS: 'mine'})
        self.assertEqual([steps.FileStatus.FOREIGN],
                         [step.change for step in found])

    def test_options_that_another_file_sets_are_named(self):
        own = host_files_files(hosts.build())[host_files.NOVA_CONF]
        found = list(steps.conflicts(own, {
            'etc/nova/nova.conf': '[DEFAULT]\nreserved_host_cpus=2\n'
            'cpu_dedicated_set=1\n[compute]\n# cpu_shared_set = 0\n'
            'cpu_dedicated_set = 1\n'}))
        self.assertEqual(2, len(found))
        self.assertIn('[compute]cpu_dedicated_set too', found[0])
        self.assertIn('[DEFAULT]reserved_host_cpus, with which', found[1])


VGPU = profiles.Devices(
    profiles.DeviceKind.VGPU, vendor_id='10de', product_id='20b0',
    mdev_type='nvidia-474', vgpus_per_device=4)


def lines(host, **choices):
    plan = planner.plan([host], profiles.Profile(**choices))
    return list(nova_conf.compute(plan.hosts[0], plan))


class NovaConfTest(unittest.TestCase):
    def test_options_of_nova_compute(self):
        found = lines(hosts.build(threads=2), shared_cores_per_cell=1,
                      host_pages_per_cell=((1048576, 1),), pack_cells=True)
        for line in (
                'cpu_dedicated_set = 1-15,17-31,33-47,49-63',
                'cpu_shared_set = 0,16,32,48',
                'reserved_huge_pages = node:1,size:1048576,count:1',
                'packing_host_numa_cells_allocation_strategy = true'):
            self.assertIn(line, found)
        text = '\n'.join(found)
        self.assertRegex(text, r'\[DEFAULT\]\n(#.*\n)+'
                         r'reserved_host_memory_mb = \d+\n')
        self.assertRegex(text, r'\[compute\]\n(#.*\n)+cpu_dedicated_set')

    def test_an_empty_set_is_not_written(self):
        text = '\n'.join(lines(hosts.build()))
        self.assertNotIn('cpu_shared_set', text)
        self.assertNotIn('[pci]', text)

    def test_virtual_functions_are_given(self):
        spec = next(line for line in lines(
            hosts.build(vfs={1: 8}), devices=(profiles.Devices(
                vendor_id='15b3', product_id='101e'),))
            if line.startswith('device_spec = '))
        self.assertEqual('0000:41:00.0', json.loads(
            spec.removeprefix('device_spec = '))['address'])

    def test_whole_devices_are_given_with_the_type_of_their_alias(self):
        for total_vfs, type_ in ((0, 'type-PCI'), (16, 'type-PF')):
            found = lines(
                hosts.build(gpus={0: 1, 1: 1}, gpu_vfs=total_vfs),
                devices=(profiles.Devices(
                    profiles.DeviceKind.WHOLE, alias='gpu', vendor_id='10de',
                    product_id='20b0'),))
            self.assertEqual(2, sum(line.startswith('device_spec = ')
                                    for line in found))
            alias = next(line for line in found if line.startswith('alias'))
            self.assertEqual(type_, json.loads(
                alias.partition(' = ')[2])['device_type'])

    def test_vgpus_need_no_pci_options(self):
        found = lines(hosts.build(gpus={0: 1, 1: 1}), devices=(VGPU,))
        at = found.index('[devices]')
        self.assertEqual(
            ['enabled_mdev_types = nvidia-474', '', '[mdev_nvidia-474]',
             'device_addresses = 0001:00:00.0,0001:01:00.0',
             'mdev_class = VGPU'], found[at + 1:at + 6])
        self.assertNotIn('[pci]', found)

    def test_a_host_without_cards_gives_no_vgpus(self):
        plan = planner.plan(
            [hosts.build(gpus={0: 1}), hosts.build(name='without')],
            profiles.Profile(devices=(VGPU,)))
        self.assertEqual([True, False], [
            '[devices]' in nova_conf.compute(host, plan)
            for host in plan.hosts])

    def test_the_shipped_profile_gives_the_virtual_functions_of_its_card(self):
        path = hosts.TOPOLOGIES.parent / 'profiles/sriov.yaml'
        choices = profiles.build(yaml.safe_load(path.read_text()), path.name)
        host = hosts.named('epyc-2s-64c-nps4')
        plan = planner.plan([host], choices)
        spec = json.loads(next(
            line for line in nova_conf.compute(plan.hosts[0], plan)
            if line.startswith('device_spec = ')).partition(' = ')[2])
        self.assertEqual(
            {(device.vendor_id, device.product_id) for device in host.devices
             if not device.total_vfs},
            {(spec['vendor_id'], spec['product_id'])})

    def test_the_memory_that_the_host_keeps_is_a_comment(self):
        text = ' '.join(lines(hosts.build())).replace('# ', '')
        self.assertRegex(text, 'For the host, without the emulators of its '
                         r'guests: cells 0-1 have \d+ MiB')

    def test_controllers_get_what_must_be_equal_there(self):
        plan = planner.plan(
            [hosts.build(vfs={1: 8})], profiles.Profile(
                pack_cells=True, devices=(profiles.Devices(
                    vendor_id='15b3', product_id='101e'),)))
        (host,) = plan.hosts
        found = [line for line in nova_conf.controller(plan) if ' = ' in line]
        self.assertEqual(
            ['packing_host_numa_cells_allocation_strategy', 'alias'],
            [line.partition(' = ')[0] for line in found])
        self.assertLessEqual(set(found), set(nova_conf.compute(host, plan)))
