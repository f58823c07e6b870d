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

"""hpcvirt's own extra specs, from the API to the host cells."""

from nova import utils

from testing import machines
from tests.functional import base


class NUMAScopeTest(base.HPCNova):
    """``hpcvirt:numa_scope``: the cells share a package, or not."""

    def setUp(self):
        super().setUp()
        self.add_machines(machines.build(
            'host', 4, 4, packages=2, pages={2048: 1024}))
        # From now on Nova takes cells 1, 2, 3, 0: most free CPUs first.
        self.boot(self.create_hpc_flavor(1, 1, 128))

    def test_a_guest_that_nova_would_spread_over_packages_is_refused(self):
        flavor = self.create_hpc_flavor(2, 2, 128,
                                        hpcvirt__numa_scope='package')
        self.boot(flavor, status='ERROR')
        self.assertIn('Nova would use cells 1, 2 of packages 0, 1, but'
                      ' hpcvirt:numa_scope asks for one package',
                      self.log.output)

    def test_it_goes_to_a_host_where_one_package_has_them(self):
        self.add_machines(machines.build(
            'other', 4, 4, packages=2, pages={2048: 1024}))
        server = self.boot(self.create_hpc_flavor(
            2, 2, 128, hpcvirt__numa_scope='package'))
        self.assertEqual('other', self.host_of(server))
        self.assert_sits(server, (0, 1), 2, 128)

    def test_the_scope_of_the_host_asks_nothing(self):
        server = self.boot(self.create_hpc_flavor(
            2, 2, 128, hpcvirt__numa_scope='host'))
        self.assert_sits(server, (1, 2), 2, 128)

    def test_periodic_a_guest_of_one_cell_is_in_one_package(self):
        server = self.boot(self.create_hpc_flavor(
            1, 2, 128, hpcvirt__numa_scope='package'))
        self.assert_sits(server, (1,), 2, 128)


class ExclusiveCellsTest(base.HPCNova):
    """``hpcvirt:exclusive_cells``: only unused cells are taken."""

    def setUp(self):
        super().setUp()
        self.add_machines(machines.build('host', 2, 4, pages={2048: 1024}))

    def test_it_takes_empty_cells_only(self):
        flavor = self.create_hpc_flavor(1, 1, 128,
                                        hpcvirt__exclusive_cells='true')
        for cell in (0, 1):
            self.assert_sits(self.boot(flavor), (cell,), 1, 128)
        self.boot(flavor, status='ERROR')
        self.assertIn('Nova would use cell 0, which has', self.log.output)
        self.assertIn('hpcvirt:exclusive_cells asks for empty cells',
                      self.log.output)

    def test_memory_alone_makes_a_cell_not_empty(self):
        machine = machines.build('float', 1, 4, pages={2048: 1024},
                                 housekeeping_cores=2)
        self.add_machines(machine)
        self.boot(self.create_flavor(1, 64, {'hw:mem_page_size': '2048'}),
                  host='float')
        flavor = self.create_hpc_flavor(1, 1, 128,
                                        hpcvirt__exclusive_cells='true')
        self.boot(flavor, host='float', status='ERROR')
        self.assertIn('float, float refused: Nova would use cell 0',
                      self.log.output)

    def test_periodic_a_false_one_asks_nothing(self):
        flavor = self.create_hpc_flavor(1, 1, 128,
                                        hpcvirt__exclusive_cells='no')
        for _ in range(3):
            self.boot(flavor)


class BadExtraSpecsTest(base.HPCNova):

    def test_the_api_refuses_them(self):
        for specs in ({'hpcvirt:numa_scope': 'rack'},
                      {'hpcvirt:numa_scope': ''},
                      {'hpcvirt:exclusive_cells': 'perhaps'},
                      {'hpcvirt:exclusive_cell': 'true'},
                      {'hpcvirt:generated_by': 'me'},
                      {'hpcvirt:x': 'y'}):
            self.assertEqual(400, self.refusal_of(specs), specs)

    def test_an_old_microversion_lets_them_in_and_the_filter_refuses(self):
        self.add_machines(machines.build('host', pages={2048: 1024}))
        with utils.temporary_mutation(self.api, microversion='2.85'):
            flavor = self.create_hpc_flavor(1, 1, 128,
                                            hpcvirt__numa_scope='rack')
        self.boot(flavor, status='ERROR')
        self.assertIn('hpcvirt:numa_scope', self.log.output)
        self.assertIn("'rack'", self.log.output)
