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
import itertools
import pathlib
import re
import unittest

import yaml

from hpcvirt.deployment import formats
from hpcvirt.deployment import host_files
from hpcvirt.deployment import tree
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from tests import hosts

ROLE = pathlib.Path(__file__).parents[3] / 'ansible/roles/hpcvirt_host'
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
                        file.text.replace('{{ compute_sysctl', ''),
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
        found = files('ansible', host, devices=VF)
        variables = document(found['inventory/group_vars/hpcvirt_n1.yml'])
        plan = planner.plan([host], dataclasses.replace(
            profiles.DEFAULT, devices=VF))
        self.assertEqual(
            [(f'/{file.path}', file.text)
             for file in host_files.files(plan.hosts[0], plan)],
            [(item['path'], item['content'])
             for item in variables['hpcvirt_host_files']])
        self.assertEqual([f'/{host_files.PROVIDER}'],
                         variables['hpcvirt_host_absent'])

    def test_the_role_knows_the_files_and_what_makes_them_effective(self):
        handlers = document((ROLE / 'handlers/main.yml').read_text())
        self.assertIn(tree.MARK, (ROLE / 'tasks/main.yml').read_text())
        plan = planner.plan([hosts.build(vfs={1: 8})], dataclasses.replace(
            profiles.DEFAULT, devices=VF))
        notified = {words for file in host_files.files(plan.hosts[0], plan)
                    for words in file.activate}
        self.assertEqual(notified, {item['listen'] for item in handlers})

    def test_containers_of_nova_get_no_file_of_the_host(self):
        for form, path in (
                ('kolla', 'inventory/group_vars/hpcvirt_n1.yml'),
                ('kayobe', 'inventory/group_vars/hpcvirt_n1/hpcvirt.yml')):
            variables = document(files(form, *twins())[path])
            self.assertFalse([
                item for item in variables['hpcvirt_host_files']
                if item['path'].startswith('/etc/nova')])

    def test_kolla_merges_a_file_for_each_host_and_controller(self):
        found = files('kolla', *twins(vfs={1: 8}), devices=VF,
                      pack_cells=True)
        for name in ('n1', 'n2'):
            self.assertIn('cpu_dedicated_set = 1-15,17-31\n',
                          found[f'config/nova/{name}/nova.conf'])
        for service in ('nova-api', 'nova-scheduler'):
            text = found[f'config/nova/{service}.conf']
            self.assertIn('\nalias = ', text)
            self.assertIn('\npacking_host', text)
            self.assertNotIn('cpu_dedicated_set', text)

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
        self.assertEqual({'2048': {'count': 13312, 'default': True}},
                         found['edpm_kernel_hugepages'])
        self.assertNotIn('hugepages', found['edpm_kernel_args'])

    def test_unequal_cells_have_their_pages_on_the_command_line(self):
        found = self.variables(hosts.build(mib=(32768, 65536)))
        self.assertNotIn('edpm_kernel_hugepages', found)
        self.assertRegex(found['edpm_kernel_args'],
                         r'hugepagesz=2M hugepages=0:\d+,1:\d+ ')
        self.assertIn('which edpm_kernel_hugepages cannot say', self.text)

    def test_parameters_of_the_profile_of_tuned_are_left_to_it(self):
        found = self.variables(hosts.build())
        self.assertEqual(('cpu-partitioning', '1-15,17-31'), (
            found['edpm_tuned_profile'], found['edpm_tuned_isolated_cores']))
        self.assertNotIn('nohz_full', found['edpm_kernel_args'])
        found = self.variables(hosts.build(), base=profiles.DENSE)
        self.assertEqual('virtual-host', found['edpm_tuned_profile'])
        self.assertNotIn('edpm_tuned_isolated_cores', found)

    def test_the_map_has_files_that_the_role_copies(self):
        self.variables(hosts.build(vfs={1: 8}), devices=VF, extra_specs=(
            ('trait:CUSTOM_HPC', 'required'),))
        self.assertEqual(['90-nova-hpcvirt.conf', 'provider-hpcvirt.yaml'],
                         list(self.config_map['data']))
        self.assertIn('numvfs of type sriov_pf: 0000:41:00.0 8', self.text)

    def test_names_are_those_of_kubernetes(self):
        self.variables(hosts.build(name='N_1.example'))
        self.assertRegex(self.config_map['metadata']['name'],
                         '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')
