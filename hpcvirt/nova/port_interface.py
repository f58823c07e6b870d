# SPDX-License-Identifier: Apache-2.0

"""Find the network interface of an SR-IOV port with a guaranteed bandwidth.

Placement allocates the bandwidth of such a port on one physical function (PF).
After scheduling, nova-compute adds the name of its interface to the PCI
request, so that the claim takes a VF of this PF. An allocation candidate has
only the UUID of the resource provider, which Neutron's SR-IOV agent derives
from the names of the compute node and the interface. A host does not report
an interface without free VFs. The name of such an interface is known only if
any host has reported an interface of this name before.

What one host reports must not make the names of others forgotten: only a few
names of each host are remembered, the latest ones.
"""

import collections
import dataclasses
import threading
import typing
import uuid
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import kept_text
from hpcvirt.fit import demand as demands
from hpcvirt.nova import adapter
from hpcvirt.nova import host_record

#: ``resource_provider_uuid5_namespace`` of Neutron's mechanism driver
#: sriovnicswitch, the same in all releases.
NAMESPACE = uuid.UUID('87f1895c-73bb-11e8-9008-c4d987b2a692')

#: The tag of PCI devices and requests.
TAG = 'parent_ifname'

#: The most characters of the name of an interface in Linux.
_MAX_CHARACTERS = 15
#: The most names that are remembered of one host.
MAX_NAMES_OF_A_HOST = 64
#: The most names that are remembered of all hosts. It takes 5 us to compare
#: one with a resource provider.
MAX_NAMES = 1000
#: The most nodes, hosts and resource providers that are remembered.
MAX_NODES = 20_000
MAX_HOSTS = 10_000
MAX_PROVIDERS = 20_000


class KnownNames:
    """The names of interfaces that hosts have reported.

    For example, if host ``a`` has reported ``ens1`` and ``ens2``, and host
    ``b`` has reported ``ens1``, then ``ens1`` is found on all nodes as long as
    it is remembered of one of the two hosts.
    """

    def __init__(self) -> None:
        # Threads of the scheduler share the names.
        self._lock = threading.Lock()
        # Host -> its names, the latest last; the hosts are in this order too.
        self._of_hosts: collections.OrderedDict[str, dict[str, None]] = (
            collections.OrderedDict())
        self._counts: collections.Counter[str] = collections.Counter()
        # Name -> a number that is higher for names that were learned later.
        self._numbers: dict[str, int] = {}
        self._last = 0
        # Node and resource provider -> its name, None if it is not among
        # those up to a number.
        self._found: dict[tuple[str, str], tuple[str | None, int]] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def learn(self, host: str, names: Iterable[str]) -> None:
        """Remember the names that a host reports."""
        with self._lock:
            own = self._of_hosts.setdefault(host, {})
            self._of_hosts.move_to_end(host)
            for name in names:
                if name in own:
                    del own[name]
                else:
                    self._count(name)
                own[name] = None
                if len(own) > MAX_NAMES_OF_A_HOST:
                    self._forget(own, next(iter(own)))
            if len(self._of_hosts) > MAX_HOSTS:
                self._forget_host(next(iter(self._of_hosts)))
            while len(self._numbers) > MAX_NAMES:
                # Most hosts have a few interfaces.
                self._forget_host(max(self._of_hosts, key=lambda each: len(
                    self._of_hosts[each])))

    def _count(self, name: str) -> None:
        self._counts[name] += 1
        if name not in self._numbers:
            self._last += 1
            self._numbers[name] = self._last

    def _forget(self, own: dict[str, None], name: str) -> None:
        """Forget that a host has a name."""
        del own[name]
        self._counts[name] -= 1
        if not self._counts[name]:
            del self._counts[name], self._numbers[name]

    def _forget_host(self, host: str) -> None:
        own = self._of_hosts.pop(host)
        for name in tuple(own):
            self._forget(own, name)

    def find(self, node: str, provider: str) -> str | None:
        """Return the name of an interface of a node, None if it is unknown.

        Only names that were learned since the last time are compared.

        :param provider: the UUID of the resource provider
        """
        with self._lock:
            name, last = self._found.get((node, provider), (None, 0))
            if name is not None or last == self._last:
                return name
            for each, number in self._numbers.items():
                if number > last and provider == str(
                        uuid.uuid5(NAMESPACE, f'{node}:{each}')):
                    name = each
                    break
            if len(self._found) >= MAX_PROVIDERS:
                self._found.clear()
            self._found[node, provider] = name, self._last
            return name


_known = KnownNames()
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
    mappings: Iterable[str] = ()
    for host_state in host_states:
        if host_state.allocation_candidates:
            mappings = host_state.allocation_candidates[0]['mappings']
            break
    if ports.isdisjoint(mappings):
        return True
    for host_state in host_states:
        _known_nodes.discard(str(host_state.nodename))
        learn_new(host_state)
    return False


def learn_new(host_state: typing.Any) -> None:
    """Remember the interfaces of a host, unless it is known."""
    if len(_known_nodes) >= MAX_NODES:
        _known_nodes.clear()
    try:
        node = host_state.nodename
        if node in _known_nodes:
            return
        _learn_names(host_state)
        if kept_text.is_short(node):
            _known_nodes.add(node)
    except host_record.BROKEN:
        # The host tracks no devices, or is malformed and refused later.
        pass


def _learn_names(host_state: typing.Any) -> None:
    names = _names(host_state)
    host = str(host_state.host)
    if names and kept_text.is_short(host):
        _known.learn(host, names)


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
    node, provider = str(host_state.nodename), providers[0]
    if not kept_text.is_short(node):
        return None
    name = _known.find(node, provider)
    if name is None:
        _learn_names(host_state)
        name = _known.find(node, provider)
    return name


def _names(host_state: typing.Any) -> list[str]:
    """List the interfaces that a host reports, not more than it may have."""
    if host_state.pci_stats is None:
        return []
    names = dict.fromkeys(
        name for pool in host_state.pci_stats.pools
        if (name := str(pool.get(TAG) or ''))
        and len(name) <= _MAX_CHARACTERS)
    return list(names)[:MAX_NAMES_OF_A_HOST]


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
