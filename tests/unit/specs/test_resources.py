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

from hpcvirt.specs import resources
from hpcvirt.specs import vocabulary


class ResourcesTest(unittest.TestCase):

    def test_what_is_written_is_read(self):
        for name in ('VGPU', 'CUSTOM_VGPU_LARGE'):
            specs = resources.write(name, 2, ['CUSTOM_A40'])
            self.assertEqual({f'resources:{name}': '2',
                              'trait:CUSTOM_A40': 'required'}, specs)
            self.assertEqual(2, resources.read(name, specs))
            for key, value in specs.items():
                self.assertTrue(vocabulary.find(key).accepts(value))

    def test_other_classes_and_groups_are_not_counted(self):
        self.assertEqual(0, resources.read('VGPU', {
            'resources:CUSTOM_VGPU': '1', 'resources1:VGPU': '1'}))

    def test_what_is_no_number_counts_nothing(self):
        self.assertEqual(0, resources.read('VGPU', {'resources:VGPU': 'one'}))
