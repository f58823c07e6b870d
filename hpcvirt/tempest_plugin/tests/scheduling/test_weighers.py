# SPDX-License-Identifier: Apache-2.0

"""The weighers choose between two hosts that both fit."""

from tempest.lib import decorators

from hpcvirt.tempest_plugin import base
from hpcvirt.tempest_plugin import plan

CONF = base.CONF

MULTIPLIER = 'topology_weight_multiplier'


class FragmentationTest(base.FleetTestCase):
    """Boots a second small guest while one of two twin hosts is empty."""

    @classmethod
    def skip_checks(cls) -> None:
        super().skip_checks()
        cls.require('weighers')
        cls.require_twins()

    def setUp(self) -> None:
        super().setUp()
        self.twins = list(CONF.hpcvirt.twin_hosts[:2])
        self.flavor_id = self.create_flavor(self.require_flavor(
            plan.smallest(self.plan.flavors, self.twins[0]),
            f'that fits several times on {self.twins[0]}'))

    def _host_of_second_guest(self, first_host: str,
                              **metadata: str) -> str:
        """Boot a guest on one host and another where the scheduler chooses.

        :returns: the host of the second guest
        """
        zone = self.create_zone(self.twins, **metadata)
        first = self.boot(self.flavor_id, host=first_host)
        second = self.boot(self.flavor_id, availability_zone=zone)
        chosen = self.host_of(second)
        self.delete(second['id'])
        self.delete(first['id'])
        self._delete_zone(zone)
        return chosen

    def _delete_zone(self, zone: str) -> None:
        for aggregate in self.aggregates.list_aggregates()['aggregates']:
            if aggregate['name'] == zone:
                for host in aggregate['hosts']:
                    self.aggregates.remove_host(aggregate['id'], host=host)
                self.aggregates.delete_aggregate(aggregate['id'])

    @decorators.idempotent_id('2ebfb229-739f-4cfa-ac66-36beea57e6cd')
    def test_empty_host_stays_empty(self) -> None:
        """The second guest joins the first, whichever host that is on."""
        for host in self.twins:
            self.assertEqual(host, self._host_of_second_guest(host))

    @decorators.idempotent_id('5ca977ef-d839-419c-9734-29c7c8aee8af')
    def test_guests_spread_without_the_weigher(self) -> None:
        """With multiplier 0 Nova's own weighers choose the empty host."""
        for host, other in (self.twins, self.twins[::-1]):
            self.assertEqual(
                other,
                self._host_of_second_guest(host, **{MULTIPLIER: '0.0'}))
