# SPDX-License-Identifier: Apache-2.0

"""An instance keeps the topology of its flavor when it moves."""

import shlex
from typing import Any

from tempest.lib import decorators
from tempest.lib import exceptions

from hpcvirt import child_environment
from hpcvirt import child_process
from hpcvirt import waiting
from hpcvirt.flavors import plan_document
from hpcvirt.tempest_plugin import base
from hpcvirt.tempest_plugin import contract
from hpcvirt.tempest_plugin import plan

CONF = base.CONF


class MovesTest(base.FleetTestCase):
    """Moves an instance between twin hosts that each have a resident.

    A host with room for only one instance has no resident.
    """

    @classmethod
    def skip_checks(cls) -> None:
        super().skip_checks()
        cls.require_twins()

    def setUp(self) -> None:
        super().setUp()
        self.twins = list(CONF.hpcvirt.twin_hosts[:2])
        self.zone = self.create_zone(self.twins)
        self.flavor = self.require_flavor(
            plan.smallest(self.plan.flavors, self.twins[0])
            or plan.smallest(self.plan.flavors, self.twins[0], 1),
            f'of one cell that fits on {self.twins[0]}')
        self.flavor_id = self.create_flavor(self.flavor)
        # The resident of the destination has the host CPUs that the instance
        # has at its source, so that the instance must get others.
        self.residents = {
            host: self.boot(self.flavor_id, availability_zone=self.zone,
                            host=host)['id'] for host in self.twins
            if self.flavor.per_host.get(host, 0) >= 2}
        self.server = self.boot(self.flavor_id, host=self.twins[0],
                                availability_zone=self.zone)

    def _check(self, server: dict[str, Any],
               flavor: plan_document.FlavorSummary | None = None) -> None:
        nodes = self.assert_matches_flavor(flavor or self.flavor,
                                           server['id'])
        resident = self.residents.get(self.host_of(server))
        if resident:
            shared = (contract.host_cpus(nodes)
                      & contract.host_cpus(self.topology(resident)))
            self.assertFalse(shared, f'host CPUs {shared} are pinned twice')

    @decorators.idempotent_id('11382a53-4037-4284-98df-3ab0616ca6dc')
    def test_cold_migration(self) -> None:
        """A cold migration, which is then confirmed."""
        self.servers.migrate_server(self.server['id'])
        self.wait_for_status(self.server['id'], 'VERIFY_RESIZE', 'ERROR')
        self.servers.confirm_resize_server(self.server['id'])
        moved = self.wait_until_active(self.server['id'])
        self.assertEqual(self.twins[1], self.host_of(moved))
        self._check(moved)

    @decorators.idempotent_id('2a59f70b-e19e-4072-a47d-ef6fef933751')
    def test_resize_and_revert(self) -> None:
        """A resize to a larger flavor, first reverted, then confirmed."""
        larger = self._larger()
        larger_id = self.create_flavor(larger)
        before = self.topology(self.server['id'])
        self.servers.resize_server(self.server['id'], larger_id)
        resized = self.wait_for_status(self.server['id'],
                                       'VERIFY_RESIZE', 'ERROR')
        self.assertEqual('VERIFY_RESIZE', resized['status'])
        self._check(resized, larger)
        self.servers.revert_resize_server(self.server['id'])
        back = self.wait_until_active(self.server['id'])
        self.assertEqual(self.twins[0], self.host_of(back))
        self.assertEqual(before, self.topology(self.server['id']))
        self.servers.resize_server(self.server['id'], larger_id)
        self.wait_for_status(self.server['id'], 'VERIFY_RESIZE', 'ERROR')
        self.servers.confirm_resize_server(self.server['id'])
        self._check(self.wait_until_active(self.server['id']), larger)

    def _larger(self) -> plan_document.FlavorSummary:
        return self.require_flavor(
            plan.larger(self.plan.flavors, self.flavor, self.twins[1]),
            f'larger than the smallest that fits twice on {self.twins[1]}')

    @decorators.idempotent_id('e088410a-34ac-4562-9bfb-2dc122b17433')
    def test_live_migration(self) -> None:
        """A live migration, with a new claim on the destination."""
        if not CONF.hpcvirt.live_migration:
            self.skipTest('[hpcvirt]live_migration is false')
        self.servers.live_migrate_server(
            self.server['id'], host=self.twins[1], block_migration='auto')
        self._check(self._wait_for_host(self.twins[1]))

    @decorators.idempotent_id('278da2bd-f8fa-4110-8574-6d6ef310e912')
    def test_rebuild(self) -> None:
        """A rebuilt instance stays on its CPUs."""
        before = self.topology(self.server['id'])
        self.servers.rebuild_server(
            self.server['id'], (CONF.hpcvirt.scheduling_image_ref
                                or CONF.compute.image_ref))
        rebuilt = self.wait_until_active(self.server['id'])
        self.assertEqual(self.twins[0], self.host_of(rebuilt))
        self.assertEqual(before, self.topology(self.server['id']))

    @decorators.idempotent_id('f9cdf51b-f5bc-4de6-ae17-b12f59a7c06a')
    def test_shelve_and_unshelve(self) -> None:
        """An unshelved instance has the topology of its flavor again."""
        self.shelve_and_unshelve(self.server['id'])
        self._check(self.wait_until_active(self.server['id']))

    @decorators.idempotent_id('3249bdc8-e665-47c8-9a14-0d0344ea7639')
    def test_evacuation(self) -> None:
        """An instance of a failed host starts on the other host."""
        self.require('stop_compute_command', 'start_compute_command')
        source = self.twins[0]
        service = self._service(source)
        # The test evacuates only the server, not the resident.
        if source in self.residents:
            self.delete(self.residents.pop(source))
        self.last_heartbeat = service['updated_at']
        self.addCleanup(self._restart_compute, source, service['id'])
        self._command('stop_compute_command', source)
        self.last_heartbeat = self._service(source)['updated_at']
        self.services.update_service(service['id'], forced_down=True)
        self.servers.evacuate_server(self.server['id'])
        self._check(self._wait_for_host(self.twins[1]))

    def _wait_for_host(self, host: str) -> dict[str, Any]:
        """Wait until the instance is active on a host."""
        server = waiting.poll(
            lambda: self.wait_for_status(self.server['id'],
                                         'ACTIVE', 'ERROR'),
            lambda server: (self.host_of(server) == host
                            and server['status'] == 'ACTIVE'),
            CONF.compute.build_timeout, base.PAUSE_S)
        self.assertEqual((host, 'ACTIVE'),
                         (self.host_of(server), server['status']),
                         f'fault: {server.get("fault")}')
        return server

    def _restart_compute(self, host: str, service_id: str) -> None:
        """Start nova-compute again and wait until Nova uses it."""
        self._command('start_compute_command', host)
        self.wait_until(lambda: self._in_service(host, service_id),
                        f'nova-compute on {host} did not start again', 1)

    def _in_service(self, host: str, service_id: str) -> bool:
        try:
            # Nova refuses this until nova-compute has started and deleted the
            # guests that were evacuated from it.
            self.services.update_service(service_id, forced_down=False)
        except exceptions.BadRequest:
            return False
        service = self._service(host)
        # The state may still be from the last heartbeat before the stop.
        return bool(service['state'] == 'up'
                    and service['updated_at'] != self.last_heartbeat)

    def _service(self, host: str) -> dict[str, Any]:
        (service,) = self.services.list_services(
            host=host, binary='nova-compute')['services']
        return dict(service)

    def _command(self, option: str, host: str) -> None:
        words = [word.replace('{host}', host) for word in
                 shlex.split(getattr(CONF.hpcvirt, option))]
        status, stdout, stderr = child_process.run(
            words, where=f'[hpcvirt]{option}', limit_s=300,
            environment=child_environment.choose(*child_environment.SITE))
        self.assertEqual(0, status, f'[hpcvirt]{option}: {stdout!r} '
                         f'{stderr!r}')
