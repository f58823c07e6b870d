# SPDX-License-Identifier: Apache-2.0

"""Start the embedded Nova, add hosts to it, and boot instances."""

import copy
import functools
import gc
import itertools
import logging
import pathlib
import sys
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import fixtures
import nova.conf
import sqlalchemy
from nova import context
from nova import service
from nova.tests import fixtures as nova_fixtures
from nova.tests.functional.api import client
from nova.tests.functional.libvirt import base
from nova.virt.libvirt import host as libvirt_host
from oslo_utils import uuidutils

from hpcvirt import waiting
from hpcvirt.topology import domain
from testing import databases
from testing import identity
from testing import ledger as embedded_ledger
from testing import libvirt
from testing import settings as embedded_settings
from testing import shared
from testing import workers

CONF = nova.conf.CONF

#: The newest microversion of python-novaclient.
MICROVERSION = '2.96'

#: Nova's default filters.
USUAL_FILTERS = (
    'ComputeFilter', 'ComputeCapabilitiesFilter', 'ImagePropertiesFilter',
    'ServerGroupAntiAffinityFilter', 'ServerGroupAffinityFilter')

#: Time limit of one step of a server's life.
PATIENCE_S = 120
#: Time limit of the thread in which a service that stops ends its executors.
#: Nova keeps 20 s of it for that, and waits for no tasks in progress.
SHUTDOWN_S = 20
#: Whether a service ends executors in a thread, as of Nova 34.
ENDS_EXECUTORS = hasattr(service.Service, '_run_manager_graceful_shutdown')
POLL_S = 0.05

#: The columns from which the API derives the status of a server.
_STATE = sqlalchemy.text(
    'SELECT vm_state, task_state FROM instances'
    ' WHERE uuid = :uuid AND deleted = 0')

# Nova's test base replaces this method with one that does not ask libvirt.
_ASK_LIBVIRT_FOR_ONLINE_CPUS = libvirt_host.Host.get_online_cpus


class _UsualLogging(nova_fixtures.StandardLogging):
    """Log what is kept.

    Nova's fixture also formats what it logs for debugging, and drops it.
    """

    def setUp(self) -> None:
        super().setUp()
        root = logging.getLogger()
        root.setLevel(root.handlers[0].level)


class EmbeddedNova(base.ServersTestBase):
    """A Nova in which the API's user is an administrator without quota.

    The class attributes set options of nova.conf, such as those of
    ``[filter_scheduler]``.
    """

    ADMIN_API = True
    #: A cast returns at once, as it does outside of Nova's tests.
    CAST_AS_CALL = False
    microversion = MICROVERSION

    AVAILABLE_FILTERS: tuple[str, ...] = (
        'nova.scheduler.filters.all_filters',)
    ENABLED_FILTERS: tuple[str, ...] = (
        *USUAL_FILTERS, 'NUMATopologyFilter', 'PciPassthroughFilter')
    WEIGHT_CLASSES: tuple[str, ...] = ('nova.scheduler.weights.all_weighers',)
    #: Further options: group (None for DEFAULT), name, value.
    OPTIONS: tuple[tuple[str | None, str, object], ...] = ()

    def setUp(self) -> None:
        _keep_modules()
        self.flags(
            available_filters=list(self.AVAILABLE_FILTERS),
            enabled_filters=list(self.ENABLED_FILTERS),
            weight_classes=list(self.WEIGHT_CLASSES), group='filter_scheduler')
        self.flags(cores=-1, ram=-1, instances=-1, server_groups=-1,
                   server_group_members=-1, group='quota')
        # Restore defaults that Nova's tests change, and do not validate the
        # responses of the API.
        self.flags(notification_format='unversioned', group='notifications')
        self.flags(response_validation='ignore', group='api')
        # A call to a service that has stopped ends after half an hour by
        # default, and the service that makes the call stops no sooner.
        self.flags(long_rpc_timeout=PATIENCE_S)
        # Nova 34 ends the executors of the process in a thread when a service
        # stops. Its fixtures replace that, but do not wait for the thread, so
        # that a late one ends the executors of the next test.
        # Nova 33 has the option too, but always sleeps for so long.
        if ENDS_EXECUTORS:
            self.flags(manager_shutdown_timeout=SHUTDOWN_S)
        # Packages install the file here; Nova's fixture expects it next to
        # the source of Nova.
        paste = pathlib.Path(self.useFixture(
            fixtures.TempDir()).path, 'api-paste.ini')
        paste.write_text(shared.paste_without_v2(
            pathlib.Path(sys.prefix, 'etc/nova/api-paste.ini')))
        self.flags(api_paste_config=str(paste), group='wsgi')
        for group, name, value in self.OPTIONS:
            self.flags(group=group, **{name: value})
        self.shared_databases = self.useFixture(databases.SharedDatabases())
        self.useFixture(shared.SharedStatements())
        self.useFixture(shared.SharedPolicies())
        self.useFixture(shared.SharedValidators())
        self.useFixture(fixtures.MonkeyPatch(
            'nova.tests.fixtures.StandardLogging', _UsualLogging))
        self.useFixture(workers.WokenWorkers())
        self.useFixture(identity.Token())
        self.log = self.useFixture(fixtures.FakeLogger(
            name='hpcvirt', level='DEBUG', nuke_handlers=False,
            format='%(levelname)s %(name)s [-] %(message)s'))
        super().setUp()
        self.useFixture(embedded_settings.OwnSettings())
        self.useFixture(fixtures.MonkeyPatch(
            'nova.virt.libvirt.host.Host.get_online_cpus',
            _ASK_LIBVIRT_FOR_ONLINE_CPUS))
        self.useFixture(fixtures.MonkeyPatch(
            'nova.virt.libvirt.LibvirtDriver._get_local_gb_info',
            lambda _: {'total': 100_000, 'used': 0, 'free': 100_000}))
        # The guests have no disks to move.
        self.useFixture(fixtures.MonkeyPatch(
            'nova.virt.libvirt.driver.LibvirtDriver'
            '.migrate_disk_and_power_off', lambda *_, **__: '{}'))
        self.neutron = self.useFixture(base.LibvirtNeutronFixture(self))
        self.connections: dict[str, libvirt.Connection] = {}
        self._databases = []
        for cell in self.cell_mappings.values():
            with context.target_cell(
                    context.get_admin_context(), cell) as targeted:
                self._databases.append(targeted.db_connection)
        self._serial = itertools.count()

    def cell_connections(self) -> Iterator[sqlalchemy.Connection]:
        """Yield a connection to the database of each cell, to read or write.

        The transaction ends when the next one is taken.
        """
        for database in self._databases:
            with database.writer.connection.using(
                    context.get_admin_context()) as connection:
                yield connection

    def _setup_scheduler_service(self) -> Any:
        # Nova's own method appends filters to the option permanently.
        return self.start_service('scheduler')

    def add_machines(self, *machines: libvirt.Machine) -> None:
        """Start a nova-compute on each machine."""
        for machine in machines:
            connection = libvirt.Connection(machine)
            self.connections[machine.name] = connection
            with embedded_settings.acting_for(connection):
                self.start_compute(machine.name, connection=connection)

    def use_as_cloud(self) -> None:
        """Let OpenStack clients in this process use this Nova."""
        self.useFixture(identity.CloudsFile(
            self.api.base_url, self.placement.fixture.endpoint))

    # Flavors

    def create_flavor(self, vcpus: int, ram_mib: int,
                      extra_specs: Mapping[str, str] | None = None,
                      name: str | None = None, disk_gib: int = 0) -> str:
        """Create a flavor through the API.

        :returns: its id
        :raises OpenStackApiException: if Nova refuses an extra spec
        """
        flavor = self.api.post_flavor({'flavor': {
            'name': name or f'flavor-{next(self._serial)}', 'vcpus': vcpus,
            'ram': ram_mib, 'disk': disk_gib}})
        if extra_specs:
            self.api.post_extra_spec(
                flavor['id'], {'extra_specs': dict(extra_specs)})
        return str(flavor['id'])

    def refusal_of(self, extra_specs: Mapping[str, str]) -> int:
        """Return the HTTP status with which the API refuses extra specs."""
        flavor = self.create_flavor(1, 64)
        error = self.assertRaises(
            client.OpenStackApiException, self.api.post_extra_spec,
            flavor, {'extra_specs': dict(extra_specs)})
        return int(error.response.status_code)

    # Servers

    def boot(self, flavor: str, *, name: str | None = None,
             ports: Sequence[str] = (), group: str | None = None,
             status: str = 'ACTIVE', **more: object) -> dict[str, Any]:
        """Boot a server and wait.

        :param flavor: id of the flavor
        :param ports: ids of Neutron ports
        :param group: id of a server group
        :param status: the status to wait for
        :param more: further parts of the server in the API
        """
        return self.wait_for(
            self.request(flavor, name=name, ports=ports, group=group, **more),
            status)

    def request(self, flavor: str, *, name: str | None = None,
                ports: Sequence[str] = (), group: str | None = None,
                **more: object) -> dict[str, Any]:
        """Request a server and do not wait; see :meth:`boot`."""
        body: dict[str, Any] = {'server': {
            'name': name or f'server-{next(self._serial)}',
            'imageRef': self.glance.image1['id'], 'flavorRef': flavor,
            'networks': [{'port': port} for port in ports] or 'none',
            **more}}
        if group is not None:
            body['os:scheduler_hints'] = {'group': group}
        server: dict[str, Any] = self.api.post_server(body)
        return server

    def boot_many(self, flavor: str, count: int,
                  status: str | Sequence[str] = 'ACTIVE',
                  **more: object) -> list[dict[str, Any]]:
        """Boot several servers with one request, and wait for all of them."""
        reservation = self.request(
            flavor, min_count=count, max_count=count,
            return_reservation_id=True, **more)['reservation_id']
        servers = self.api.get_servers(
            search_opts={'reservation_id': reservation})
        self.assertEqual(count, len(servers))
        return [self.wait_for(server, status) for server in servers]

    def wait_for(self, server: Mapping[str, Any],
                 status: str | Sequence[str]) -> dict[str, Any]:
        """Wait until a server has a status and no task.

        :param status: the status to wait for, or several
        """
        wanted = (status,) if isinstance(status, str) else status
        now = waiting.poll(
            lambda: self._settled(server),
            lambda now: now is not None and now['status'] in {
                *wanted, 'ERROR'}, PATIENCE_S, POLL_S)
        if now is None:
            self.fail(f'a task of {server["id"]} does not end')
        if now['status'] not in wanted:
            self.fail(f'{now["name"]} is {now["status"]}, not'
                      f' {" or ".join(wanted)}: {now.get("fault")}')
        return now

    def delete(self, server: Mapping[str, Any]) -> None:
        """Delete a server and wait until its resources are free."""
        self.api.delete_server(server['id'])
        self.wait_until_gone(server)

    def wait_until_gone(self, server: Mapping[str, Any]) -> None:
        """Wait until a deleted server's resources are free."""
        if not waiting.poll(lambda: self._is_gone(server), bool,
                            PATIENCE_S, POLL_S):
            self.fail(f'{server["name"]} is still there')

    def _settled(self, server: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the server in the API, or None while a task is in progress.

        The databases of the cells are queried first, because a request to the
        API takes a fifth of the time of a boot and blocks everything else.
        """
        if not any(task_state is None and vm_state != 'building'
                   for vm_state, task_state in self._states(server)):
            return None
        now: dict[str, Any] = self.api.get_server(server['id'])
        return now if now['OS-EXT-STS:task_state'] is None else None

    def _states(self, server: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Return the state and task of a server in each cell that has it."""
        states: list[tuple[str, str]] = []
        for connection in self.cell_connections():
            states.extend(tuple(row) for row in connection.execute(
                _STATE, {'uuid': server['id']}))
        return states

    def _is_gone(self, server: Mapping[str, Any]) -> bool:
        if self._states(server):
            return False
        try:
            self.api.get_server(server['id'])
        except client.OpenStackApiNotFoundException:
            return not self._get_allocations_by_server_uuid(server['id'])
        return False

    def host_of(self, server: Mapping[str, Any]) -> str | None:
        """Return the name of the host of a server."""
        found = self.api.get_server(server['id'])
        host: str | None = found['OS-EXT-SRV-ATTR:host']
        return host

    # What Nova passed to libvirt

    def ledger(self, host: str) -> embedded_ledger.Ledger:
        """Return the ledger of a host."""
        connection = self.connections[host]
        return embedded_ledger.Ledger(
            connection.machine, tuple(map(_read_domain, connection.domains())))

    def guest(self, server: Mapping[str, Any]) -> domain.Domain:
        """Return the domain of a server on its host in Nova."""
        host = self.host_of(server)
        self.assertIsNotNone(host)
        return next(guest for guest in self.ledger(str(host)).guests
                    if guest.uuid == server['id'])

    def faults(self) -> list[str]:
        """Return the faults on all hosts; see :class:`Ledger`."""
        faults: list[str] = []
        for host in self.connections:
            faults += self.ledger(host).faults()
        return faults

    # Networks

    def create_sriov_port(self, physnet: str) -> str:
        """Create a port that takes a virtual function of a physnet.

        :returns: id of the port
        """
        network = self._sriov_network(physnet)
        number = next(self._serial)
        port = copy.deepcopy(self.neutron.network_4_port_1)
        port.update(
            id=uuidutils.generate_uuid(), network_id=network,
            mac_address=f'fa:16:3e:00:{number >> 8:02x}:{number & 255:02x}',
            fixed_ips=[{'ip_address': f'192.168.4.{number % 250 + 2}',
                        'subnet_id': self.neutron.subnet_4['id']}],
            tenant_id=self.neutron.tenant_id, admin_state_up=True)
        self.neutron._ports[port['id']] = port
        return str(port['id'])

    def _sriov_network(self, physnet: str) -> str:
        for network in self.neutron._networks.values():
            if network['provider:physical_network'] == physnet:
                return str(network['id'])
        network = copy.deepcopy(self.neutron.network_4)
        network.update({'id': uuidutils.generate_uuid(), 'name': physnet,
                        'provider:physical_network': physnet})
        self.neutron._networks[network['id']] = network
        return str(network['id'])


@functools.cache
def _keep_modules() -> None:
    """Do not look for garbage among what was imported before the first Nova.

    It is most of what there is, and is never given up.
    """
    gc.freeze()


@functools.lru_cache(maxsize=1024)
def _read_domain(xml: str) -> domain.Domain:
    return domain.read(xml)
