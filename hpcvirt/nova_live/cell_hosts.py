# SPDX-License-Identifier: Apache-2.0

"""Read the compute hosts of all Nova cells as nova-scheduler does.

The host states are those of Nova's HostManager. Unlike in nova-scheduler, a
record that cannot be read does not affect other hosts.
"""

import dataclasses
import typing
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

import sqlalchemy
from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova import servicegroup
from nova.scheduler import host_manager
from oslo_db import exception as db_exception

from hpcvirt import exception
from hpcvirt.nova import host_record
from hpcvirt.nova_live import masking

#: The exceptions of a database that cannot be reached or read.
UNREADABLE = (db_exception.DBError, db_exception.CantStartEngineError,
              sqlalchemy.exc.SQLAlchemyError, nova_exception.NovaException,
              ImportError, ValueError)

#: The exceptions of Nova's objects for a broken record.
BROKEN = (*host_record.BROKEN, *UNREADABLE)

_EXPECTED = ('flavor', 'metadata', 'numa_topology', 'pci_devices',
             'system_metadata')


class CellHostManager(host_manager.HostManager):
    """Nova's HostManager, without its thread that reads all instances.

    :ivar instances: host -> UUID -> Instance, for the hosts that were read
    """

    def __init__(self) -> None:
        self.instances: dict[str, dict[str, typing.Any]] = {}
        super().__init__()

    def _init_instance_info(self, *_: typing.Any) -> None:
        pass

    def _get_instance_info(self, _context: typing.Any,
                           compute: typing.Any) -> dict[str, typing.Any]:
        return self.instances.get(compute.host, {})

    def state(self, context: typing.Any, cell: typing.Any,
              node: typing.Any, services: typing.Any) -> typing.Any:
        """Make the HostState of a compute node."""
        return next(iter(self._get_host_states(
            context, {cell.uuid: [node]}, services)))


@dataclasses.dataclass(frozen=True)
class CellHosts:
    """The compute hosts of all cells.

    :ivar states: name -> HostState
    :ivar instances: name -> the instances on the host
    :ivar broken: host -> why its record cannot be used
    :ivar closed: host -> why Nova sends no new instance there
    """

    manager: CellHostManager
    states: Mapping[str, typing.Any]
    instances: Mapping[str, Sequence[typing.Any]]
    broken: Mapping[str, str]
    closed: Mapping[str, str]


def read(context: typing.Any) -> CellHosts:
    """Read the hosts and their instances.

    :raises Unreachable: if Nova's API database cannot be read
    """
    try:
        manager = CellHostManager()
    except UNREADABLE as exc:
        raise exception.Unreachable(
            "Nova's API database cannot be read: "
            f'{masking.mask(exc)}') from None
    services = servicegroup.API()
    states: dict[str, typing.Any] = {}
    instances: dict[str, Sequence[typing.Any]] = {}
    broken: dict[str, str] = {}
    closed: dict[str, str] = {}
    for cell in manager.cells.values():
        reader = _Reader(manager, cell, broken)
        try:
            with nova_context.target_cell(context, cell) as targeted:
                for state, own in reader.hosts(targeted):
                    name = state.host
                    if name in states:
                        # The service has several nodes.
                        name = state.nodename
                    states[name], instances[name] = state, own
                    why = _closed(cell, state.service, services)
                    if why:
                        closed[name] = why
        except UNREADABLE as exc:
            secrets = (cell.database_connection or '',)
            why = (f'its cell {cell.name or cell.uuid} cannot be read: '
                   f'{masking.mask(exc, secrets)}')
            broken |= dict.fromkeys(_mapped_to(context, cell), why)
    return CellHosts(manager, states, instances, broken, closed)


def _mapped_to(context: typing.Any, cell: typing.Any) -> list[str]:
    mappings = objects.HostMappingList.get_by_cell_id(context, cell.id)
    return [mapping.host for mapping in mappings] or [
        f'cell {cell.name or cell.uuid}']


def _closed(cell: typing.Any, service: typing.Any,
            services: typing.Any) -> str | None:
    if cell.disabled:
        return f'its cell {cell.name or cell.uuid} is disabled'
    if service['disabled']:
        reason = service.get('disabled_reason')
        return 'its nova-compute is disabled' + (
            f' ({reason})' if reason else '')
    if not services.service_is_up(service):
        return 'its nova-compute is down'
    return None


class _Reader:
    """Reads the hosts of one cell."""

    def __init__(self, manager: CellHostManager, cell: typing.Any,
                 broken: dict[str, str]) -> None:
        self._manager = manager
        self._cell = cell
        self._broken = broken

    def hosts(self, context: typing.Any,
              ) -> Iterator[tuple[typing.Any, Sequence[typing.Any]]]:
        """Yield HostStates, each with the instances on it."""
        services = {service.host: service for service
                    in objects.ServiceList.get_by_binary(
                        context, 'nova-compute', include_disabled=True)}
        nodes = self._nodes(context, services)
        residents = self._residents(context, services)
        for host in services:
            if host not in nodes:
                self._broken.setdefault(
                    host, 'its nova-compute has not reported any resources')
        for host, own in nodes.items():
            if host not in services:
                self._broken[host] = 'it has no nova-compute service'
                continue
            if host in self._broken:
                continue
            self._manager.instances[host] = {
                instance.uuid: instance for instance in residents[host]}
            for node in own:
                state = self._state(context, node, services)
                if state is not None:
                    yield state, [
                        instance for instance in residents[host]
                        if instance.node == node.hypervisor_hostname]

    def _state(self, context: typing.Any, node: typing.Any,
               services: typing.Any) -> typing.Any:
        try:
            state = self._manager.state(context, self._cell, node, services)
        except BROKEN as exc:
            self._note(node.host, exc)
            return None
        if state.uuid is None:
            self._broken[node.host] = (
                'its nova-compute has not reported its usage')
            return None
        return state

    def _nodes(self, context: typing.Any, hosts: Iterable[str],
               ) -> dict[str, list[typing.Any]]:
        return self._by_host(
            hosts, lambda: objects.ComputeNodeList.get_all(context),
            lambda host: objects.ComputeNodeList.get_all_by_host(
                context, host))

    def _residents(self, context: typing.Any, hosts: Iterable[str],
                   ) -> dict[str, list[typing.Any]]:
        found = self._by_host(
            hosts, lambda: objects.InstanceList.get_by_filters(
                context, {'deleted': False}, expected_attrs=[*_EXPECTED]),
            lambda host: objects.InstanceList.get_by_host(
                context, host, expected_attrs=[*_EXPECTED]))
        return {**{host: [] for host in hosts}, **found}

    def _by_host(self, hosts: Iterable[str],
                 get_all: Callable[[], Iterable[typing.Any]],
                 get_of: Callable[[str], Iterable[typing.Any]],
                 ) -> dict[str, list[typing.Any]]:
        """Read all records or, if one is broken, those of each host."""
        found: dict[str, list[typing.Any]] = {}
        try:
            for record in get_all():
                found.setdefault(record.host, []).append(record)
            return found
        except (db_exception.DBConnectionError,
                db_exception.CantStartEngineError):
            raise
        except BROKEN:
            found.clear()
        for host in hosts:
            try:
                own = list(get_of(host))
            except nova_exception.NotFound:
                continue
            except BROKEN as exc:
                self._note(host, exc)
                continue
            if own:
                found[host] = own
        return found

    def _note(self, host: str, exc: Exception) -> None:
        said = masking.mask(str(exc).replace('_obj_', '').split('\n')[0])
        self._broken[host] = (
            f'its record cannot be read: {type(exc).__name__}: {said}')
