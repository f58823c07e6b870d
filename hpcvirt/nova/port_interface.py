# SPDX-License-Identifier: Apache-2.0

"""Find the network interface of an SR-IOV port with a guaranteed bandwidth.

Placement allocates the bandwidth of such a port on one physical function (PF).
After scheduling, nova-compute adds the name of its interface to the PCI
request, so that the claim takes a VF of this PF. An allocation candidate has
only the UUID of the resource provider, which Neutron's SR-IOV agent derives
from the names of the compute node and the interface. A host does not report
an interface without free VFs. The name of such an interface is known only if
any host has reported an interface of this name before.
"""

import dataclasses
import typing
import uuid
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.fit import demand as demands
from hpcvirt.nova import adapter
from hpcvirt.nova import lazy_sequence

#: ``resource_provider_uuid5_namespace`` of Neutron's mechanism driver
#: sriovnicswitch, the same in all releases.
NAMESPACE = uuid.UUID('87f1895c-73bb-11e8-9008-c4d987b2a692')

#: The tag of PCI devices and requests.
TAG = 'parent_ifname'

#: The most names that are remembered.
_MAX_NAMES = 1000
_known_names: set[str] = set()
#: The most nodes that are remembered; then all are forgotten.
_MAX_NODES = 100_000
_known_nodes: set[str] = set()


def learn(requests: Iterable[typing.Any],
          host_states: Sequence[typing.Any]) -> bool:
    """Remember the interfaces of all hosts for ports with a bandwidth.

    :returns: whether the requests are for ports without a bandwidth, which
        need no names: the caller then passes hosts to :func:`learn_new`
    """
    ports = {request.requester_id for request in requests
             if not adapter.is_of_flavor(request)}
    if not ports:
        return False
    # All candidates of a request map the same request groups.
    mappings: Iterable[str] = next(
        (candidate['mappings'] for host_state in host_states
         for candidate in host_state.allocation_candidates), ())
    if ports.isdisjoint(mappings):
        return True
    for host_state in host_states:
        _known_nodes.discard(str(host_state.nodename))
        learn_new(host_state)
    return False


def learn_new(host_state: typing.Any) -> None:
    """Remember the interfaces of a host, unless they are known."""
    if len(_known_names) >= _MAX_NAMES:
        return
    if len(_known_nodes) >= _MAX_NODES:
        _known_nodes.clear()
    try:
        if host_state.nodename in _known_nodes:
            return
        try:
            for pool in host_state.pci_stats.pools:
                if name := pool.get(TAG):
                    _known_names.add(str(name))
        finally:
            # Last: other threads do not read the interfaces of a known node.
            _known_nodes.add(host_state.nodename)
    except lazy_sequence.BROKEN:
        # The host tracks no devices, or is malformed and refused later.
        pass


def find(request: typing.Any, mappings: Mapping[str, Sequence[str]],
         host_state: typing.Any) -> str | None:
    """Return the interface on which Placement allocated a port's bandwidth.

    :param request: an InstancePCIRequest
    :param mappings: request group -> UUIDs of resource providers, as in the
        allocation candidate
    :returns: None if the request is not bound to an interface, if its name is
        not known, or if an agent other than Neutron's SR-IOV agent created
        the resource provider
    """
    if not request.requester_id or host_state.pci_stats is None:
        return None
    providers = mappings.get(request.requester_id)
    if not providers:
        return None
    for name in (*_names(host_state), *tuple(_known_names)):
        if str(uuid.uuid5(NAMESPACE, f'{host_state.nodename}:{name}')
               ) == providers[0]:
            return name
    return None


def _names(host_state: typing.Any) -> set[str]:
    if host_state.pci_stats is None:
        return set()
    return {str(pool[TAG]) for pool in host_state.pci_stats.pools
            if pool.get(TAG)}


def bind(demand: demands.Demand,
         interfaces: Sequence[str | None]) -> demands.Demand:
    """Restrict each PCI request to devices of its interface."""
    if not any(interfaces):
        return demand
    return dataclasses.replace(demand, requests=tuple(
        request if name is None else dataclasses.replace(
            request, specs=tuple({**spec, TAG: name.lower()}
                                 for spec in request.specs))
        for request, name in zip(demand.requests, interfaces, strict=True)))
