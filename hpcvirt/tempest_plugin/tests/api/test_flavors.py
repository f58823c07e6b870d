# SPDX-License-Identifier: Apache-2.0

"""The compute API accepts the generated flavors and rejects misspellings."""

from tempest.lib import decorators
from tempest.lib import exceptions
from tempest.lib.common import api_microversion_fixture

from hpcvirt.flavors import plan_document
from hpcvirt.tempest_plugin import base
from hpcvirt.tempest_plugin import plan

CONF = base.CONF


class GeneratedFlavorsTest(base.HPCTestCase):
    """Nova validates every flavor of the plan."""

    @classmethod
    def skip_checks(cls) -> None:
        super().skip_checks()
        cls.require('plan_file')

    def _check_flavors(self) -> None:
        for flavor in plan.load(CONF.hpcvirt.plan_file).flavors:
            flavor_id = self.create_flavor(flavor)
            shown = self.flavors.show_flavor(flavor_id)['flavor']
            self.assertEqual(
                (flavor.vcpus, flavor.ram_mib, flavor.extra_specs),
                (shown['vcpus'], shown['ram'], shown['extra_specs']))

    @decorators.idempotent_id('56ed23fa-5e1d-40cd-80a8-d097cd8d5478')
    def test_first_microversion_that_validates_accepts_them(self) -> None:
        """Microversion 2.86 accepts all flavors of the plan."""
        self._check_flavors()

    @decorators.idempotent_id('2168380d-9664-476a-92ca-3f25ceb91762')
    def test_newest_microversion_accepts_them(self) -> None:
        """The newest microversion of the cloud accepts all of them."""
        self.useFixture(api_microversion_fixture.APIMicroversionFixture(
            compute_microversion='latest'))
        self._check_flavors()


class NamespaceTest(base.HPCTestCase):
    """nova-api validates extra specs of the namespace ``hpcvirt:``."""

    def setUp(self) -> None:
        super().setUp()
        self.flavor_id = self.create_flavor(plan_document.FlavorSummary(
            name='hpcvirt-specs', vcpus=1, ram_mib=64, disk_gib=1,
            extra_specs={}, per_host={}))

    def _assert_rejected(self, name: str, value: str) -> None:
        self.assertRaises(exceptions.BadRequest,
                          self.flavors.set_flavor_extra_spec,
                          self.flavor_id, **{name: value})
        specs = self.flavors.list_flavor_extra_specs(self.flavor_id)
        self.assertNotIn(name, specs['extra_specs'])

    @decorators.idempotent_id('fc8a31bc-d8ca-4dd2-ade2-d9412294ec78')
    def test_unknown_key_is_rejected(self) -> None:
        """A misspelled key is an error."""
        self._assert_rejected('hpcvirt:numa_scpoe', 'socket')

    @decorators.idempotent_id('2bb36c10-33b3-4e45-8181-c88700a34f83')
    def test_unknown_scope_is_rejected(self) -> None:
        """A scope that the filter does not know is an error."""
        self._assert_rejected('hpcvirt:numa_scope', 'rack')

    @decorators.idempotent_id('5cad55d7-67ec-4fc8-b8b7-ddf4e34401b0')
    def test_exclusive_cells_must_be_a_boolean(self) -> None:
        """A number of cells is an error."""
        self._assert_rejected('hpcvirt:exclusive_cells', 'two')

    @decorators.idempotent_id('7dd0f502-7484-4f9c-93bd-d4273aa7224b')
    def test_documented_values_are_accepted(self) -> None:
        """Values that the documentation names can be set."""
        specs = {'hpcvirt:numa_scope': 'socket',
                 'hpcvirt:exclusive_cells': 'true'}
        self.flavors.set_flavor_extra_spec(self.flavor_id, **specs)
        shown = self.flavors.list_flavor_extra_specs(self.flavor_id)
        self.assertEqual(specs, shown['extra_specs'])
