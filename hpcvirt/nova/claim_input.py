# SPDX-License-Identifier: Apache-2.0

"""From what the claim of a request on the compute host starts.

For a new instance that is the request. In Nova 32 to 34 it is otherwise for an
instance that exists already:

* Cold migration, resize, evacuation and live migration: flavor and image give
  the guest cells, the flavor and ``[pci]alias`` of the compute host give the
  PCI requests, without the affinity policy of flavor and image, and the
  instance gives those of its ports. The devices of the flavor need not be
  those that Placement allocated.
* Live migration also keeps the page size. Its claim has no limits before
  Nova 34. It takes the devices in a second step, with the affinity policies of
  the instance.
* Unshelve: the instance gives everything, as it was on its former host.

The request does not tell these apart, and does not have the instance. Where
that matters, the instance is read from the database of its Nova cell, which
the scheduler has just asked for the compute nodes.
"""

import collections
import dataclasses
import functools
import typing
from collections.abc import Mapping
from collections.abc import Sequence

from nova import context as nova_context
from nova import exception as nova_exception
from nova import objects
from nova.compute import task_states
from nova.objects import service
from nova.pci import request as pci_request
from nova.virt import hardware
from oslo_db import exception as db_exception
from oslo_log import log as logging

from hpcvirt.fit import allocation as allocations
from hpcvirt.fit import claim
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import move_check
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model
from hpcvirt.nova import adapter
from hpcvirt.nova import port_interface

LOG = logging.getLogger(__name__)

#: The service version from which on nova-conductor passes the limits to the
#: claim of a live migration (Nova 34, https://bugs.launchpad.net/bugs/2153425).
#: nova-conductor is assumed to have the release of nova-scheduler.
LIMITED_LIVE_MIGRATION = 74

#: The attribute of a RequestSpec that has the instance, for the filter and
#: the weighers.
_INSTANCE = 'hpcvirt_instance'


class Allocation(typing.NamedTuple):
    """What an allocation candidate settles, for each PCI request.

    :ivar providers: see :func:`hpcvirt.nova.adapter.providers_of`
    :ivar interfaces: see :func:`hpcvirt.nova.port_interface.find`
    """

    providers: devices.Providers = ()
    interfaces: tuple[str | None, ...] = ()


@dataclasses.dataclass(frozen=True)
class ClaimInput:
    """The start of a claim.

    :ivar requests: the InstancePCIRequests, in the order of the demand
    :ivar move: for an instance that exists already
    :ivar follows_placement: the claim takes the devices that Placement
        allocated to the flavor
    :ivar keeps_to_placement: the instance gets these devices
    """

    demand: demands.Demand
    requests: Sequence[typing.Any]
    move: move_check.MoveClaim | None = None
    follows_placement: bool = True
    keeps_to_placement: bool = True

    def allocation(self, host_state: typing.Any,
                   mappings: Mapping[str, Sequence[str]]) -> Allocation:
        """Read an allocation candidate of a host."""
        if not self.requests:
            return Allocation()
        return Allocation(
            tuple(adapter.providers_of(request, mappings)
                  for request in self.requests) if self._in_placement else (),
            tuple(port_interface.find(request, mappings, host_state)
                  for request in self.requests))

    def first_allocation(self, host_state: typing.Any) -> Allocation:
        """Read the candidate that the scheduler claims if a host is picked.

        That is the first one that the filters leave.
        """
        candidates = host_state.allocation_candidates
        return (self.allocation(host_state, candidates[0]['mappings'])
                if candidates else Allocation())

    def bound(self, allocation: Allocation) -> demands.Demand:
        """Return the demand of a new instance with this allocation."""
        return port_interface.bind(self.demand, allocation.interfaces)

    def reach(self, supply: supplies.Supply, allocation: Allocation,
              ) -> tuple[demands.Demand, supplies.Supply, devices.Providers]:
        """Return what the claim asks for, the host, and the devices.

        These are the arguments of :func:`hpcvirt.fit.claim.predict`.
        """
        if self.move is None:
            return self.bound(allocation), supply, allocation.providers
        demand, supply = self.move.reach(supply)
        return (port_interface.bind(demand, allocation.interfaces), supply,
                allocation.providers if self.follows_placement else ())

    def prefer_claimed_devices(self, supply: supplies.Supply,
                       host_state: typing.Any) -> bool:
        """Put an allocation candidate first that the claim of a move meets.

        :returns: False if no candidate has the devices that the claim takes,
            so that Placement will hold others as well
        """
        if self.keeps_to_placement or not any(
                map(adapter.is_of_flavor, self.requests)):
            return True
        demand, reached, providers = self.reach(
            supply, self.first_allocation(host_state))
        placed = claim.predict(demand, reached, providers)
        if isinstance(placed, reasons.Misfit):
            return True
        taken = allocations.charge(demand, supply, placed)[1].devices
        claimed = collections.Counter({
            pool.provider: count for pool, count in zip(
                supply.pools or (), taken, strict=True)
            if pool.provider and count})
        host_state.allocation_candidates.sort(
            key=lambda each: self._allocated(each) != claimed)
        first = self._allocated(host_state.allocation_candidates[0])
        return not first or first == claimed

    def _allocated(self, candidate: Mapping[str, typing.Any],
                   ) -> collections.Counter[str]:
        """Count the devices that a candidate allocates for the flavor."""
        return collections.Counter(
            provider for request in self.requests for provider
            in adapter.providers_of(request, candidate['mappings']))

    def check(self, supply: supplies.Supply,
              allocation: Allocation) -> reasons.Misfit | None:
        """Say why a guest must not be sent to a host."""
        providers, interfaces = allocation
        if self.move is None:
            return claim.check(self.bound(allocation), supply, providers)
        move = dataclasses.replace(
            self.move,
            wanted=port_interface.bind(self.move.wanted, interfaces),
            claimed=port_interface.bind(self.move.claimed, interfaces))
        return move_check.check(
            move, supply, providers if self.follows_placement else (),
            providers if self.keeps_to_placement else ())

    @functools.cached_property
    def _in_placement(self) -> bool:
        return self.keeps_to_placement and any(
            map(adapter.is_of_flavor, self.requests))


def read(spec: typing.Any, demand: demands.Demand) -> ClaimInput:
    """Tell from what the claim of a request starts.

    :param spec: a RequestSpec
    :param demand: the same, see :func:`hpcvirt.nova.adapter.demand`
    """
    requests = adapter.pci_requests(spec)
    destination = _get(spec, 'requested_destination')
    # Only nova-conductor sets the Nova cell, and only for a move.
    cell = _get(destination, 'cell')
    moves = cell is not None or _get(destination, 'allow_cross_cell_move')
    # The claim need not follow Placement, even for a guest without cells.
    if not moves or not (claim.depends_on_start(demand) or
                         any(map(adapter.is_of_flavor, requests))):
        return ClaimInput(demand, requests)
    instance = None if cell is None else _read_instance(spec, cell)
    if instance is not None:
        if instance.task_state == task_states.UNSHELVING:
            return _unshelve(spec, demand, instance)
        if instance.task_state == task_states.MIGRATING:
            return _live_migration(spec, demand, instance)
    return ClaimInput(demand, requests, _lost_affinity(spec, demand, requests),
                      follows_placement=False, keeps_to_placement=False)


def _get(thing: typing.Any, field: str) -> typing.Any:
    return None if thing is None or field not in thing else getattr(
        thing, field)


def _read_instance(spec: typing.Any, cell: typing.Any) -> typing.Any:
    """Read the instance of a request once; None if that is impossible."""
    if not hasattr(spec, _INSTANCE):
        setattr(spec, _INSTANCE, _query_instance(spec, cell))
    return getattr(spec, _INSTANCE)


def _query_instance(spec: typing.Any, cell: typing.Any) -> typing.Any:
    context = nova_context.get_admin_context()
    try:
        with nova_context.target_cell(context, cell) as targeted:
            return objects.Instance.get_by_uuid(
                targeted, spec.instance_uuid,
                expected_attrs=['numa_topology', 'pci_requests'])
    except (nova_exception.NotFound, db_exception.DBError,
            db_exception.CantStartEngineError) as exc:
        LOG.warning('Instance %(instance)s cannot be read, so it is treated '
                    'as in a cold migration: %(error)s',
                    {'instance': spec.instance_uuid, 'error': exc})
        return None


def _unshelve(spec: typing.Any, demand: demands.Demand,
              instance: typing.Any) -> ClaimInput:
    requests = adapter.pci_requests(instance)
    former = instance.numa_topology
    return ClaimInput(demand, requests, move_check.MoveClaim(
        wanted=dataclasses.replace(
            demand, requests=_as_flavor_wants(spec, requests)),
        claimed=dataclasses.replace(
            demand, requests=tuple(map(adapter.device_request, requests)),
            cells=adapter.guest_cells(former) if former else demand.cells,
            numbers=tuple(cell.id for cell in former.cells)
            if former else ()),
        defect=reasons.Defect.FORMER_HOST))


def _live_migration(spec: typing.Any, demand: demands.Demand,
                    instance: typing.Any) -> ClaimInput:
    requests = adapter.pci_requests(instance)
    former = instance.numa_topology
    return ClaimInput(demand, requests, dataclasses.replace(
        _lost_affinity(spec, demand, requests),
        limited=service.SERVICE_VERSION >= LIMITED_LIVE_MIGRATION,
        page_kib=former.cells[0].pagesize if former else None),
        follows_placement=False)


def _lost_affinity(spec: typing.Any, demand: demands.Demand,
                   requests: Sequence[typing.Any]) -> move_check.MoveClaim:
    return move_check.MoveClaim(
        wanted=dataclasses.replace(
            demand, requests=_as_flavor_wants(spec, requests)),
        claimed=dataclasses.replace(
            demand, requests=_as_alias_says(spec, requests)),
        defect=reasons.Defect.LOST_AFFINITY)


def _as_flavor_wants(spec: typing.Any, requests: Sequence[typing.Any],
                     ) -> tuple[devices.DeviceRequest, ...]:
    """Compile PCI requests with the affinity policy of flavor and image."""
    return _with_affinity(requests, _policy(spec))


def _as_alias_says(spec: typing.Any, requests: Sequence[typing.Any],
                   ) -> tuple[devices.DeviceRequest, ...]:
    """Compile PCI requests with the affinity policies of ``[pci]alias``.

    An alias can be missing here; then it has no policy of its own, as far as
    is known.
    """
    if _policy(spec) is None:
        return _with_affinity(requests, None)
    aliases = pci_request.get_alias_from_config()
    return tuple(
        _with_affinity((request,), aliases.get(
            request.alias_name, (None,))[0] or
            shape_model.PCIAffinity.LEGACY)[0]
        for request in requests)


def _with_affinity(requests: Sequence[typing.Any], policy: str | None,
                   ) -> tuple[devices.DeviceRequest, ...]:
    """Compile PCI requests, those of the flavor with another policy."""
    return tuple(
        dataclasses.replace(adapter.device_request(request),
                            affinity=shape_model.PCIAffinity(policy))
        if policy and adapter.is_of_flavor(request)
        else adapter.device_request(request) for request in requests)


def _policy(spec: typing.Any) -> str | None:
    """The affinity policy of flavor and image."""
    policy: str | None = hardware.get_pci_numa_policy_constraint(
        spec.flavor, spec.image or objects.ImageMeta(
            properties=objects.ImageMetaProps()))
    return policy
