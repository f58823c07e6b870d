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

from tools import package_figures

SOURCES = {
    'hpcvirt': '',
    'hpcvirt.exception': '',
    'hpcvirt.fit': '',
    'hpcvirt.fit.cell': 'import json\nfrom hpcvirt import exception\n',
    'hpcvirt.fit.engine': (
        'from hpcvirt.fit import cell\n'
        'if TYPE_CHECKING:\n    from hpcvirt.flavors import plan\n'),
    'hpcvirt.flavors': '',
    'hpcvirt.flavors.plan': (
        'def late():\n    import hpcvirt.fit.engine\n'
        '    from hpcvirt.fit.cell import fits\n'),
}


class PackageFiguresTest(unittest.TestCase):

    def setUp(self):
        self.graph = package_figures.imports(SOURCES)

    def test_every_kind_of_import_counts(self):
        self.assertEqual({'hpcvirt.exception'},
                         self.graph['hpcvirt.fit.cell'])
        self.assertEqual({'hpcvirt.fit.cell', 'hpcvirt.flavors.plan'},
                         self.graph['hpcvirt.fit.engine'])
        self.assertEqual({'hpcvirt.fit.engine', 'hpcvirt.fit.cell'},
                         self.graph['hpcvirt.flavors.plan'])

    def test_arrows_are_between_the_units_of_a_folder(self):
        self.assertEqual(
            {'exception': set(), 'fit': {'exception', 'flavors'},
             'flavors': {'fit'}},
            package_figures.arrows(self.graph, 'hpcvirt'))
        self.assertEqual({'cell': set(), 'engine': {'cell'}},
                         package_figures.arrows(self.graph, 'hpcvirt.fit'))

    def test_modules_that_reach_each_other_are_a_cycle(self):
        self.assertEqual({frozenset({'hpcvirt.fit.engine',
                                     'hpcvirt.flavors.plan'})},
                         package_figures.cycles(self.graph))
