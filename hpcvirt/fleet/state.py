# SPDX-License-Identifier: Apache-2.0

"""The hosts of a fleet with the instances on them."""

import dataclasses
import enum
from collections.abc import Iterable
from collections.abc import Mapping

from hpcvirt.fit import allocation
from hpcvirt.fit import guest as guests
from hpcvirt.fit import placement
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import warning
from hpcvirt.model import flavor as flavor_model


class Policy(enum.StrEnum):
    """The policies of server groups; soft policies are not enforced."""

    AFFINITY = 'affinity'
    ANTI_AFFINITY = 'anti-affinity'
    SOFT_AFFINITY = 'soft-affinity'
    SOFT_ANTI_AFFINITY = 'soft-anti-affinity'


@dataclasses.dataclass(frozen=True)
class ServerGroup:
    """A server group.

    :ivar members: the ids of its instances
    :ivar most_per_host: ``max_server_per_host`` of anti-affinity
    """

    policy: Policy
    members: frozenset[str]
    most_per_host: int = 1


@dataclasses.dataclass(frozen=True)
class Instance:
    """An instance on its host.

    :ivar where: its place in the file, for messages
    :ivar holding: the resources that it has on its host
    :ivar devices: PCI addresses of its devices
    :ivar stays: why it must not move to another host; None if it may
    :ivar hosts: the hosts to which it may move, as its aggregates, its zone
        and its image allow; None for all
    :ivar group: its server group
    :ivar only_cold: why it cannot be live-migrated; None if it can
    :ivar project: the project to which it belongs; None if unknown
    :ivar follows_placement: whether a cold migration gives it the PCI devices
        that Placement allocates, which needs a patch of Nova
    """

    id: str
    where: str
    host: str
    guest: guests.Guest
    holding: allocation.Holding
    devices: tuple[str, ...] = ()
    stays: str | None = None
    hosts: frozenset[str] | None = None
    group: ServerGroup | None = None
    only_cold: str | None = None
    project: str | None = None
    follows_placement: bool = False

    @property
    def flavor(self) -> flavor_model.Flavor:
        """Its flavor."""
        return self.guest.flavor

    @property
    def cells(self) -> tuple[int, ...]:
        """For each guest cell, in guest order, the id of its host cell."""
        return self.holding.placement.cells


@dataclasses.dataclass(frozen=True)
class FleetHost:
    """A host and its instances.

    :ivar zone: its availability zone; empty if no aggregate names one
    :ivar project_aggregate: the aggregate that keeps it for projects; empty
        if none does, "multiple" if several do
    :ivar aggregates: the names of all its aggregates
    :ivar fleet_class: its class of the fleet document; empty without one
    """

    name: str
    state: placement.HostState
    instances: tuple[Instance, ...] = ()
    zone: str = ''
    project_aggregate: str = ''
    aggregates: tuple[str, ...] = ()
    fleet_class: str = ''


@dataclasses.dataclass(frozen=True)
class Fleet:
    """All hosts of a fleet, in the order in which they were given.

    :ivar broken: host -> why its record cannot be used
    :ivar warnings: the warnings about its classes
    :ivar flavors: the flavors of the cloud, if they were read
    :ivar device_kinds: PCI alias or resource class -> what its devices are, as
        the profiles say
    :ivar planned: the hosts that were planned
    :ivar alias_policies: see :mod:`hpcvirt.flavors.compiled_flavor`; empty if
        the flavors are complete
    """

    hosts: tuple[FleetHost, ...]
    broken: Mapping[str, str]
    warnings: tuple[warning.PlanWarning, ...] = ()
    flavors: tuple[flavor_model.Flavor, ...] = ()
    planned: tuple[plans.PlannedHost, ...] = dataclasses.field(
        default=(), compare=False, repr=False)
    alias_policies: Mapping[str, str] = dataclasses.field(
        default_factory=dict)
    device_kinds: Mapping[str, device_choice.CountedAs] = dataclasses.field(
        default_factory=dict)


def group_alike(hosts: Iterable[FleetHost],
                ) -> tuple[tuple[FleetHost, ...], ...]:
    """Group hosts with equal states, in the order of the first of each."""
    found: dict[object, list[FleetHost]] = {}
    for host in hosts:
        found.setdefault(placement.describe(host.state), []).append(host)
    return tuple(map(tuple, found.values()))
