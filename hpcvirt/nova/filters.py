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

"""HPCTopologyFilter, which replaces two filters of Nova.

It passes a guest with a NUMA topology only to hosts on which the guest fits
and on which the claim of nova-compute will place it correctly, in place of
NUMATopologyFilter. It passes a guest with PCI requests only to hosts that
have the devices, in place of PciPassthroughFilter. It passes every other
guest to all hosts. No guest is passed to a host in quarantine, whatever it
asks for. In nova.conf of nova-scheduler::

    [filter_scheduler]
    available_filters = nova.scheduler.filters.all_filters
    available_filters = hpcvirt.nova.filters.all_filters
    enabled_filters = ComputeFilter, ComputeCapabilitiesFilter,
        ImagePropertiesFilter, ServerGroupAntiAffinityFilter,
        ServerGroupAffinityFilter, HPCTopologyFilter

Nova's filters may be enabled as well, HPCTopologyFilter first: they then look
at fewer hosts, but take as long as before for each of them. The option
``[compute]packing_host_numa_cells_allocation_strategy`` must have the same
value on the scheduler and on the compute hosts, because it determines the
cells on which a guest starts.

With ``[hpcvirt]filter_mode = shadow`` the filter passes every host, and only
logs where it would have decided otherwise than Nova's filters, which stay
enabled behind it.

Each refused host is logged at DEBUG level with the reason. If no host is left,
one line at INFO level counts the reasons; ``hpcvirt explain --log`` reads it.
"""

import functools
import typing
from collections.abc import Iterator
from collections.abc import Sequence

import nova.conf
from nova import objects
from nova.scheduler import filters
from nova.scheduler import utils
from oslo_log import log as logging

from hpcvirt import exception
from hpcvirt.conf import filters as filter_options
from hpcvirt.fit import demand as demands
from hpcvirt.fit import late_misfit
from hpcvirt.fit import reasons
from hpcvirt.fit import retry_check
from hpcvirt.fit import supply as supplies
from hpcvirt.nova import adapter
from hpcvirt.nova import alternates
from hpcvirt.nova import claim_start
from hpcvirt.nova import config
from hpcvirt.nova import malformed_host
from hpcvirt.nova import picks
from hpcvirt.nova import quarantine
from hpcvirt.nova import refused as refusals
from hpcvirt.nova import shadow

LOG = logging.getLogger(__name__)


class HPCTopologyFilter(filters.BaseHostFilter):
    """Pass the hosts on which a NUMA topology and PCI requests can start."""

    # A rebuilt guest keeps its CPUs; Nova's API refuses a rebuild that would
    # change the NUMA topology.
    RUN_ON_REBUILD = False

    def __init__(self) -> None:
        super().__init__()
        if config.ready().hpcvirt.filter_mode == filter_options.SHADOW:
            shadow.check_configuration()

    def filter_all(self, filter_obj_list: Sequence[typing.Any],
                   spec_obj: typing.Any) -> Iterator[typing.Any]:
        """Yield the hosts that pass.

        Allocation candidates on which the guest does not fit are removed from
        these hosts.
        """
        if utils.request_is_rebuild(spec_obj):
            yield from filter_obj_list
            return
        several = refusals.instances(spec_obj) > 1
        if nova.conf.CONF.hpcvirt.filter_mode == filter_options.SHADOW:
            hosts = list(filter_obj_list)
            shadow.watch(spec_obj, hosts, Request)
            for host_state in hosts:
                if several:
                    refusals.note_passed(spec_obj, host_state)
                yield host_state
            return
        request = Request(spec_obj)
        refused: refusals.Refused | None = refusals.Refused(spec_obj)
        for host_state, misfit in request.judge(filter_obj_list):
            if misfit is None:
                refused = None
                if several:
                    refusals.note_passed(spec_obj, host_state)
                yield host_state
                continue
            if refused is not None:
                refused.add(host_state, misfit)
            LOG.debug('%(host)s, %(node)s refused: %(misfit)s',
                      {'host': host_state.host, 'node': host_state.nodename,
                       'misfit': misfit}, instance_uuid=request.uuid)
        if refused is not None:
            refused.log(request.demand)

    def host_passes(self, host_state: typing.Any,
                    filter_properties: typing.Any) -> bool:
        """Check one host; use :meth:`filter_all` for several hosts."""
        return bool(list(self.filter_all([host_state], filter_properties)))


class Request:
    """What the filter needs to know of one request.

    :ivar start: what the claim begins with; None if no host can be refused,
        or if the request is malformed
    """

    def __init__(self, spec: typing.Any) -> None:
        self._spec = spec
        self.uuid = refusals.instance_of(spec)
        self.start: claim_start.ClaimStart | None = None
        self._malformed: reasons.Misfit | None = None
        self._quarantine = quarantine.Quarantine()
        try:
            demand = adapter.demand(spec)
            if demand is not None:
                self.start = claim_start.of(spec, demand)
        except exception.InvalidInput as exc:
            self._malformed = reasons.Misfit(
                reasons.Code.EXTRA_SPEC, {'key': exc.where, 'what': exc.what})
        self._needs_threads = adapter.needs_threads(spec)
        # Counting first pays if a host is refused, and costs one that passes:
        # each host is expected to do what the one before it did.
        self._expects_refusal = True
        self._packing: bool = (
            nova.conf.CONF.compute
            .packing_host_numa_cells_allocation_strategy)
        self._limits: dict[tuple[float, float],
                           objects.NUMATopologyLimits] = {}

    @property
    def demand(self) -> demands.Demand | None:
        """What the guest needs, None if that cannot be understood."""
        return self.start.demand if self.start is not None else None

    def may_refuse(self, host_states: Sequence[typing.Any]) -> bool:
        """Whether any of these hosts could be refused."""
        return (self.start is not None or self._malformed is not None
                or any(map(self._quarantine.misfit, host_states)))

    def judge(self, host_states: Sequence[typing.Any],
              ) -> Iterator[alternates.Verdict]:
        """Tell of each host why it is refused, None if it passes.

        A host in quarantine is refused for every guest: the host is at fault,
        not the flavor.
        """
        verdicts = ((host_state, self._quarantine.misfit(host_state)
                     or self.refuse(host_state))
                    for host_state in host_states)
        start = self.start
        if (start is None or start.move is not None or
                not retry_check.matters(start.demand) or
                nova.conf.CONF.scheduler.max_attempts < 2):
            return verdicts
        return alternates.sift(list(verdicts), self._spec, start,
                               self._packing)

    def refuse(self, host_state: typing.Any) -> reasons.Misfit | None:
        """Return why a host is refused, or set the limits of its claim."""
        if self._malformed is not None:
            return self._malformed
        if self.start is None:
            return None
        try:
            return self._refuse(self.start, host_state)
        except exception.InvalidInput as exc:
            return malformed_host.misfit(host_state, exc)

    def _refuse(self, start: claim_start.ClaimStart,
                host_state: typing.Any) -> reasons.Misfit | None:
        left = picks.what_is_left(host_state, self._spec, start.demand)
        if not start.demand.cells:
            return self._narrow(start, left, host_state)
        if not left[0].cells:
            return reasons.Misfit(reasons.Code.NO_TOPOLOGY)
        if self._needs_threads and not host_state.numa_topology.has_threads:
            return reasons.Misfit(reasons.Code.NO_THREADS)
        misfit = self._narrow(start, left, host_state)
        if misfit is None:
            host_state.limits['numa_topology'] = self._limits_of(host_state)
        return misfit

    def _narrow(self, start: claim_start.ClaimStart,
                left: Sequence[supplies.Supply],
                host_state: typing.Any) -> reasons.Misfit | None:
        """Remove the allocation candidates on which the guest does not fit."""
        if not start.requests and host_state.allocation_candidates:
            # The candidates are all alike for this guest.
            misfit = self._check(start, left, claim_start.Allocation(),
                                 host_state)
            if misfit is not None:
                host_state.allocation_candidates = []
            return misfit
        misfits: dict[claim_start.Allocation, reasons.Misfit | None] = {}
        first_misfit: reasons.Misfit | None = None
        remaining = []
        for candidate in host_state.allocation_candidates:
            allocation = start.allocation(host_state, candidate['mappings'])
            if allocation not in misfits:
                misfits[allocation] = self._check(start, left, allocation,
                                                  host_state)
            misfit = misfits[allocation]
            if misfit is None:
                remaining.append(candidate)
            else:
                first_misfit = first_misfit or misfit
        host_state.allocation_candidates = remaining
        if remaining:
            if first_misfit is not None:
                LOG.debug('%(host)s, %(node)s: removed allocation candidates, '
                          '%(remaining)d remain: %(misfit)s',
                          {'host': host_state.host,
                           'node': host_state.nodename,
                           'remaining': len(remaining),
                           'misfit': first_misfit},
                          instance_uuid=self.uuid)
            return None
        return first_misfit or reasons.Misfit(reasons.Code.NO_CANDIDATES)

    def _check(self, start: claim_start.ClaimStart,
               left: Sequence[supplies.Supply],
               allocation: claim_start.Allocation,
               host_state: typing.Any) -> reasons.Misfit | None:
        """Check a guest against all that may be left of a host."""
        for supply in left:
            if self._expects_refusal and start.is_short(supply):
                return late_misfit.LateMisfit(functools.partial(
                    self._explain, start, supply, allocation, host_state))
            misfit = start.check(supply, self._packing, allocation)
            self._expects_refusal = misfit is not None
            if misfit is not None:
                return misfit
        return None

    def _explain(self, start: claim_start.ClaimStart,
                 supply: supplies.Supply, allocation: claim_start.Allocation,
                 host_state: typing.Any) -> reasons.Misfit:
        """Say why a guest does not fit, which has been found by counting."""
        try:
            misfit = start.check(supply, self._packing, allocation)
        except exception.InvalidInput as exc:
            misfit = malformed_host.misfit(host_state, exc)
        if misfit is None:
            raise AssertionError('The guest fits, which counting denies')
        return misfit

    def _limits_of(self, host_state: typing.Any) -> typing.Any:
        """Return the limits that the claim will apply.

        Hosts with equal allocation ratios share an object, which is only read
        and copied when it is sent to nova-compute.
        """
        ratios = (host_state.cpu_allocation_ratio,
                  host_state.ram_allocation_ratio)
        limits = self._limits.get(ratios)
        if limits is None:
            limits = objects.NUMATopologyLimits(
                cpu_allocation_ratio=ratios[0],
                ram_allocation_ratio=ratios[1])
            network = adapter.network(self._spec)
            if network:
                limits.network_metadata = network
            self._limits[ratios] = limits
        return limits


def enforces(each: typing.Any) -> bool:
    """Whether an enabled filter is hpcvirt's, and not only in shadow mode."""
    return isinstance(each, HPCTopologyFilter) and (
        nova.conf.CONF.hpcvirt.filter_mode != filter_options.SHADOW)


def all_filters() -> list[type[filters.BaseHostFilter]]:
    """Return the filters of hpcvirt, for ``available_filters``."""
    return [HPCTopologyFilter]
