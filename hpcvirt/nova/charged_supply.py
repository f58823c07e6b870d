# SPDX-License-Identifier: Apache-2.0

"""What a host has left after the earlier picks of the same request.

When a request creates several guests, nova-scheduler picks a host for each in
turn. Nova's record of a pick (``HostState.consume_from_request``) is not
reliable: it starts from what the pick before left in the request, sorts cells
as the newest Nova does, and records nothing if that ends in a refusal or an
exception. The same room would be promised again. Therefore each host is
charged here with the placements that its claims will arrive at.

The account of a host is kept on its HostState, which nova-scheduler creates
anew for each request.
"""

import dataclasses
import typing
from collections.abc import Sequence

from hpcvirt.fit import allocation
from hpcvirt.fit import cell_assignment as cell_assignments
from hpcvirt.fit import claim
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.nova import adapter
from hpcvirt.nova import cell_order_by_release

#: The attribute of a HostState that has its account.
ACCOUNT = 'hpcvirt_account'


@dataclasses.dataclass(slots=True)
class _Account:
    """What a host has left.

    :ivar spec: the RequestSpec
    :ivar topology: the NUMATopology of the HostState when it was read or
        charged last
    :ivar instances: instances on the HostState at that time
    :ivar left: what is left; several where it is unknown how the claims of
        the host order cells, the likeliest first
    """

    spec: typing.Any
    topology: typing.Any
    instances: int
    left: tuple[supplies.Supply, ...]


def find_supplies(host_state: typing.Any, spec: typing.Any,
                  demand: demands.Demand,
                  packing: bool) -> tuple[supplies.Supply, ...]:
    """Look at a HostState as the next claim will find the host.

    :param demand: what each guest of the request needs
    :param packing: see :func:`hpcvirt.nova.config.read_packing`
    :returns: one supply, or several if it is unknown which of them is true,
        the likeliest first
    """
    account: _Account | None = getattr(host_state, ACCOUNT, None)
    if account is not None and account.spec is spec:
        picks = host_state.num_instances - account.instances
        if not picks and account.topology is host_state.numa_topology:
            return account.left
        if picks > 0:
            charged = _charge(account.left, demand, picks,
                              find_providers(host_state, spec))
            if charged is not None:
                return _record(host_state, spec, charged)
    if not demand.cells:
        return _record(host_state, spec, (adapter.device_supply(host_state),))
    supply = adapter.supply(host_state, packing)
    return _record(host_state, spec, tuple([
        supply if spares is supply.spares_devices
        else dataclasses.replace(supply, spares_devices=spares)
        for spares in cell_order_by_release.spares_devices(host_state)]))


class Prediction(typing.NamedTuple):
    """The predicted placement of a guest on one host.

    :ivar supply: the resources of the host before the claim
    :ivar placed: the cells and pages that the claim will give it
    :ivar providers: the resource providers of each PCI request
    """

    supply: supplies.Supply
    placed: cell_assignments.CellAssignment
    providers: devices.Providers


def predict(host_state: typing.Any, spec: typing.Any, demand: demands.Demand,
            packing: bool, claimed: demands.Demand | None = None,
            providers: devices.Providers | None = None) -> Prediction | None:
    """Predict the placement of the next guest on a host; None if none.

    :param packing: see :func:`hpcvirt.nova.config.read_packing`
    :param claimed: the demand with which the claim starts, if it is another
    :param providers: the resource providers that the claim observes; by
        default those that Placement allocates
    """
    supply = find_supplies(host_state, spec, demand, packing)[0]
    if providers is None:
        providers = find_providers(host_state, spec)
    placed = claim.predict(claimed or demand, supply, providers)
    return (None if isinstance(placed, reasons.Misfit)
            else Prediction(supply, placed, providers))


def find_providers(host_state: typing.Any,
                   spec: typing.Any) -> devices.Providers:
    """Tell which devices Placement allocates if the host is picked.

    The scheduler claims the first candidate that the filters leave.
    """
    candidates = host_state.allocation_candidates
    if not candidates or not any(map(adapter.is_of_flavor,
                                     adapter.pci_requests(spec))):
        return ()
    return adapter.providers(spec, candidates[0]['mappings'])


def _charge(before: Sequence[supplies.Supply], demand: demands.Demand,
            picks: int, providers: devices.Providers,
            ) -> tuple[supplies.Supply, ...] | None:
    """Charge a host with picks.

    :returns: None if the host was picked although the guest does not fit
    """
    left = list(before)
    for _ in range(picks):
        for number, supply in enumerate(left):
            placed = claim.predict(demand, supply, providers)
            if isinstance(placed, reasons.Misfit):
                return None
            left[number] = allocation.allocate(demand, supply, placed,
                                               providers)
    return tuple(left)


def _record(host_state: typing.Any, spec: typing.Any,
            left: tuple[supplies.Supply, ...]) -> tuple[supplies.Supply, ...]:
    setattr(host_state, ACCOUNT, _Account(
        spec, host_state.numa_topology, host_state.num_instances, left))
    return left
