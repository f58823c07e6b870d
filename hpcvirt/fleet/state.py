# SPDX-License-Identifier: Apache-2.0

"""The hosts of a fleet with the instances on them."""

import dataclasses
import enum
from collections.abc import Iterable
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt.fit import allocation
from hpcvirt.fit import cell_assignment as cell_assignments
from hpcvirt.fit import supply as supplies
from hpcvirt.fleet import guest as guests
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import host as host_model


class Policy(enum.StrEnum):
    """What a server group asks for; the soft ones forbid nothing."""

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
    """An instance, as it is on its host.

    :ivar where: its place in the file, for messages
    :ivar cells: for each guest cell, in guest order, the id of its host cell
    :ivar cpus: all host CPUs that are its own
    :ivar pages_kib: for each guest cell the size of its pages, None for the
        smallest of the host; empty if that is so for all
    :ivar devices: PCI addresses of its devices
    :ivar stays: why it must not move to another host; None if it may
    :ivar hosts: the hosts to which it may move, as its aggregates, its zone
        and its image allow; None for all
    :ivar group: its server group
    :ivar only_cold: why it cannot be live-migrated; None if it can
    :ivar pools: how many devices it has of each PCI pool of its host; empty
        if it has none
    """

    id: str
    where: str
    host: str
    flavor: flavor_model.Flavor
    guest: guests.Guest
    cells: tuple[int, ...] = ()
    cpus: frozenset[int] = frozenset()
    pages_kib: tuple[int | None, ...] = ()
    devices: tuple[str, ...] = ()
    stays: str | None = None
    hosts: frozenset[str] | None = None
    group: ServerGroup | None = None
    only_cold: str | None = None
    pools: tuple[int, ...] = ()

    @property
    def holding(self) -> allocation.Holding:
        """What it has of its host."""
        return allocation.Holding(cell_assignments.CellAssignment(
            self.cells, self.pages_kib or (None,) * len(self.cells)),
            self.cpus, self.pools)

    def page_kib(self, place: int) -> int | None:
        """Return the page size of a guest cell; None for the smallest."""
        return self.pages_kib[place] if self.pages_kib else None


@dataclasses.dataclass(frozen=True)
class FleetHostState:
    """What a host has left.

    :ivar supply: cell by cell
    :ivar free: in total, as Placement counts; none if the host is closed
    :ivar traits: those of its resource provider; None if they are not known
    :ivar closed: why Nova sends no new instance to the host; None if it does
    """

    supply: supplies.Supply
    free: guests.Resources
    closed: str | None = None
    traits: frozenset[str] | None = None


@dataclasses.dataclass(frozen=True)
class FleetHost:
    """A host and its instances."""

    name: str
    state: FleetHostState
    instances: tuple[Instance, ...] = ()


@dataclasses.dataclass(frozen=True)
class Fleet:
    """All hosts of a fleet, in the order in which they were given.

    :ivar broken: host -> why its record cannot be used
    """

    hosts: tuple[FleetHost, ...]
    broken: Mapping[str, str]


#: Host -> its topology, or why it cannot be used.
Topologies = Mapping[str, host_model.Host | exception.InvalidInput]


def group_alike(hosts: Iterable[FleetHost],
                ) -> tuple[tuple[FleetHost, ...], ...]:
    """Group hosts that have the same left, in the order of the first ones."""
    found: dict[object, list[FleetHost]] = {}
    for host in hosts:
        supply = host.state.supply
        pools = tuple((pool.cell, pool.free, tuple(sorted(pool.tags.items())))
                      for pool in supply.pools or ())
        found.setdefault((supply.cells, pools, host.state.free,
                          host.state.closed, host.state.traits,
                          supply.packing), []).append(host)
    return tuple(map(tuple, found.values()))
