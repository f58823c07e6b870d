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

import json
import unittest

from hpcvirt import exception
from hpcvirt.fleet import host_settings
from hpcvirt.fleet import state
from hpcvirt.fleet import usage_file

FLAVOR = {'name': 'x', 'vcpus': 4, 'ram_mib': 1024,
          'extra_specs': {'hw:numa_nodes': '2'}}
INSTANCE = {'id': 'a', 'host': 'h', 'flavor': FLAVOR, 'cells': [1, 0],
            'cpus': [3], 'pages_kib': 2048, 'devices': ['0000:41:00.1'],
            'movable': False, 'hosts': ['h2']}


def read(*instances, **others):
    return usage_file.read(json.dumps(
        {'instances': instances, **others}).encode(), 'u.json')


class UsageFileTest(unittest.TestCase):

    def test_an_instance_is_read(self):
        (found,) = read(INSTANCE, schema_version=1)
        self.assertEqual(('a', 'h', (1, 0), {3}, 2048, ('0000:41:00.1',),
                          'is not movable by the usage file', {'h2'}), (
            found.id, found.host, found.cells, found.cpus, found.pages_kib,
            found.devices, found.stays, found.hosts))
        self.assertEqual((0, 4, 1024, 0), found.guest.sums)

    def test_what_is_left_out_is_none_and_instances_are_movable(self):
        (found,) = read({'id': 'a', 'host': 'h', 'flavor': {
            **FLAVOR, 'extra_specs': {}}})
        self.assertEqual(((), frozenset(), None, (), None, None, None), (
            found.cells, found.cpus, found.pages_kib, found.devices,
            found.stays, found.hosts, found.group))

    def test_the_example_of_the_module_is_read(self):
        text = usage_file.__doc__.split('::\n')[1].split('\n\n``')[0]
        (found,) = usage_file.read(text.encode(), 'u.json')
        self.assertEqual('web-1', found.id)

    def test_an_error_names_the_place(self):
        for change, message in (
                ({'cells': [0]}, 'cells: has 1 host cells for the 2 guest'),
                ({'cells': [1, 1]}, 'cells: has a host cell twice'),
                ({'cpus': [3, 3]}, 'cpus: has 3 twice'),
                ({'cpus': [-1]}, r'cpus\[0\]: must be a whole number'),
                ({'movable': 'no'}, 'movable: must be true or false'),
                ({'host': ''}, "host: must be text such as node1, not ''"),
                ({'pages_kib': '2M'}, 'pages_kib: must be a whole number'),
                ({'colour': 1}, ": unknown key 'colour'"),
                ({'flavor': 3}, 'flavor: must be a mapping of keys'),
                ({'flavor': {**FLAVOR, 'vcpus': 'x'}},
                 'flavor: vcpus: must be a whole number'),
                ({'flavor': {**FLAVOR, 'extra_specs': {
                    'hw:numa_nodes': 'x'}}}, ': flavor x: hw:numa_nodes: ')):
            with self.assertRaisesRegex(
                    exception.InvalidInput,
                    rf'^u.json: instances\[0\]\.?{message}'):
                read({**INSTANCE, **change})

    def test_server_groups_are_read(self):
        others = [{**INSTANCE, 'id': name} for name in 'bc']
        found = read(INSTANCE, *others, server_groups=[
            {'policy': 'anti-affinity', 'members': ['a', 'c'],
             'max_server_per_host': 2}])
        group = state.ServerGroup(state.Policy.ANTI_AFFINITY,
                                  frozenset('ac'), 2)
        self.assertEqual([group, None, group], [
            instance.group for instance in found])

    def test_an_error_names_the_server_group(self):
        group = {'policy': 'affinity', 'members': ['a']}
        for groups, message in (
                ([{**group, 'policy': 'x'}],
                 r'\[0\].policy: must be one of affinity, anti-affinity'),
                ([{**group, 'members': ['b']}],
                 r"\[0\].members: 'b' is not the id of an instance"),
                ([{**group, 'max_server_per_host': 0}],
                 r'\[0\].max_server_per_host: must be a whole number'),
                ([group, group],
                 r"\[1\].members: 'a' belongs to a server group before")):
            with self.assertRaisesRegex(exception.InvalidInput,
                                        '^u.json: server_groups' + message):
                read(INSTANCE, server_groups=groups)

    def test_an_id_is_given_once(self):
        with self.assertRaisesRegex(exception.InvalidInput,
                                    r"instances\[1\].id: 'a' is the id"):
            read(INSTANCE, INSTANCE)

    def test_another_version_is_refused(self):
        with self.assertRaisesRegex(exception.InvalidInput, 'is 2; this'):
            read(schema_version=2)


class HostSettingsTest(unittest.TestCase):

    def test_an_error_names_the_place(self):
        whole = {'cpu_dedicated_set': '0-3', 'cpu_shared_set': '',
                 'reserved_host_memory_mb': 0, 'reserved_huge_pages': [],
                 'pages': {'0': {'4': 9}}, 'arrived_with': ['unknown here']}
        host_settings.read({'host_config': {'h': whole}}, 'p.json')
        for plain, message in (
                ([], "p.json: has no 'host_config'"),
                ({'host_config': {}}, "p.json: has no 'host_config'"),
                ({'host_config': {'h': 3}}, r"p.json: host_config\['h'\]: "),
                ({'host_config': {'h': {**whole, 'cpu_shared_set': '3-1'}}},
                 r"host_config\['h'\].cpu_shared_set: the range '3-1'"),
                ({'host_config': {'h': {**whole, 'pages': {'0': 3}}}},
                 r"host_config\['h'\]: pages\['0'\]: must be")):
            with self.assertRaisesRegex(exception.InvalidInput, message):
                host_settings.read(plain, 'p.json')
