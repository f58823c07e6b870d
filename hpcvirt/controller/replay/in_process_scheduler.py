# SPDX-License-Identifier: Apache-2.0

"""Run Nova's scheduler without its databases and services."""

import copy
import typing
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

import nova.conf
from nova import context as nova_context
from nova import exception as nova_exception
from nova.objects import service
from nova.scheduler import host_manager
from nova.scheduler import manager
from oslo_utils import timeutils

from hpcvirt.controller.replay import allocations
from hpcvirt.controller.replay import compute_host

#: The microversion of Placement in which candidates are written.
_VERSION = '1.36'


class ReplayHostManager(host_manager.HostManager):
    """Nova's HostManager, with the filters and weighers of nova.conf.

    :ivar hosts: the hosts, by UUID
    """

    def __init__(self, hosts: Mapping[str, compute_host.ComputeHost] = {},
                 ) -> None:
        super().__init__()
        self.hosts = hosts
        self._given: list[typing.Any] = []
        self._service: dict[str, typing.Any] = {
            'binary': 'nova-compute', 'disabled': False,
            'version': service.SERVICE_VERSION}

    def refresh_cells_caches(self) -> None:
        self.cells: dict[str, typing.Any] = {}
        self.enabled_cells: list[typing.Any] = []

    def _init_aggregates(self) -> None:
        pass

    def _init_instance_info(self, *_: typing.Any) -> None:
        pass

    def get_host_states_by_uuids(self, _context: typing.Any,
                                 compute_uuids: Sequence[str],
                                 _spec: typing.Any) -> Iterator[typing.Any]:
        """Yield a HostState of each host, as for a new request."""
        self._service['last_seen_up'] = timeutils.utcnow()
        self._given = []
        for uuid in compute_uuids:
            state = copy.copy(self.hosts[uuid].state())
            state.limits, state.instances = {}, {}
            state.service = self._service
            self._given.append(state)
            yield state

    def forget(self) -> None:
        """Forget the instances that the scheduler has counted itself."""
        for state in self._given:
            self.hosts[state.uuid].forget(state)


class InProcessScheduler(manager.SchedulerManager):
    """Nova's SchedulerManager."""

    placement_client: typing.Any = None

    def __init__(self, hosts: Mapping[str, compute_host.ComputeHost],
                 placement: allocations.ReplayReportClient) -> None:
        # The constructor of SchedulerManager starts a service.
        self.host_manager = ReplayHostManager(hosts)
        self.placement_client = placement
        self._context = nova_context.get_admin_context()

    def select(self, spec: typing.Any, instances: Sequence[str],
               ) -> list[list[typing.Any]]:
        """Select a host and its alternates for each instance.

        :param instances: their UUIDs
        :returns: for each instance Selections, the chosen one first; empty if
            there is no valid host for all of them
        """
        found = self.placement_client.candidates(spec)
        most = nova.conf.CONF.scheduler.max_placement_results
        found = dict(list(found.items())[:most])
        try:
            selections: list[list[typing.Any]] = self._schedule(
                self._context, spec, list(instances), found, found, _VERSION,
                return_alternates=True)
        except nova_exception.NoValidHost:
            selections = []
        self.host_manager.forget()
        return selections
