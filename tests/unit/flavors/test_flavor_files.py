# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt import exception
from hpcvirt.flavors import flavor_files
from hpcvirt.flavors import plan_document
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile
from tests.builders import hosts

SPECS = {'hw:cpu_policy': 'dedicated'}


def read(content):
    return flavor_files.flavors(content, 'f.json')


class FlavorFilesTest(unittest.TestCase):
    def assert_one(self, content, specs=None):
        found = read(content)
        self.assertEqual(1, len(found))
        self.assertEqual(('m1', 8, 1024), (
            found[0].name, found[0].vcpus, found[0].ram_mib))
        self.assertEqual(SPECS if specs is None else specs,
                         dict(found[0].extra_specs))

    def test_own_plans(self):
        plan = planner.plan([hosts.build()], profile.Profile())
        self.assertEqual([row.flavor for row in plan.flavors],
                         read(plan_document.dump(plan)))

    def test_openstack_flavor_show(self):
        self.assert_one({
            'OS-FLV-DISABLED:disabled': False, 'disk': 0, 'id': 'x',
            'name': 'm1', 'properties': SPECS, 'ram': 1024, 'vcpus': 8,
            'swap': 0})

    def test_openstack_flavor_list_long(self):
        self.assert_one([{
            'ID': 'x', 'Name': 'm1', 'RAM': 1024, 'Disk': 0, 'VCPUs': 8,
            'Is Public': True, 'Swap': 0, 'RXTX Factor': 1.0,
            'Properties': SPECS}])

    def test_properties_of_older_clients(self):
        self.assert_one(
            {'name': 'm1', 'ram': '1024', 'vcpus': '8', 'properties':
             "hw:cpu_policy='dedicated', hw:numa_cpus.0='0,1', a='it\\'s'"},
            {**SPECS, 'hw:numa_cpus.0': '0,1', 'a': "it's"})
        self.assert_one({'name': 'm1', 'ram': 1024, 'vcpus': 8,
                         'properties': ''}, {})

    def test_documents_of_the_compute_api(self):
        flavor = {'name': 'm1', 'ram': 1024, 'vcpus': 8, 'disk': 0,
                  'swap': '', 'extra_specs': SPECS}
        self.assert_one({'flavor': flavor})
        self.assert_one({'flavors': [flavor]})

    def test_numbers_and_truth_values_become_text(self):
        self.assert_one(
            {'name': 'm1', 'ram': 1024, 'vcpus': 8,
             'extra_specs': {'hw:numa_nodes': 2, 'hw:pmu': True}},
            {'hw:numa_nodes': '2', 'hw:pmu': 'true'})

    def test_anything_else_is_one_line_that_names_the_place(self):
        good = {'name': 'm1', 'ram': 1024, 'vcpus': 8, 'extra_specs': {}}
        for content, pattern in (
                (None, 'has no flavors'), ([], 'has no flavors'),
                ('text', 'has no flavors'), ({'flavors': {}}, 'no flavors'),
                ({}, 'flavor 1: name is missing'),
                ([3], 'flavor 1: is not a mapping'),
                ([good, {**good, 'vcpus': 0}],
                 (r'flavor 2 \(m1\): vcpus must be a whole number from 1, '
                  'not .0.')),
                ({**good, 'vcpus': True}, 'vcpus'),
                ({**good, 'ram': 'much'}, 'ram'),
                ({**good, 'ram': 10 ** 30}, 'ram'),
                ({**good, 'ram': None}, 'ram'),
                ({**good, 'name': ''}, 'has no name'),
                ({**good, 'name': ['m1']}, 'has no name'),
                ({**good, 'extra_specs': 3}, 'must be a mapping'),
                ({**good, 'extra_specs': 'x=y'}, 'must be a mapping'),
                ({**good, 'extra_specs': {'a': [1]}}, 'must be a mapping'),
                ({**good, 'extra_specs': {1: 'a'}}, 'must be a mapping'),
                ({'name': 'm1', 'ram': 1, 'vcpus': 1},
                 'extra_specs .or properties. are missing')):
            with self.assertRaisesRegex(exception.InvalidInput,
                                        pattern) as caught:
                read(content)
            self.assertNotIn('\n', str(caught.exception))
