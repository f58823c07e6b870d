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

"""What an instance was promised holds after it moved."""

import shlex
import subprocess
import time
from typing import Any

from tempest.lib import decorators
from tempest.lib import exceptions

from hpcvirt.tempest_plugin import contract
from hpcvirt.tempest_plugin import fleet
from hpcvirt.tempest_plugin import plan

CONF = fleet.CONF


class MovesTest(fleet.FleetTestCase):
    """Two hosts that are alike; each has a guest that stays."""

    @classmethod
    def skip_checks(cls) -> None:
        super().skip_checks()
        cls.require_twins()

    def setUp(self) -> None:
        super().setUp()
        self.twins = list(CONF.hpcvirt.twin_hosts[:2])
        self.zone_name, _ = self.zone(self.twins)
        self.flavor = self.chosen(
            plan.smallest(self.plan['flavors'], self.twins[0]),
            f'that fits several times on {self.twins[0]}')
        self.flavor_id = self.create_flavor(self.flavor)
        # The guests that stay take the CPUs that the mover has now: where
        # it comes to, it must get others.
        self.residents = {
            host: self.boot(self.flavor_id, availability_zone=self.zone_name,
                            host=host)['id'] for host in self.twins}
        self.server = self.boot(self.flavor_id, host=self.twins[0],
                                availability_zone=self.zone_name)

    def _check(self, server: dict[str, Any],
               flavor: plan.Flavor | None = None) -> None:
        found = self.assert_kept(flavor or self.flavor, server['id'])
        for host, resident in self.residents.items():
            if host == self.host_of(server):
                shared = (contract.host_cpus(found)
                          & contract.host_cpus(self.topology(resident)))
                self.assertFalse(shared, f'host CPUs {shared} given twice')

    def _other(self) -> str:
        return str(self.twins[1])

    @decorators.idempotent_id('11382a53-4037-4284-98df-3ab0616ca6dc')
    def test_cold_migration(self) -> None:
        """A cold migration, confirmed."""
        self.servers.migrate_server(self.server['id'])
        self.settled(self.server['id'], ('VERIFY_RESIZE', 'ERROR'))
        self.servers.confirm_resize_server(self.server['id'])
        moved = self.active(self.server['id'])
        self.assertEqual(self._other(), self.host_of(moved))
        self._check(moved)

    @decorators.idempotent_id('2a59f70b-e19e-4072-a47d-ef6fef933751')
    def test_resize_there_and_back(self) -> None:
        """A resize to a larger flavor; reverted, then confirmed."""
        larger = self._larger()
        larger_id = self.create_flavor(larger)
        before = self.topology(self.server['id'])
        self.servers.resize_server(self.server['id'], larger_id)
        resized = self.settled(self.server['id'], ('VERIFY_RESIZE', 'ERROR'))
        self.assertEqual('VERIFY_RESIZE', resized['status'])
        self._check(resized, larger)
        self.servers.revert_resize_server(self.server['id'])
        back = self.active(self.server['id'])
        self.assertEqual(self.twins[0], self.host_of(back))
        self.assertEqual(before, self.topology(self.server['id']))
        self.servers.resize_server(self.server['id'], larger_id)
        self.settled(self.server['id'], ('VERIFY_RESIZE', 'ERROR'))
        self.servers.confirm_resize_server(self.server['id'])
        self._check(self.active(self.server['id']), larger)

    def _larger(self) -> plan.Flavor:
        fitting = [flavor for flavor in self.plan['flavors']
                   if flavor['vcpus'] > self.flavor['vcpus']
                   and flavor['per_host'].get(self._other(), 0) >= 2]
        return self.chosen(
            min(fitting, key=lambda flavor: flavor['vcpus'], default=None),
            'larger than the smallest')

    @decorators.idempotent_id('e088410a-34ac-4562-9bfb-2dc122b17433')
    def test_live_migration(self) -> None:
        """A live migration with NUMA: the claim is made anew."""
        if not CONF.hpcvirt.live_migration:
            self.skipTest('[hpcvirt]live_migration is false')
        self.servers.live_migrate_server(
            self.server['id'], host=self._other(), block_migration='auto')
        deadline = time.monotonic() + CONF.compute.build_timeout
        while True:
            moved = self.active(self.server['id'])
            if (self.host_of(moved) == self._other()
                    or time.monotonic() > deadline):
                break
            time.sleep(0.5)
        self.assertEqual(self._other(), self.host_of(moved))
        self._check(moved)

    @decorators.idempotent_id('278da2bd-f8fa-4110-8574-6d6ef310e912')
    def test_rebuild(self) -> None:
        """A rebuild stays on its CPUs."""
        before = self.topology(self.server['id'])
        self.servers.rebuild_server(
            self.server['id'], (CONF.hpcvirt.scheduling_image_ref
                                or CONF.compute.image_ref))
        rebuilt = self.active(self.server['id'])
        self.assertEqual(self.twins[0], self.host_of(rebuilt))
        self.assertEqual(before, self.topology(self.server['id']))

    @decorators.idempotent_id('f9cdf51b-f5bc-4de6-ae17-b12f59a7c06a')
    def test_shelve_and_unshelve(self) -> None:
        """A shelved instance gives its CPUs back, and gets others."""
        self.servers.shelve_server(self.server['id'])
        self.settled(self.server['id'], ('SHELVED_OFFLOADED', 'SHELVED'))
        self._offload()
        self.servers.unshelve_server(self.server['id'])
        self._check(self.active(self.server['id']))

    def _offload(self) -> None:
        shelved = self.servers.show_server(self.server['id'])['server']
        self.addCleanup(self._delete_snapshot, f'{shelved["name"]}-shelved')
        if shelved['status'] == 'SHELVED':
            self.servers.shelve_offload_server(self.server['id'])
            self.settled(self.server['id'], ('SHELVED_OFFLOADED',))

    def _delete_snapshot(self, name: str) -> None:
        images = self.os_admin.image_client_v2
        for image in images.list_images({'name': name})['images']:
            images.delete_image(image['id'])

    @decorators.idempotent_id('3249bdc8-e665-47c8-9a14-0d0344ea7639')
    def test_evacuation(self) -> None:
        """An instance of a dead host starts elsewhere."""
        self.require_command('stop_compute_command')
        self.require_command('start_compute_command')
        source = self.twins[0]
        service = self._service(source)
        # The guest that stays there would be evacuated by nobody.
        self.delete(self.residents.pop(source))
        self.last_heartbeat = service['updated_at']
        self.addCleanup(self._revive, source, service['id'])
        self._command('stop_compute_command', source)
        self.last_heartbeat = self._service(source)['updated_at']
        self.services.update_service(service['id'], forced_down=True)
        self.servers.evacuate_server(self.server['id'])
        moved = self._on(self._other())
        self._check(moved)

    def require_command(self, name: str) -> None:
        if not getattr(CONF.hpcvirt, name):
            self.skipTest(f'[hpcvirt]{name} is not set')

    def _on(self, host: str) -> dict[str, Any]:
        deadline = time.monotonic() + CONF.compute.build_timeout
        while True:
            server = self.settled(self.server['id'], ('ACTIVE', 'ERROR'))
            if self.host_of(server) == host and server['status'] == 'ACTIVE':
                return server
            self.assertLess(
                time.monotonic(), deadline,
                f'server {self.server["id"]} did not come to {host}: '
                f'{server["status"]}, {server.get("fault")}')
            time.sleep(0.5)

    def _revive(self, host: str, service_id: str) -> None:
        """Start nova-compute again and wait until Nova uses it."""
        self._command('start_compute_command', host)
        deadline = time.monotonic() + CONF.compute.build_timeout
        while not self._in_service(host, service_id):
            self.assertLess(time.monotonic(), deadline,
                            f'nova-compute on {host} did not come up again')
            time.sleep(1)

    def _in_service(self, host: str, service_id: str) -> bool:
        try:
            # Nova refuses this until the restarted nova-compute has cleaned
            # up what was evacuated from it.
            self.services.update_service(service_id, forced_down=False)
        except exceptions.BadRequest:
            return False
        service = self._service(host)
        # "up" may be the heartbeat from before nova-compute was stopped.
        return bool(service['state'] == 'up'
                    and service['updated_at'] != self.last_heartbeat)

    def _service(self, host: str) -> dict[str, Any]:
        (service,) = self.services.list_services(
            host=host, binary='nova-compute')['services']
        return dict(service)

    def _command(self, option: str, host: str) -> None:
        words = [word.replace('{host}', host) for word in
                 shlex.split(getattr(CONF.hpcvirt, option))]
        done = subprocess.run(words, capture_output=True, text=True,
                              timeout=300, check=False)
        self.assertEqual(0, done.returncode,
                         f'[hpcvirt]{option}: {done.stdout}{done.stderr}')
