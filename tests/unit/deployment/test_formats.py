# SPDX-License-Identifier: Apache-2.0

import dataclasses
import itertools
import pathlib
import re
import unittest

import yaml

from hpcvirt.deployment import formats
from hpcvirt.deployment import host_files
from hpcvirt.deployment import nova_conf
from hpcvirt.deployment import tree
from hpcvirt.flavors import fleet_plan
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from tests.builders import hosts
from tests.builders import planned_sets
from tests.builders import wired

ROLE = pathlib.Path(__file__).parents[3] / 'ansible/roles/host'


def files(form, *machines, base=profiles.DEFAULT, **choices):
    plan = planner.plan(machines, dataclasses.replace(base, **choices))
    return {file.path: file.text for file in formats.FORMATS[form](plan)}


def document(text):
    return yaml.safe_load(text)


def twins(**more):
    return [hosts.build(name=name, **more) for name in ('n1', 'n2')]


class FormatsTest(unittest.TestCase):
    def test_every_form_of_every_machine_is_marked_and_reads(self):
        self.assert_marked_and_reads(profiles.Profile())

    def test_periodic_so_is_it_with_each_profile(self):
        self.assert_marked_and_reads(*profiles.BUILT_IN.values())

    def assert_marked_and_reads(self, *bases):
        for base in bases:
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
        found = files('ansible', host, devices=(hosts.VFS,))
        variables = document(found['inventory/group_vars/hpcvirt_n1.yml'])
        plan = planner.plan([host], dataclasses.replace(
            profiles.DEFAULT, devices=(hosts.VFS,)))
        self.assertEqual(
            [(f'/{file.path}', file.text)
             for file in host_files.files(plan.hosts[0], plan)],
            [(item['path'], item['content'])
             for item in variables['hpcvirt_host_files']])
        self.assertEqual([f'/{host_files.PROVIDER}', f'/{host_files.NETWORK}'],
                         variables['hpcvirt_host_absent'])

    def test_the_role_knows_the_files_and_what_makes_them_effective(self):
        role = ''.join((ROLE / name).read_text() for name in (
            'tasks/activate.yml', 'vars/main.yml'))
        self.assertIn(tree.MARK, (ROLE.parents[1] / 'plugins'
                                  '/modules/host_files.py').read_text())
        plan = planner.plan([hosts.build(vfs={1: 8})], dataclasses.replace(
            profiles.DEFAULT, devices=(hosts.VFS,)))
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
        found = files('kolla', *twins(vfs={1: 8}), devices=(hosts.VFS,),
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
        choices = {'base': profiles.DENSE,
                   'devices': (planned_sets.GPUS, planned_sets.VFS)}
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
        self.assertNotIn('report_in_placement', text.partition('[pci]')[0])
        for form in formats.FORMATS:
            self.assertFalse([
                path for path in files(form, *twins(vfs={1: 8}),
                                       devices=(hosts.VFS,))
                if 'placement' in path or 'conductor' in path])

    def test_controllers_get_the_aliases_of_all_classes(self):
        for form in ('files', 'edpm', 'ansible'):
            found = files(form, *twins(vfs={1: 8}), devices=(hosts.VFS,))
            self.assertIn('\nalias = ', found['controllers/nova.conf'])
            self.assertNotIn('controllers/nova.conf', files(form, *twins()))

    def test_the_scheduler_isolates_classes(self):
        plan = planner.plan(twins(), profiles.Profile(extra_specs=(
            ('trait:CUSTOM_HPC', 'required'),)))
        kept = frozenset({'CUSTOM_HPC'})
        merged = fleet_plan.merge_plans(fleet_plan.set_traits(
            {'c': plan}, {'c': kept}, {'c'}))
        line = '\nenable_isolated_aggregate_filtering = true\n'
        for form, path in (('kolla', 'config/nova/nova-scheduler.conf'),
                           ('kayobe', 'kolla/config/nova/nova-scheduler.conf'),
                           ('files', 'controllers/nova.conf'),
                           ('edpm', 'controllers/nova.conf'),
                           ('ansible', 'controllers/nova.conf')):
            found = {file.path: file.text
                     for file in formats.FORMATS[form](merged)}
            self.assertIn(line, found[path].replace('[scheduler]', ''))

    def test_all_hosts_with_devices_report_them_if_some_have_sets(self):
        sets = planner.plan([wired.tree(name='sets')], dataclasses.replace(
            profiles.DENSE, devices=(planned_sets.GPUS,)))
        card = planner.plan([hosts.build(name='card', vfs={0: 8})],
                            profiles.Profile(devices=(hosts.VFS,),
                                             name_prefix='v'))
        plain = planner.plan([hosts.build(name='plain')],
                             profiles.Profile(name_prefix='p'))
        merged = fleet_plan.merge_plans({'s': sets, 'v': card, 'p': plain})
        report = 'report_in_placement = true'
        for host in merged.hosts:
            self.assertEqual(host.name != 'plain',
                             report in nova_conf.compute(host, merged))
        (alone,) = card.hosts
        self.assertNotIn(report, nova_conf.compute(alone, card))

    def test_only_virtual_functions_are_created(self):
        (planned,) = planner.plan([wired.tree()], dataclasses.replace(
            profiles.DENSE,
            devices=(planned_sets.GPUS, planned_sets.VFS))).hosts
        self.assertEqual(
            ['0000:14:00.0', '0000:24:00.0', '0000:44:00.0', '0000:54:00.0'],
            [re.search('KERNELS?=="([^"]*)"', rule)[1]
             for rule in host_files.vf_rules(planned)
             if 'guid' not in rule])

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
        text, *_ = files('edpm', host, **choices).values()
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
        self.variables(hosts.build(vfs={1: 8}), devices=(hosts.VFS,),
                       extra_specs=(('trait:CUSTOM_HPC', 'required'),))
        self.assertEqual(['90-nova-hpcvirt.conf', 'provider-hpcvirt.yaml'],
                         list(self.config_map['data']))
        self.assertIn('numvfs of type sriov_pf: 0000:41:00.0 8', self.text)

    def test_names_are_those_of_kubernetes(self):
        self.variables(hosts.build(name='N_1.example'))
        self.assertRegex(self.config_map['metadata']['name'],
                         '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')
