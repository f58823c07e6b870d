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

"""Choosing flavors out of a plan."""

import json
import pathlib
import tempfile
import unittest

from hpcvirt import exception
from hpcvirt.model import shape
from hpcvirt.specs import codec
from hpcvirt.tempest_plugin import plan


def flavor(name, vcpus, fits, stranded=0, cells=1):
    return {'name': name, 'vcpus': vcpus, 'ram_mib': 1024 * cells,
            'disk_gib': 0, 'per_host': {'a': fits},
            'stranded_pcpus': {'a': stranded},
            'extra_specs': {'hw:cpu_policy': 'dedicated',
                            'hw:mem_page_size': '2048',
                            'hw:numa_nodes': str(cells)}}


class ChoiceTest(unittest.TestCase):

    flavors = (flavor('small', 2, 8), flavor('rest', 3, 4, stranded=4),
               flavor('cell', 8, 2), flavor('host', 16, 1, cells=2))

    def name(self, found):
        return found and found['name']

    def test_tiling_strands_least_and_takes_most_instances(self):
        self.assertEqual('small', self.name(plan.tiling(
            self.flavors, 'a', 16)))
        self.assertEqual('cell', self.name(plan.tiling(self.flavors, 'a', 4)))
        self.assertIsNone(plan.tiling(self.flavors, 'other', 16))

    def test_smallest_fits_twice_on_one_cell(self):
        self.assertEqual('small', self.name(plan.smallest(self.flavors, 'a')))
        self.assertIsNone(plan.smallest(self.flavors[3:], 'a'))

    def test_whole_cell_fits_once_on_each_host_cell(self):
        self.assertEqual('cell', self.name(plan.whole_cell(
            self.flavors, 'a', 2)))
        self.assertIsNone(plan.whole_cell(self.flavors, 'a', 3))

    def test_spread_flavor_has_cells_like_the_original(self):
        several = plan.spread(self.flavors[2], 2, shape.NUMAScope.PACKAGE)
        found = codec.decode(several['vcpus'], several['ram_mib'],
                             several['extra_specs'])
        self.assertEqual(2, len(found.cells))
        self.assertEqual({8}, {cell.pcpus for cell in found.cells})
        self.assertEqual({2048}, {cell.page_kib for cell in found.cells})
        self.assertIs(shape.NUMAScope.PACKAGE, found.numa_scope)

    def test_extending_does_not_change_the_plan(self):
        before = dict(self.flavors[0]['extra_specs'])
        plan.extended(self.flavors[0], {'x:y': 'z'})
        self.assertEqual(before, self.flavors[0]['extra_specs'])


class LoadTest(unittest.TestCase):

    def load(self, text):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, 'plan.json')
            path.write_text(text)
            return plan.load(str(path))

    def test_plan_is_read(self):
        text = json.dumps({'schema_version': 1, 'flavors': []})
        self.assertEqual([], self.load(text)['flavors'])

    def test_other_files_are_refused(self):
        for text in ('', '[]', '{}', '{"schema_version": 2, "flavors": []}'):
            with self.subTest(text=text):
                self.assertRaises(exception.InvalidInput, self.load, text)

    def test_missing_file_is_refused(self):
        self.assertRaises(exception.InvalidInput, plan.load, '/no/such/plan')
