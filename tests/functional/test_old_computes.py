# SPDX-License-Identifier: Apache-2.0

"""Compute hosts of the scheduler's release, and older ones."""

import sqlalchemy
from nova import objects

from hpcvirt.nova import config
from testing import machines
from tests.functional import base
from tests.functional import nova_objects
from tests.functional import soundness

TWO_SOCKETS = 'Nova would use cells 0, 2 of sockets 0, 1'


class ServiceVersionTest(soundness.ClaimingTestCase):
    def orders(self, version):
        state = nova_objects.host_state_of_service(version)
        return set(config.spares_devices(state))

    def test_the_scheduler_own_release_is_known_from_its_claim(self):
        self.assertEqual({soundness.SPARES_DEVICES},
                         self.orders(objects.service.SERVICE_VERSION))

    def test_a_host_without_service_is_of_the_scheduler_release(self):
        state = nova_objects.host_state_of_service(None)
        del state.service
        self.assertEqual((soundness.SPARES_DEVICES,),
                         config.spares_devices(state))

    def test_the_fix_came_between_two_versions(self):
        for version in (68, 70, 72):
            if version != objects.service.SERVICE_VERSION:
                self.assertEqual({False, True}, self.orders(version))
        for version in (73, 74, 75):
            self.assertEqual({True}, self.orders(version))

    def test_the_published_claim_of_older_releases_is_the_likeliest(self):
        state = nova_objects.host_state_of_service(68)
        self.assertFalse(config.spares_devices(state)[0])


class RollingUpgradeTest(base.HPCNova):
    """A guest without devices before cells of which one has a card.

    The claim of Nova 34 takes cells 0 and 1, that of Nova 32 and 33 the cells
    with most free CPUs, which are not in one socket.
    """

    def setUp(self):
        super().setUp()
        self.add_machines(machines.build(
            'host', 4, [4, 3, 4, 3], sockets=2, pages={2048: 1024},
            vfs={2: 4}))
        self.scoped = self.create_hpc_flavor(
            2, 3, 512, hpcvirt__numa_scope='socket')

    def set_service_version(self, version):
        for connection in self.cell_connections():
            connection.execute(sqlalchemy.text(
                'UPDATE services SET version = :version'
                " WHERE host = 'host'"), {'version': version})

    def test_the_order_of_the_installed_release(self):
        if soundness.SPARES_DEVICES:
            server = self.boot(self.scoped)
            self.assertEqual((0, 1), self.guest(server).host_cells)
            return
        self.boot(self.scoped, status='ERROR')
        self.assertIn(TWO_SOCKETS, self.log.output)
        server = self.boot(self.create_hpc_flavor(2, 3, 512))
        self.assertEqual((0, 2), self.guest(server).host_cells)

    def test_an_older_host_must_be_right_under_both_orders(self):
        self.set_service_version(68)
        self.boot(self.scoped, status='ERROR')
        self.assertIn(TWO_SOCKETS, self.log.output)
        # Whatever the order, these cells are in one socket.
        self.boot(self.create_hpc_flavor(
            1, 3, 512, hpcvirt__numa_scope='socket'))
