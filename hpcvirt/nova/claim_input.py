# SPDX-License-Identifier: Apache-2.0

"""Determine what the claim of a request starts from on the compute host.

The claim of a new instance starts from the request. In Nova 32 to 34, the
claim of an existing instance starts from something else:

* In a cold migration, a resize, an evacuation or a live migration, the guest
  cells come from the flavor and the image. The PCI requests come from the
  flavor and ``[pci]alias`` of the compute host, without the affinity policy of
  flavor and image, and those of ports from the instance. The claim need not
  take the devices that Placement allocated to the flavor, unless
  ``[hpcvirt]moves_follow_placement`` says that nova-compute is patched.
* A live migration also keeps the page size. Before Nova 34, its claim has no
  limits. It takes the devices in a second step, with the affinity policies of
  the instance.
* In an unshelve, everything comes from the instance, as on its former host.

The request does not say which of these it is for. If that matters, the
instance is read from the database of its Nova cell, which the scheduler has
just queried for compute nodes.

If a request creates several instances, nova-scheduler picks a host for each
of them in turn. It records a pick by ``HostState.consume_from_request``, which
is not reliable: it starts from what the previous pick left in the request,
sorts cells as the newest Nova does, and records nothing if it finds no fit or
fails. The scheduler would then promise the same resources again. Therefore
this module charges each host with the placements that its claims will find.
The account of a host is kept on its HostState, which nova-scheduler creates
anew for each request.
"""

import collections
import dataclasses
import functools
import hashlib
import typing
from collections.abc import Callable
from collections.abc import Hashable
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

from hpcvirt.fit import allocation
from hpcvirt.fit import allocation as allocations
from hpcvirt.fit import cell_search
from hpcvirt.fit import claim
from hpcvirt.fit import demand as demands
from hpcvirt.fit import device_sets
from hpcvirt.fit import devices
from hpcvirt.fit import move_check
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model
from hpcvirt.nova import adapter
from hpcvirt.nova import config
from hpcvirt.nova import host_record
from hpcvirt.nova import port_interface

LOG = logging.getLogger(__name__)

#: From this service version on, nova-conductor passes the limits to the claim
#: of a live migration (Nova 34, https://bugs.launchpad.net/bugs/2153425).
#: nova-conductor is assumed to have the release of nova-scheduler.
LIMITED_LIVE_MIGRATION = 74

#: The attribute of a RequestSpec that keeps the instance for the weighers.
_INSTANCE = 'hpcvirt_instance'


#: Takes the providers of an allocation candidate.
AllocationTest = Callable[[devices.Providers], reasons.Misfit | None]


class Allocation(typing.NamedTuple):
    """The devices that an allocation candidate gives each PCI request.

    :ivar providers: see :func:`hpcvirt.nova.adapter.providers_of`
    :ivar interfaces: see :func:`hpcvirt.nova.port_interface.find`
    """

    providers: devices.Providers = ()
    interfaces: tuple[str | None, ...] = ()


#: That of an instance without PCI requests.
NO_DEVICES = Allocation()


@dataclasses.dataclass(frozen=True)
class ClaimInput:
    """What a claim starts from.

    :ivar requests: the InstancePCIRequests, in the order of the demand
    :ivar move: the claim of an existing instance, None for a new one
    :ivar follows_placement: whether the claim takes the devices that
        Placement allocated to the flavor
    :ivar keeps_to_placement: whether the instance gets these devices
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
            return NO_DEVICES
        return Allocation(
            tuple(adapter.providers_of(request, mappings)
                  for request in self.requests) if self._in_placement else (),
            tuple(port_interface.find(request, mappings, host_state)
                  for request in self.requests))

    def first_allocation(self, host_state: typing.Any) -> Allocation:
        """Read the candidate that the scheduler claims if it picks a host.

        It is the first candidate that the filters leave.
        """
        candidates = host_state.allocation_candidates
        return (self.allocation(host_state, candidates[0]['mappings'])
                if candidates else NO_DEVICES)

    def bound(self, allocation: Allocation) -> demands.Demand:
        """Return the demand of a new instance with this allocation."""
        return port_interface.bind(self.demand, allocation.interfaces)

    def reach(self, supply: supplies.Supply, allocation: Allocation,
              ) -> tuple[demands.Demand, supplies.Supply, devices.Providers]:
        """Return the arguments of :func:`hpcvirt.fit.claim.predict`."""
        if self.move is None:
            return self.bound(allocation), supply, allocation.providers
        demand, supply = self.move.reach(supply)
        return (port_interface.bind(demand, allocation.interfaces), supply,
                allocation.providers if self.follows_placement else ())

    def prefer_claimed_devices(self, supply: supplies.Supply,
                               host_state: typing.Any) -> bool:
        """Put the candidate with the devices that a move's claim takes first.

        :returns: False if no candidate has these devices, so that Placement
            will hold others as well
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
        providers: list[str] = []
        for request in self.requests:
            providers += adapter.providers_of(request, candidate['mappings'])
        return collections.Counter(providers)

    def make_test(self, supply: supplies.Supply, effort: cell_search.Effort,
                  interfaces: tuple[str | None, ...]) -> AllocationTest:
        """Make a test of the allocations that Placement offers on a host.

        :param supply: the resources of the host
        :param effort: the effort for this host
        :param interfaces: those of the allocations, see :class:`Allocation`
        :returns: a function that takes the providers of an allocation, and
            says why the instance must not be sent to the host, None if it may
        """
        if self.move is None:
            return claim.Claim(port_interface.bind(self.demand, interfaces),
                               supply, effort).check
        move = move_check.MoveCheck(dataclasses.replace(
            self.move,
            wanted=port_interface.bind(self.move.wanted, interfaces),
            claimed=port_interface.bind(self.move.claimed, interfaces)),
            supply, effort)
        return lambda providers: move.check(
            providers if self.follows_placement else (),
            providers if self.keeps_to_placement else ())

    def find_sets(self, supply: supplies.Supply) -> device_sets.HostSets:
        """Return the sets of the free devices of a host.

        They do not matter, and are not read, for devices of ports.

        :raises InvalidInput: if ``[pci]device_spec`` of the host names them
            wrongly
        """
        try:
            return device_sets.HostSets(
                supply.pools or () if self._in_placement else ())
        except ValueError as exc:
            raise host_record.make_error('the PCI devices', exc) from exc

    def check_set(self, sets: device_sets.HostSets,
                  allocation: Allocation) -> reasons.Misfit | None:
        """Return why an instance would not get a set that it needs.

        :param sets: the sets of the host
        """
        kind = self.demand.device_set
        if kind is None or sets.is_legal(kind, allocation.providers):
            return None
        if not self.keeps_to_placement:
            return move_check.refuse_set(kind)
        return reasons.Misfit(
            reasons.Code.NO_DEVICE_SET if any(allocation.providers)
            else reasons.Code.DEVICE_SET_UNKNOWN, {'kind': kind})

    @functools.cached_property
    def _in_placement(self) -> bool:
        return self.keeps_to_placement and any(
            map(adapter.is_of_flavor, self.requests))


class HostCheck:
    """Checks the allocations that Placement offers on one host.

    All of them share one limit of effort.
    """

    def __init__(self, start: ClaimInput,
                 left: Sequence[supplies.Supply]) -> None:
        """Prepare to check.

        :param left: all that may be left of the host
        """
        self._start = start
        self._left = left
        self._effort = cell_search.Effort()
        self._tests: dict[tuple[str | None, ...], list[AllocationTest]] = {}

    def find_misfit(self, allocation: Allocation) -> reasons.Misfit | None:
        """Say why the instance must not be sent to the host with this."""
        tests = self._tests.get(allocation.interfaces)
        if tests is None:
            tests = self._tests[allocation.interfaces] = [
                self._start.make_test(supply, self._effort,
                                      allocation.interfaces)
                for supply in self._left]
        for test in tests:
            misfit = test(allocation.providers)
            if misfit is not None:
                return misfit
        return None

    @property
    def undecided(self) -> reasons.Misfit | None:
        """The refusal of a host whose effort was spent; None if it was not."""
        return self._effort.misfit() if self._effort.spent else None


def read(spec: typing.Any, demand: demands.Demand) -> ClaimInput:
    """Determine what the claim of a request starts from.

    :param spec: a RequestSpec
    :param demand: of this request, see :func:`hpcvirt.nova.adapter.demand`
    """
    requests = adapter.pci_requests(spec)
    destination = _get(spec, 'requested_destination')
    # nova-conductor sets the Nova cell for moves only.
    cell = _get(destination, 'cell')
    moves = cell is not None or _get(destination, 'allow_cross_cell_move')
    # A move's claim may not follow Placement, even without guest cells.
    if not moves or not (claim.depends_on_start(demand) or
                         any(map(adapter.is_of_flavor, requests))):
        return ClaimInput(demand, requests)
    instance = None if cell is None else _read_instance(spec, cell)
    if instance is not None:
        if instance.task_state == task_states.UNSHELVING:
            return _unshelve(spec, demand, instance)
        if instance.task_state == task_states.MIGRATING:
            return _live_migration(spec, demand, instance)
    # A move to another Nova cell has a claim of its own.
    follows = (instance is not None and not _get(
        destination, 'allow_cross_cell_move')
        and config.register().hpcvirt.moves_follow_placement)
    return ClaimInput(demand, requests, _lost_affinity(spec, demand, requests),
                      follows, follows)


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
    # The claim takes the devices that it finds, whatever set they belong to.
    demand = dataclasses.replace(demand, device_set=None)
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

    An alias that the scheduler's configuration lacks is taken to have no
    policy.
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
    """Compile PCI requests, those of the flavor with this policy if any."""
    return tuple(
        dataclasses.replace(adapter.device_request(request),
                            affinity=shape_model.PCIAffinity(policy))
        if policy and adapter.is_of_flavor(request)
        else adapter.device_request(request) for request in requests)


def _policy(spec: typing.Any) -> str | None:
    """Return the affinity policy of flavor and image."""
    policy: str | None = hardware.get_pci_numa_policy_constraint(
        spec.flavor, spec.image or objects.ImageMeta(
            properties=objects.ImageMetaProps()))
    return policy


#: The attribute of a HostState that holds its account.
ACCOUNT = 'hpcvirt_account'


@dataclasses.dataclass(slots=True)
class _Account:
    """What a host has left.

    :ivar spec: the RequestSpec
    :ivar topology: the NUMATopology of the HostState when it was last read or
        charged
    :ivar instances: number of instances on the HostState at that time
    :ivar left: what is left; several supplies, the most likely first, if it
        is unknown in which order the host's claims take cells
    :ivar charged: whether it is less than what the HostState says
    """

    spec: typing.Any
    topology: typing.Any
    instances: int
    left: tuple[supplies.Supply, ...]
    charged: bool = False


def find_supplies(host_state: typing.Any, spec: typing.Any,
                  start: ClaimInput,
                  packing: bool) -> tuple[supplies.Supply, ...]:
    """Return the supply of a host as the next claim will find it.

    :param start: the input of the claim of each instance of the request
    :param packing: see :func:`hpcvirt.nova.config.read_packing`
    :returns: one supply; several, the most likely first, if it is unknown
        which of them is true
    """
    account: _Account | None = getattr(host_state, ACCOUNT, None)
    if account is not None and account.spec is spec:
        picks = host_state.num_instances - account.instances
        if not picks and account.topology is host_state.numa_topology:
            return account.left
        if picks > 0:
            charged = _charge(account.left, start, picks,
                              start.first_allocation(host_state))
            if charged is not None:
                return _record(host_state, spec, charged, True)
    if not start.demand.cells:
        return _record(host_state, spec, (adapter.device_supply(host_state),))
    supply = adapter.supply(host_state, packing)
    return _record(host_state, spec, tuple([
        supply if spares is supply.spares_devices
        else dataclasses.replace(supply, spares_devices=spares)
        for spares in config.spares_devices(host_state)]))


class Prediction(typing.NamedTuple):
    """The predicted placement of an instance on one host.

    :ivar demand: the demand with which the claim starts
    :ivar supply: the resources of the host before the claim
    :ivar placed: the host cells and pages that the claim will assign
    :ivar providers: the resource providers of each PCI request, if the claim
        follows them
    """

    demand: demands.Demand
    supply: supplies.Supply
    placed: demands.CellAssignment
    providers: devices.Providers


def predict(host_state: typing.Any, spec: typing.Any,
            start: ClaimInput, packing: bool) -> Prediction | None:
    """Predict the placement of the next instance on a host; None if none.

    :param start: the input of the claim
    :param packing: see :func:`hpcvirt.nova.config.read_packing`
    """
    supply = find_supplies(host_state, spec, start, packing)[0]
    demand, reached, providers = start.reach(
        supply, start.first_allocation(host_state))
    placed = claim.predict(demand, reached, providers)
    return (None if isinstance(placed, reasons.Misfit)
            else Prediction(demand, supply, placed, providers))


def forget_cells(host_state: typing.Any) -> None:
    """Free the cells of a host that has not been charged.

    The cells of a large fleet would trigger Python's garbage collection, which
    scans all objects of nova-scheduler. They can be made again, because Nova
    replaces a NUMA topology instead of changing it.
    """
    for supply in getattr(host_state, ACCOUNT).left:
        if isinstance(supply.cells, host_record.LazySequence):
            supply.cells.forget()


def key(start: ClaimInput) -> Hashable:
    """Return a key of all that :func:`predict` needs to know of a request."""
    demand = start.move.claimed if start.move else start.demand
    return (demand.key, demand.numbers,
            repr([request.specs for request in demand.requests]),
            start.follows_placement, start.move and start.move.limited)


def find_record(host_state: typing.Any, spec: typing.Any,
                start: ClaimInput,
                packing: bool) -> Hashable | None:
    """Return a key of all that :func:`predict` needs to know of a host.

    :returns: None if the host has been charged or its record is malformed
    """
    supply = find_supplies(host_state, spec, start, packing)[0]
    record = (None if getattr(host_state, ACCOUNT).charged
              else host_record.digest(host_state))
    if record is None or not start.requests:
        return record and (record, packing, supply.spares_devices)
    # Read the pools now: a pick changes those of the HostState in place.
    pools = list(supply.pools or ())
    allocation = start.first_allocation(host_state)
    if not (any(allocation.providers) or any(allocation.interfaces)):
        return record, packing, supply.spares_devices
    # The filter shuffles the candidates. Only what kind of devices the first
    # one has matters, and of that only a digest is kept.
    demand = start.move.claimed if start.move else start.demand
    kind = devices.AlikeDevices(demand.requests, pools, by_tags=True,
                                ).kind(allocation.providers)
    return (record, packing, supply.spares_devices, hashlib.blake2b(
        repr((kind, allocation.interfaces)).encode(errors='surrogatepass'),
        digest_size=16).digest())


def _charge(before: Sequence[supplies.Supply], start: ClaimInput,
            picks: int, first: Allocation,
            ) -> tuple[supplies.Supply, ...] | None:
    """Charge a host with picks.

    :returns: None if the host was picked although the instance does not fit
    """
    left = list(before)
    for _ in range(picks):
        for number, supply in enumerate(left):
            demand, reached, providers = start.reach(supply, first)
            placed = claim.predict(demand, reached, providers)
            if isinstance(placed, reasons.Misfit):
                return None
            left[number] = allocation.allocate(demand, supply, placed,
                                               providers)
    return tuple(left)


def _record(host_state: typing.Any, spec: typing.Any,
            left: tuple[supplies.Supply, ...], charged: bool = False,
            ) -> tuple[supplies.Supply, ...]:
    setattr(host_state, ACCOUNT, _Account(
        spec, host_state.numa_topology, host_state.num_instances, left,
        charged))
    return left
