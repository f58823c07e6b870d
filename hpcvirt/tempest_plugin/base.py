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

"""What all tests need: an administrator, flavors, servers, topologies."""

import json
import time
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from tempest import config
from tempest import test
from tempest.lib import exceptions
from tempest.lib.common import api_microversion_fixture
from tempest.lib.common.utils import data_utils
from tempest.lib.common.utils import test_utils

from hpcvirt.tempest_plugin import contract
from hpcvirt.tempest_plugin import plan

CONF = config.CONF

#: From here on the API validates extra specs; it also tells a server's
#: topology (2.78) and takes a host that the scheduler examines (2.74).
MICROVERSION = '2.86'


class HPCTestCase(test.BaseTestCase):
    """An administrator's test of instances with a topology."""

    credentials = ('admin',)

    @classmethod
    def skip_checks(cls) -> None:
        super().skip_checks()
        if not CONF.service_available.nova:
            raise cls.skipException('[service_available]nova is false')

    @classmethod
    def setup_clients(cls) -> None:
        super().setup_clients()
        cls.servers = cls.os_admin.servers_client
        cls.flavors = cls.os_admin.flavors_client
        cls.aggregates = cls.os_admin.aggregates_client
        cls.services = cls.os_admin.services_client

    @classmethod
    def setup_credentials(cls) -> None:
        cls.set_network_resources()
        super().setup_credentials()

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(api_microversion_fixture.APIMicroversionFixture(
            compute_microversion=MICROVERSION))

    @classmethod
    def require(cls, *options: str) -> None:
        """Skip the class where one of our options is not set."""
        for name in options:
            if not getattr(CONF.hpcvirt, name):
                raise cls.skipException(f'[hpcvirt]{name} is not set')

    @classmethod
    def require_servers(cls) -> None:
        """Skip the class where Nova cannot create servers.

        Without Neutron it cannot create one without a network either.
        """
        if not CONF.service_available.neutron:
            raise cls.skipException('[service_available]neutron is false')

    def create_flavor(self, flavor: plan.Flavor) -> str:
        """Create a flavor of the plan under a name of its own.

        :returns: its id
        """
        created = self.flavors.create_flavor(
            name=data_utils.rand_name(flavor['name']), ram=flavor['ram_mib'],
            vcpus=flavor['vcpus'], disk=max(1, flavor['disk_gib']))['flavor']
        self.addCleanup(test_utils.call_and_ignore_notfound_exc,
                        self.flavors.delete_flavor, created['id'])
        self.flavors.set_flavor_extra_spec(created['id'],
                                           **flavor['extra_specs'])
        return str(created['id'])

    def boot(self, flavor_id: str, wait: bool = True,
             **request: Any) -> dict[str, Any]:
        """Create a server without a network, unless the request has one.

        :returns: the server, active if ``wait``
        """
        wanted = {
            'name': data_utils.rand_name('hpcvirt'),
            'flavorRef': flavor_id,
            'imageRef': (CONF.hpcvirt.scheduling_image_ref
                         or CONF.compute.image_ref),
            'networks': 'none',
            **request,
        }
        server = self.servers.create_server(**wanted)['server']
        self.addCleanup(self.delete, server['id'])
        if not wait:
            return dict(server)
        return self.active(server['id'])

    def delete(self, *server_ids: str) -> None:
        """Delete servers, all at once, and wait until they are gone."""
        for server_id in server_ids:
            test_utils.call_and_ignore_notfound_exc(
                self.servers.delete_server, server_id)
        deadline = time.monotonic() + CONF.compute.build_timeout
        for server_id in server_ids:
            self._wait_until_gone(server_id, deadline)

    def _wait_until_gone(self, server_id: str, deadline: float) -> None:
        while time.monotonic() < deadline:
            try:
                self.servers.show_server(server_id)
            except exceptions.NotFound:
                return
            time.sleep(0.5)
        self.fail(f'server {server_id} is still there '
                  f'{CONF.compute.build_timeout} s after its deletion')

    def settled(self, server_id: str,
                statuses: Sequence[str]) -> dict[str, Any]:
        """Wait until a server has one of these states and no task."""
        deadline = time.monotonic() + CONF.compute.build_timeout
        while True:
            server = self.servers.show_server(server_id)['server']
            idle = server['OS-EXT-STS:task_state'] is None
            if idle and server['status'] in statuses:
                return dict(server)
            if time.monotonic() > deadline:
                self.fail(f'server {server_id} is {server["status"]}, task '
                          f'{server["OS-EXT-STS:task_state"]}; waited for '
                          f'{" or ".join(statuses)}')
            time.sleep(0.5)

    def active(self, server_id: str) -> dict[str, Any]:
        """Wait until a server is active; quote the fault if it is not."""
        server = self.settled(server_id, ('ACTIVE', 'ERROR'))
        self.assertEqual('ACTIVE', server['status'],
                         f'fault: {server.get("fault")}')
        return server

    def refused(self, flavor_id: str, **request: Any) -> str:
        """Create a server that no host may take.

        :returns: Nova's message
        """
        server = self.boot(flavor_id, wait=False, **request)
        found = self.settled(server['id'], ('ACTIVE', 'ERROR'))
        self.assertEqual(
            'ERROR', found['status'],
            f'started on {found.get("OS-EXT-SRV-ATTR:host")}, on '
            f'{self.topology(server["id"])}')
        message = str(found['fault']['message'])
        self.delete(server['id'])
        return message

    def topology(self, server_id: str) -> tuple[contract.Node, ...]:
        """Ask which host cells, CPUs and pages a server has."""
        _, body = self.servers.get(f'servers/{server_id}/topology')
        answer: Mapping[str, Any] = json.loads(body)
        return contract.nodes(answer)

    def assert_kept(self, flavor: plan.Flavor,
                    server_id: str) -> tuple[contract.Node, ...]:
        """Check that a server has what its flavor promises.

        :returns: its topology
        """
        found = self.topology(server_id)
        self.assertEqual([], contract.broken(flavor, found), found)
        return found

    @staticmethod
    def host_of(server: Mapping[str, Any]) -> str:
        """Name the compute service that a server runs on."""
        return str(server['OS-EXT-SRV-ATTR:host'])
