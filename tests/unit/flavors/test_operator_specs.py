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

from hpcvirt.flavors import operator_specs


class OperatorSpecsTest(unittest.TestCase):

    def test_what_hpcvirt_leaves_open_is_read_in_the_order_of_the_keys(self):
        given = {'trait:CUSTOM_HPC': 'required',
                 'quota:vif_inbound_average': '1000',
                 'aggregate_instance_extra_specs:pool': 'hpc',
                 'resources:CUSTOM_FPGA': '1'}
        self.assertEqual(tuple(sorted(given.items())),
                         operator_specs.read(given))
        self.assertEqual((), operator_specs.read({}))

    def test_keys_that_hpcvirt_sets_are_refused(self):
        for key, value in (('hw:cpu_policy', 'shared'),
                           ('hw:numa_nodes', '2'),
                           ('hw:mem_page_size', 'small'),
                           ('resources:PCPU', '4'),
                           ('resources1:MEMORY_MB', '1024')):
            with self.assertRaisesRegex(ValueError, 'is set by hpcvirt'):
                operator_specs.read({key: value})
        self.assertTrue(operator_specs.is_taken('hw:numa_cpus.1'))
        self.assertFalse(operator_specs.is_taken('trait:CUSTOM_HPC'))

    def test_unknown_keys_of_a_checked_namespace_are_refused(self):
        with self.assertRaisesRegex(ValueError, 'no extra spec of its'):
            operator_specs.read({'hpcvirt:numa_scop': 'package'})

    def test_values_that_are_not_text_are_refused(self):
        for value in (1, None, True, ['x'], '', 'a\nb', 'x' * 256):
            with self.assertRaisesRegex(ValueError, 'trait:CUSTOM_X: must'):
                operator_specs.read({'trait:CUSTOM_X': value})

    def test_bad_keys_are_refused(self):
        for key in ('', 'a/b', 'x' * 256, 7, 'tr\u00e9it:X'):
            with self.assertRaisesRegex(ValueError, 'must have keys of'):
                operator_specs.read({key: 'required'})
        with self.assertRaisesRegex(ValueError, 'a mapping of keys'):
            operator_specs.read(['trait:CUSTOM_X'])
