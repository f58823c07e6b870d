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

"""Base class of all tests: clients, flavors, servers and topologies."""

import functools
import json
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

from tempest import config
from tempest import test
from tempest.lib import exceptions
from tempest.lib.common import api_microversion_fixture
from tempest.lib.common.utils import data_utils
from tempest.lib.common.utils import test_utils

from hpcvirt import waiting
from hpcvirt.tempest_plugin import contract
from hpcvirt.tempest_plugin import plan

CONF = config.CONF

#: The first microversion that validates extra specs. It also shows a server's
#: topology (2.78) and accepts a host for the scheduler to check (2.74).
MICROVERSION = '2.86'

#: Seconds between two requests for the state of a server.
PAUSE_S = 0.5


class HPCTestCase(test.BaseTestCase):
    """Tests instances with a NUMA topology, as the administrator."""

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
        """Skip the class unless these options of ``[hpcvirt]`` are set."""
        for name in options:
            if not getattr(CONF.hpcvirt, name):
                raise cls.skipException(f'[hpcvirt]{name} is not set')

    @classmethod
    def require_servers(cls) -> None:
        """Skip the class unless Nova can create servers.

        Nova needs Neutron even for a server without a network.
        """
        if not CONF.service_available.neutron:
            raise cls.skipException('[service_available]neutron is false')

    def create_flavor(self, flavor: plan.Flavor) -> str:
        """Create a flavor of the plan under a random name.

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

        :param wait: whether to wait until the server is active
        """
        arguments = {
            'name': data_utils.rand_name('hpcvirt'),
            'flavorRef': flavor_id,
            'imageRef': (CONF.hpcvirt.scheduling_image_ref
                         or CONF.compute.image_ref),
            'networks': 'none',
            **request,
        }
        server = self.servers.create_server(**arguments)['server']
        self.addCleanup(self.delete, server['id'])
        return self.wait_until_active(server['id']) if wait else dict(server)

    def delete(self, *server_ids: str) -> None:
        """Delete servers, all at once, and wait until they are deleted."""
        for server_id in server_ids:
            test_utils.call_and_ignore_notfound_exc(
                self.servers.delete_server, server_id)
        for server_id in server_ids:
            self.wait_until(functools.partial(self._is_deleted, server_id),
                            f'server {server_id} was not deleted')

    def _is_deleted(self, server_id: str) -> bool:
        try:
            self.servers.show_server(server_id)
        except exceptions.NotFound:
            return True
        return False

    def wait_until(self, check: Callable[[], bool], failure: str,
                   pause_s: float = PAUSE_S) -> None:
        """Wait until a check is true, up to ``[compute]build_timeout``.

        :param failure: what to say if it does not become true
        """
        if not waiting.until(check, bool, CONF.compute.build_timeout,
                             pause_s):
            self.fail(f'{failure} within {CONF.compute.build_timeout} s')

    def wait_for_status(self, server_id: str,
                        *statuses: str) -> dict[str, Any]:
        """Wait until a server has one of these states and no task."""
        def is_settled(server: Mapping[str, Any]) -> bool:
            return (server['OS-EXT-STS:task_state'] is None
                    and server['status'] in statuses)

        server: Mapping[str, Any] = waiting.until(
            lambda: self.servers.show_server(server_id)['server'],
            is_settled, CONF.compute.build_timeout, PAUSE_S)
        if not is_settled(server):
            self.fail(f'server {server_id} is {server["status"]} with task '
                      f'{server["OS-EXT-STS:task_state"]}, not '
                      f'{" or ".join(statuses)}')
        return dict(server)

    def wait_until_active(self, server_id: str) -> dict[str, Any]:
        """Wait until a server is active; quote the fault if it fails."""
        server = self.wait_for_status(server_id, 'ACTIVE', 'ERROR')
        self.assertEqual('ACTIVE', server['status'],
                         f'fault: {server.get("fault")}')
        return server

    def shelve_and_unshelve(self, server_id: str) -> None:
        """Shelve a server, take it off its host and unshelve it."""
        self.servers.shelve_server(server_id)
        server = self.wait_for_status(server_id, 'SHELVED',
                                      'SHELVED_OFFLOADED')
        self.addCleanup(self._delete_snapshot, f'{server["name"]}-shelved')
        if server['status'] == 'SHELVED':
            self.servers.shelve_offload_server(server_id)
            self.wait_for_status(server_id, 'SHELVED_OFFLOADED')
        self.servers.unshelve_server(server_id)

    def _delete_snapshot(self, name: str) -> None:
        client = self.os_admin.image_client_v2
        for image in client.list_images({'name': name})['images']:
            client.delete_image(image['id'])

    def boot_refused(self, flavor_id: str, **request: Any) -> str:
        """Create a server that no host may accept.

        :returns: Nova's message
        """
        created = self.boot(flavor_id, wait=False, **request)
        server = self.wait_for_status(created['id'], 'ACTIVE', 'ERROR')
        self.assertEqual(
            'ERROR', server['status'],
            f'started on {server.get("OS-EXT-SRV-ATTR:host")} with '
            f'{self.topology(server["id"])}')
        self.delete(server['id'])
        return str(server['fault']['message'])

    def topology(self, server_id: str) -> tuple[contract.Node, ...]:
        """Show which host cells, CPUs and pages a server has."""
        _, body = self.servers.get(f'servers/{server_id}/topology')
        return contract.nodes(json.loads(body))

    def assert_matches_flavor(self, flavor: plan.Flavor, server_id: str,
                              ) -> tuple[contract.Node, ...]:
        """Check that a server has what its flavor asks for.

        :returns: the server's topology
        """
        nodes = self.topology(server_id)
        self.assertEqual([], contract.violations(flavor, nodes), nodes)
        return nodes

    @staticmethod
    def host_of(server: Mapping[str, Any]) -> str:
        """Return the compute host of a server."""
        return str(server['OS-EXT-SRV-ATTR:host'])
