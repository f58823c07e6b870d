# SPDX-License-Identifier: Apache-2.0

"""HPCTopologyFilter, which replaces two filters of Nova.

For an instance with a NUMA topology, the filter passes only hosts on which the
instance fits and on which the claim of nova-compute places it correctly. This
replaces NUMATopologyFilter. For an instance with PCI requests, it passes only
hosts that have the devices. This replaces PciPassthroughFilter. For other
instances, it passes all hosts. It never passes a host in quarantine. In
nova.conf of nova-scheduler::

    [filter_scheduler]
    available_filters = nova.scheduler.filters.all_filters
    available_filters = hpcvirt.nova.filters.all_filters
    enabled_filters = ComputeFilter, ComputeCapabilitiesFilter,
        ImagePropertiesFilter, ServerGroupAntiAffinityFilter,
        ServerGroupAffinityFilter, HPCTopologyFilter

Nova's filters may stay enabled after HPCTopologyFilter. They then check fewer
hosts, but need as long for each of them. The option
``[compute]packing_host_numa_cells_allocation_strategy`` must have the same
value on the scheduler and on the compute hosts, because it determines the host
cells on which an instance starts.

With ``[hpcvirt]filter_mode = shadow``, the filter passes every host and logs
where it would have decided differently from Nova's filters, which must stay
enabled after it.

Each refused host is logged at DEBUG level with the reason. If no host is left,
one line at INFO level per reason counts the hosts; ``hpcvirt explain
--scheduler-log`` reads these lines.
"""

import typing
from collections.abc import Iterator
from collections.abc import Sequence

import nova.conf
from nova.scheduler import filters
from nova.scheduler import utils
from oslo_log import log as logging

from hpcvirt.conf import filters as filter_options
from hpcvirt.nova import config
from hpcvirt.nova import decision
from hpcvirt.nova import no_valid_host_log
from hpcvirt.nova import shadow

LOG = logging.getLogger(__name__)

#: The patch with which a move takes the devices that Placement has allocated.
MOVES_PATCH = '0006-Claim-allocated-PCI-devices-in-moves.patch'


class HPCTopologyFilter(filters.BaseHostFilter):
    """Pass hosts that have the NUMA topology and devices of an instance."""

    def __init__(self) -> None:
        super().__init__()
        if config.register().hpcvirt.filter_mode == filter_options.SHADOW:
            shadow.check_configuration()

    def filter_all(self, filter_obj_list: Sequence[typing.Any],
                   spec_obj: typing.Any) -> Iterator[typing.Any]:
        """Yield the hosts that pass.

        Allocation candidates on which the instance does not fit are removed
        from these hosts.
        """
        # A rebuilt instance keeps its CPUs; nova-api rejects a rebuild that
        # would change the NUMA topology.
        if utils.request_is_rebuild(spec_obj):
            yield from filter_obj_list
            return
        several = no_valid_host_log.count_instances(spec_obj) > 1
        if nova.conf.CONF.hpcvirt.filter_mode == filter_options.SHADOW:
            hosts = list(filter_obj_list)
            shadow.watch(spec_obj, hosts)
            for host_state in hosts:
                if several:
                    no_valid_host_log.note_passed(spec_obj, host_state)
                yield host_state
            return
        request = decision.FilterDecision(spec_obj)
        refused: list[typing.Any] | None = []
        debugs = LOG.isEnabledFor(logging.DEBUG)
        for host_state, misfit in request.judge(list(filter_obj_list)):
            if misfit is None:
                refused = None
                if several:
                    no_valid_host_log.note_passed(spec_obj, host_state)
                yield host_state
                continue
            if refused is not None:
                refused.append((host_state, misfit))
            if debugs:
                LOG.debug('%(host)s, %(node)s refused: %(misfit)s', {
                    'host': host_state.host, 'node': host_state.nodename,
                    'misfit': misfit}, instance_uuid=request.uuid)
        if request.misallocated:
            LOG.warning(
                'On %(count)d of the hosts that pass, the claim of this move '
                'takes other PCI devices than Placement allocates, which then '
                'holds both: %(hosts)s. The patch %(patch)s in contrib/nova '
                'of hpcvirt fixes this.',
                {'count': len(request.misallocated), 'patch': MOVES_PATCH,
                 'hosts': ', '.join(request.misallocated[:3])},
                instance_uuid=request.uuid)
        if refused:
            no_valid_host_log.log(spec_obj, refused, request.demand)

    def host_passes(self, host_state: typing.Any,
                    filter_properties: typing.Any) -> bool:
        """Check one host; use :meth:`filter_all` for several hosts."""
        return bool(list(self.filter_all([host_state], filter_properties)))


def enforces(each: typing.Any) -> bool:
    """Return whether a filter is HPCTopologyFilter and not in shadow mode."""
    return isinstance(each, HPCTopologyFilter) and (
        nova.conf.CONF.hpcvirt.filter_mode != filter_options.SHADOW)


def all_filters() -> list[type[filters.BaseHostFilter]]:
    """Return the filters of hpcvirt, for ``available_filters``."""
    return [HPCTopologyFilter]
