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

import nova.conf

from hpcvirt.fit import allocation
from hpcvirt.fit import claim
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.nova import adapter
from hpcvirt.nova import claim_order

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


def what_is_left(host_state: typing.Any, spec: typing.Any,
                 demand: demands.Demand) -> tuple[supplies.Supply, ...]:
    """Look at a HostState as the next claim will find the host.

    :param demand: what each guest of the request needs
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
                              allocated(host_state, spec))
            if charged is not None:
                return _record(host_state, spec, charged)
    if not demand.cells:
        return _record(host_state, spec, (adapter.device_supply(host_state),))
    supply = adapter.supply(host_state)
    return _record(host_state, spec, tuple([
        supply if spares is supply.spares_devices
        else dataclasses.replace(supply, spares_devices=spares)
        for spares in claim_order.spares_devices(host_state)]))


def allocated(host_state: typing.Any, spec: typing.Any) -> devices.Providers:
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
            placed = claim.predict(
                demand, supply, nova.conf.CONF.compute
                .packing_host_numa_cells_allocation_strategy, providers)
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
