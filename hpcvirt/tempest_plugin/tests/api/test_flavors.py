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

"""The compute API takes what the generator writes, and nothing else."""

from tempest.lib import decorators
from tempest.lib import exceptions
from tempest.lib.common import api_microversion_fixture

from hpcvirt.tempest_plugin import base
from hpcvirt.tempest_plugin import plan

CONF = base.CONF


class GeneratedFlavorsTest(base.HPCTestCase):
    """Nova's validators look at every flavor of the plan."""

    @classmethod
    def skip_checks(cls) -> None:
        super().skip_checks()
        cls.require('plan_file')

    def _created_as_planned(self) -> None:
        for flavor in plan.load(CONF.hpcvirt.plan_file)['flavors']:
            flavor_id = self.create_flavor(flavor)
            shown = self.flavors.show_flavor(flavor_id)['flavor']
            self.assertEqual(
                (flavor['vcpus'], flavor['ram_mib'], flavor['extra_specs']),
                (shown['vcpus'], shown['ram'], shown['extra_specs']))

    @decorators.idempotent_id('56ed23fa-5e1d-40cd-80a8-d097cd8d5478')
    def test_accepted_where_validation_begins(self) -> None:
        """Microversion 2.86 takes them."""
        self._created_as_planned()

    @decorators.idempotent_id('2168380d-9664-476a-92ca-3f25ceb91762')
    def test_accepted_by_the_newest_api(self) -> None:
        """The newest microversion of this cloud takes them."""
        self.useFixture(api_microversion_fixture.APIMicroversionFixture(
            compute_microversion='latest'))
        self._created_as_planned()


class OwnNamespaceTest(base.HPCTestCase):
    """nova-api knows the namespace ``hpcvirt:``."""

    def setUp(self) -> None:
        super().setUp()
        self.flavor_id = self.create_flavor({
            'name': 'hpcvirt-specs', 'vcpus': 1, 'ram_mib': 64,
            'disk_gib': 1, 'extra_specs': {}})

    def _refused(self, name: str, value: str) -> None:
        self.assertRaises(exceptions.BadRequest,
                          self.flavors.set_flavor_extra_spec,
                          self.flavor_id, **{name: value})
        specs = self.flavors.list_flavor_extra_specs(self.flavor_id)
        self.assertNotIn(name, specs['extra_specs'])

    @decorators.idempotent_id('fc8a31bc-d8ca-4dd2-ade2-d9412294ec78')
    def test_unknown_key_is_refused(self) -> None:
        """A typing error does not stay unseen."""
        self._refused('hpcvirt:numa_scpoe', 'package')

    @decorators.idempotent_id('2bb36c10-33b3-4e45-8181-c88700a34f83')
    def test_unknown_scope_is_refused(self) -> None:
        """Only the scopes that the filter knows."""
        self._refused('hpcvirt:numa_scope', 'rack')

    @decorators.idempotent_id('5cad55d7-67ec-4fc8-b8b7-ddf4e34401b0')
    def test_exclusive_cells_takes_a_boolean_only(self) -> None:
        """A number of cells is no boolean."""
        self._refused('hpcvirt:exclusive_cells', 'two')

    @decorators.idempotent_id('7dd0f502-7484-4f9c-93bd-d4273aa7224b')
    def test_known_values_are_taken(self) -> None:
        """What the documentation names is accepted."""
        wanted = {'hpcvirt:numa_scope': 'package',
                  'hpcvirt:exclusive_cells': 'true'}
        self.flavors.set_flavor_extra_spec(self.flavor_id, **wanted)
        specs = self.flavors.list_flavor_extra_specs(self.flavor_id)
        self.assertEqual(wanted, specs['extra_specs'])
