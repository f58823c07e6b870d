# SPDX-License-Identifier: Apache-2.0

"""Run Nova's scheduler without its databases and services."""

import copy

import nova.conf
from nova import context as nova_context
from nova import exception as nova_exception
from nova.objects import service
from nova.scheduler import host_manager
from nova.scheduler import manager
from oslo_utils import timeutils

#: The microversion of Placement in which candidates are written.
_VERSION = '1.36'


class ReplayHostManager(host_manager.HostManager):
    """Nova's HostManager, with the filters and weighers of nova.conf.

    :ivar hosts: the hosts, by UUID
    """

    def __init__(self, hosts):
        super().__init__()
        self.hosts = hosts
        self._given = []
        self._service = {
            'binary': 'nova-compute', 'disabled': False,
            'version': service.SERVICE_VERSION}

    def refresh_cells_caches(self):
        self.cells = {}
        self.enabled_cells = []

    def _init_aggregates(self):
        pass

    def _init_instance_info(self, *_):
        pass

    def get_host_states_by_uuids(self, _context, compute_uuids, _spec):
        """Yield a HostState of each host, as for a new request."""
        self._service['last_seen_up'] = timeutils.utcnow()
        self._given = []
        for uuid in compute_uuids:
            state = copy.copy(self.hosts[uuid].state())
            state.limits, state.instances = {}, {}
            state.service = self._service
            self._given.append(state)
            yield state

    def forget(self):
        """Forget the instances that the scheduler has counted itself."""
        for state in self._given:
            self.hosts[state.uuid].forget(state)


class InProcessScheduler(manager.SchedulerManager):
    """Nova's SchedulerManager."""

    # That of SchedulerManager is a property, which connects to Placement.
    placement_client = None

    def __init__(self, hosts, placement):
        # The constructor of SchedulerManager starts a service.
        self.host_manager = ReplayHostManager(hosts)
        self.placement_client = placement
        self._context = nova_context.get_admin_context()

    def select(self, spec, instances):
        """Select a host and its alternates for each instance.

        :param instances: their UUIDs
        :returns: for each instance Selections, the chosen one first; empty if
            there is no valid host for all of them
        """
        found = self.placement_client.candidates(spec)
        most = nova.conf.CONF.scheduler.max_placement_results
        found = dict(list(found.items())[:most])
        try:
            selections = self._schedule(
                self._context, spec, list(instances), found, found, _VERSION,
                return_alternates=True)
        except nova_exception.NoValidHost:
            selections = []
        self.host_manager.forget()
        return selections
