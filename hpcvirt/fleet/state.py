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

"""The hosts of a fleet with the instances on them."""

import dataclasses
import enum
from collections.abc import Mapping

from hpcvirt import exception
from hpcvirt.fit import devices as pci
from hpcvirt.fit import supply as supplies
from hpcvirt.flavors import catalogue
from hpcvirt.fleet import guest as guests
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
    :ivar pages_kib: the size of its pages; None for the smallest of the host
    :ivar devices: PCI addresses of its devices
    :ivar stays: why it must not move to another host; None if it may
    :ivar hosts: the hosts to which it may move, as its aggregates, its zone
        and its image allow; None for all
    :ivar group: its server group
    :ivar only_cold: why it cannot be live-migrated; None if it can
    :ivar pools: what it has of the PCI pools of its host
    """

    id: str
    where: str
    host: str
    flavor: catalogue.Flavor
    guest: guests.Guest
    cells: tuple[int, ...] = ()
    cpus: frozenset[int] = frozenset()
    pages_kib: int | None = None
    devices: tuple[str, ...] = ()
    stays: str | None = None
    hosts: frozenset[str] | None = None
    group: ServerGroup | None = None
    only_cold: str | None = None
    pools: tuple[pci.Pool, ...] = ()


@dataclasses.dataclass(frozen=True)
class State:
    """What a host has left.

    :ivar supply: cell by cell
    :ivar free: in sum, as Placement counts; none if the host is closed
    :ivar traits: those of its resource provider; None if they are not known
    :ivar closed: why Nova sends no new instance to the host; None if it does
    """

    supply: supplies.Supply
    free: guests.Sums
    closed: str | None = None
    traits: frozenset[str] | None = None


@dataclasses.dataclass(frozen=True)
class FleetHost:
    """A host and its instances.

    :ivar packing: ``packing_host_numa_cells_allocation_strategy``
    """

    name: str
    state: State
    instances: tuple[Instance, ...] = ()
    packing: bool = False


@dataclasses.dataclass(frozen=True)
class Fleet:
    """All hosts of a fleet, in the order in which they were given.

    :ivar broken: host -> why its record cannot be used
    """

    hosts: tuple[FleetHost, ...]
    broken: Mapping[str, str]


#: Host -> its topology, or why it cannot be used.
Topologies = Mapping[str, host_model.Host | exception.InvalidInput]
