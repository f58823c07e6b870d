# SPDX-License-Identifier: Apache-2.0

import unittest

from hpcvirt.specs import codec
from hpcvirt.specs import vocabulary


class ResourcesTest(unittest.TestCase):
    def test_what_is_written_is_read(self):
        for name in ('VGPU', 'CUSTOM_VGPU_LARGE'):
            specs = codec.write_resource(name, 2, ['CUSTOM_A40'])
            self.assertEqual({f'resources:{name}': '2',
                              'trait:CUSTOM_A40': 'required'}, specs)
            self.assertEqual(2, codec.read_resource(name, specs))
            for given, value in specs.items():
                self.assertTrue(vocabulary.find(given).accepts(value))

    def test_other_classes_and_groups_are_not_counted(self):
        self.assertEqual(0, codec.read_resource('VGPU', {
            'resources:CUSTOM_VGPU': '1', 'resources1:VGPU': '1'}))

    def test_numbered_groups_are_added_up(self):
        self.assertEqual(
            {'VGPU': 3, 'CUSTOM_X': 1}, codec.read_grouped_classes({
                'resources:VGPU': '8', 'resources1:VGPU': '1',
                'resources_B:VGPU': '2', 'resources2:CUSTOM_X': '1',
                'resources3:PCPU': '4', 'resources4:CUSTOM_Y': 'many',
                'resources5:CUSTOM_Z': '0'}))

    def test_what_is_no_number_counts_nothing(self):
        self.assertEqual(0, codec.read_resource('VGPU', {
            'resources:VGPU': 'one'}))
