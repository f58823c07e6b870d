# SPDX-License-Identifier: Apache-2.0

"""The base classes of all tests, and of tests that fill whole hosts."""

import functools
import json
import pathlib
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

from tempest import config
from tempest import test
from tempest.lib import exceptions
from tempest.lib.common import api_microversion_fixture
from tempest.lib.common.utils import data_utils
from tempest.lib.common.utils import test_utils

from hpcvirt import topology
from hpcvirt import waiting
from hpcvirt.flavors import plan_document
from hpcvirt.model import host as host_model
from hpcvirt.tempest_plugin import contract
from hpcvirt.tempest_plugin import plan

CONF = config.CONF

#: The first microversion that validates extra specs. It also shows a server's
#: topology (2.78) and accepts a host for the scheduler to check (2.74).
MICROVERSION = '2.86'

#: Seconds between two requests for the state of a server.
PAUSE_S = 0.5


class HPCTestCase(test.BaseTestCase):
    """A test of instances with a NUMA topology, as the administrator."""

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

    def create_flavor(self, flavor: plan_document.FlavorSummary) -> str:
        """Create a flavor of the plan under a random name.

        :returns: its id
        """
        created = self.flavors.create_flavor(
            name=data_utils.rand_name(flavor.name), ram=flavor.ram_mib,
            vcpus=flavor.vcpus, disk=max(1, flavor.disk_gib))['flavor']
        self.addCleanup(test_utils.call_and_ignore_notfound_exc,
                        self.flavors.delete_flavor, created['id'])
        self.flavors.set_flavor_extra_spec(created['id'],
                                           **flavor.extra_specs)
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

        :param failure: message if the check does not become true
        """
        if not waiting.poll(check, bool, CONF.compute.build_timeout,
                            pause_s):
            self.fail(f'{failure} within {CONF.compute.build_timeout} s')

    def wait_for_status(self, server_id: str,
                        *statuses: str) -> dict[str, Any]:
        """Wait until a server has one of these statuses and no task."""
        def is_settled(server: Mapping[str, Any]) -> bool:
            return (server['OS-EXT-STS:task_state'] is None
                    and server['status'] in statuses)

        server: Mapping[str, Any] = waiting.poll(
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
        """Shelve a server, offload it and unshelve it."""
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

    def topology(self, server_id: str) -> tuple[contract.ServerTopologyNode,
                                                ...]:
        """Return the guest cells of a server, with their pins and pages."""
        _, body = self.servers.get(f'servers/{server_id}/topology')
        return contract.nodes(json.loads(body))

    def assert_matches_flavor(self, flavor: plan_document.FlavorSummary,
                              server_id: str,
                              ) -> tuple[contract.ServerTopologyNode, ...]:
        """Check that a server has what its flavor requests.

        :returns: the server's topology
        """
        nodes = self.topology(server_id)
        self.assertEqual([], contract.violations(flavor, nodes), nodes)
        return nodes

    @staticmethod
    def host_of(server: Mapping[str, Any]) -> str:
        """Return the compute host of a server."""
        return str(server['OS-EXT-SRV-ATTR:host'])


class FleetTestCase(HPCTestCase):
    """A test that fills hosts which nothing else uses."""

    @classmethod
    def skip_checks(cls) -> None:
        super().skip_checks()
        cls.require_servers()
        cls.require('plan_file', 'hosts')

    @classmethod
    def resource_setup(cls) -> None:
        super().resource_setup()
        cls.plan = plan.load(CONF.hpcvirt.plan_file)

    def setUp(self) -> None:
        super().setUp()
        self._wait_for_empty_hosts()

    def _wait_for_empty_hosts(self) -> None:
        """Wait until Nova has freed the resources of earlier tests.

        A compute host frees some resources, such as those of an instance that
        moved away, only in its next periodic update, once a minute by default.
        """
        busy = waiting.poll(self._memory_in_use, lambda busy: not busy,
                            CONF.compute.build_timeout, 2)
        self.assertEqual({}, busy, 'MiB in use on hosts of [hpcvirt]hosts '
                                   'that must be empty')

    def _memory_in_use(self) -> dict[str, int]:
        """Return the MiB that instances use on each host that is not empty."""
        client = self.os_admin.hypervisor_client
        busy = {}
        for item in client.list_hypervisors(detail=True)['hypervisors']:
            host = item['service']['host']
            config = self.plan.host_config.get(host)
            if host not in CONF.hpcvirt.hosts or not config:
                continue
            # 512 is the default of [DEFAULT]reserved_host_memory_mb.
            reserved = max(512, config.reserved_host_memory_mb)
            if item['memory_mb_used'] > reserved:
                busy[host] = item['memory_mb_used'] - reserved
        return busy

    @classmethod
    def require_twins(cls) -> None:
        if len(CONF.hpcvirt.twin_hosts) < 2:
            raise cls.skipException(
                '[hpcvirt]twin_hosts names fewer than two hosts')

    def host_topology(self, name: str) -> host_model.Host:
        """Read the topology of a host from ``[hpcvirt]topology_dir``."""
        if not CONF.hpcvirt.topology_dir:
            raise self.skipException('[hpcvirt]topology_dir is not set')
        path = pathlib.Path(CONF.hpcvirt.topology_dir, f'{name}.json')
        return topology.read(str(path))

    def require_flavor(self, flavor: plan_document.FlavorSummary | None,
                       description: str) -> plan_document.FlavorSummary:
        """Skip the test if the plan has no such flavor."""
        if flavor is None:
            raise self.skipException(
                f'[hpcvirt]plan_file has no flavor {description}')
        return flavor

    def create_zone(self, hosts: list[str], **metadata: str) -> str:
        """Create an availability zone of these hosts.

        :returns: the name of the zone, and of its aggregate
        """
        name = data_utils.rand_name('hpcvirt-zone')
        aggregate = self.aggregates.create_aggregate(
            name=name, availability_zone=name)['aggregate']
        self.addCleanup(test_utils.call_and_ignore_notfound_exc,
                        self.aggregates.delete_aggregate, aggregate['id'])
        for host in hosts:
            self.aggregates.add_host(aggregate['id'], host=host)
            self.addCleanup(test_utils.call_and_ignore_notfound_exc,
                            self.aggregates.remove_host, aggregate['id'],
                            host=host)
        if metadata:
            self.aggregates.set_metadata(aggregate['id'], metadata=metadata)
        return name
