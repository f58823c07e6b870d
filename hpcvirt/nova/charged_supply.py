# SPDX-License-Identifier: Apache-2.0

"""Compute what a host has left after earlier picks of the same request.

If a request creates several instances, nova-scheduler picks a host for each
of them in turn. It records a pick by ``HostState.consume_from_request``, which
is not reliable: it starts from what the previous pick left in the request,
sorts cells as the newest Nova does, and records nothing if it finds no fit or
fails. The scheduler would then promise the same resources again. Therefore
this module charges each host with the placements that its claims will find.

The account of a host is kept on its HostState, which nova-scheduler creates
anew for each request.
"""

import dataclasses
import hashlib
import typing
from collections.abc import Hashable
from collections.abc import Sequence

from hpcvirt.fit import alike_devices
from hpcvirt.fit import allocation
from hpcvirt.fit import cell_assignment as cell_assignments
from hpcvirt.fit import claim
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.nova import adapter
from hpcvirt.nova import cell_order_by_release
from hpcvirt.nova import claim_input
from hpcvirt.nova import host_record
from hpcvirt.nova import lazy_sequence

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
                  start: claim_input.ClaimInput,
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
        for spares in cell_order_by_release.spares_devices(host_state)]))


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
    placed: cell_assignments.CellAssignment
    providers: devices.Providers


def predict(host_state: typing.Any, spec: typing.Any,
            start: claim_input.ClaimInput, packing: bool) -> Prediction | None:
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
        if isinstance(supply.cells, lazy_sequence.LazySequence):
            supply.cells.forget()


def key(start: claim_input.ClaimInput) -> Hashable:
    """Return a key of all that :func:`predict` needs to know of a request."""
    demand = start.move.claimed if start.move else start.demand
    return (demand.key, demand.numbers,
            repr([request.specs for request in demand.requests]),
            start.follows_placement, start.move and start.move.limited)


def find_record(host_state: typing.Any, spec: typing.Any,
                start: claim_input.ClaimInput,
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
    # The filter shuffles the candidates. Only what kind of devices the first
    # one has matters, and of that only a digest is kept.
    demand = start.move.claimed if start.move else start.demand
    kind = alike_devices.AlikeDevices(demand.requests, pools, by_tags=True,
                                      ).kind(allocation.providers)
    return (record, packing, supply.spares_devices, hashlib.blake2b(
        repr((kind, allocation.interfaces)).encode(errors='surrogatepass'),
        digest_size=16).digest())


def _charge(before: Sequence[supplies.Supply], start: claim_input.ClaimInput,
            picks: int, first: claim_input.Allocation,
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
