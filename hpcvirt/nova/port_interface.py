# SPDX-License-Identifier: Apache-2.0

"""The network interface of an SR-IOV port with a guaranteed bandwidth.

Placement allocates the bandwidth of such a port on one physical function.
After scheduling, nova-compute adds the name of its interface to the PCI
request, so that the virtual function is one of this physical function. An
allocation candidate has only the UUID of the resource provider; Neutron's
SR-IOV agent derives it from the names of the compute node and the interface.
"""

import dataclasses
import typing
import uuid
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.fit import demand as demands

#: ``resource_provider_uuid5_namespace`` of Neutron's mechanism driver
#: sriovnicswitch, the same in all releases.
NAMESPACE = uuid.UUID('87f1895c-73bb-11e8-9008-c4d987b2a692')

#: The tag of PCI devices and requests.
TAG = 'parent_ifname'


def find(request: typing.Any, mappings: Mapping[str, Sequence[str]],
         host_state: typing.Any) -> str | None:
    """Name the interface on which Placement allocated a port's bandwidth.

    :param request: an InstancePCIRequest
    :param mappings: request group -> UUIDs of resource providers, as in the
        allocation candidate
    :returns: None if the request is not bound to an interface, or if another
        agent than Neutron's SR-IOV agent has made the resource provider
    """
    providers = mappings.get(request.requester_id or '')
    if not providers or host_state.pci_stats is None:
        return None
    for pool in host_state.pci_stats.pools:
        name = pool.get(TAG)
        if name and str(uuid.uuid5(
                NAMESPACE, f'{host_state.nodename}:{name}')) == providers[0]:
            return str(name)
    return None


def bind(demand: demands.Demand,
         interfaces: Sequence[str | None]) -> demands.Demand:
    """Let each PCI request ask for devices of its interface only."""
    if not any(interfaces):
        return demand
    return dataclasses.replace(demand, requests=tuple(
        request if name is None else dataclasses.replace(
            request, specs=tuple({**spec, TAG: name.lower()}
                                 for spec in request.specs))
        for request, name in zip(demand.requests, interfaces, strict=True)))
