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

"""Move an instance from its host to another, as Nova migrates it.

The claim on the target decides where the instance lands. It needs its room
there before the instance leaves its source, which a live migration does at
its end, and a cold one when it is confirmed.
"""

import dataclasses
from collections.abc import Collection

from hpcvirt.fit import claim
from hpcvirt.fit import move_check
from hpcvirt.fit import pins
from hpcvirt.fit import placement as placements
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.fleet import admission
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import pci_pools
from hpcvirt.fleet import state


@dataclasses.dataclass(frozen=True)
class Move:
    """One instance that moves.

    :ivar cells: the host cells that it gets on the target
    :ivar cold: whether it is migrated cold, not live
    """

    id: str
    source: str
    target: str
    cells: tuple[int, ...]
    cold: bool = False


@dataclasses.dataclass(frozen=True)
class Plan:
    """Moves, in their order, and where the guests fit then.

    :ivar places: host and cells of each guest, in the order of their claims
    """

    moves: tuple[Move, ...]
    places: tuple[tuple[str, tuple[int, ...]], ...]

    @property
    def host(self) -> str:
        """The host of the first guest."""
        return self.places[0][0]

    @property
    def cells(self) -> tuple[int, ...]:
        """The host cells of the first guest."""
        return self.places[0][1]


def stays(instance: state.Instance, cold: bool = False) -> str | None:
    """Say why an instance must stay on its host; None if it may move.

    :param cold: whether it may be migrated cold
    """
    if instance.stays is not None:
        return instance.stays
    if instance.group and instance.group.policy is state.Policy.AFFINITY:
        # The scheduler passes only hosts that have members of the group.
        return 'belongs to a server group with affinity'
    if len(instance.devices) > sum(
            request.count for request in instance.guest.demand.requests):
        return 'has PCI devices that its flavor does not request'
    return None if cold else only_cold(instance)


def only_cold(instance: state.Instance) -> str | None:
    """Say why an instance cannot be live-migrated; None if it can."""
    if instance.devices or instance.guest.demand.requests:
        return 'has PCI devices'
    return instance.only_cold


def movable(host: state.FleetHost,
            cold: bool = False) -> tuple[state.Instance, ...]:
    """Return the instances of a host that may move."""
    return tuple(instance for instance in host.instances
                 if stays(instance, cold) is None)


def may_join(instance: state.Instance, host: state.FleetHost,
             gone: Collection[state.Instance] = ()) -> bool:
    """Whether aggregates, image and server group let an instance come.

    :param gone: instances of the host that leave before
    """
    if instance.hosts is not None and host.name not in instance.hosts:
        return False
    group = instance.group
    if group is None or group.policy is not state.Policy.ANTI_AFFINITY:
        return True
    return group.most_per_host > sum(
        other.id in group.members and other not in gone
        for other in host.instances)


def land(instance: state.Instance,
         host: state.FleetHost) -> placements.Placement | None:
    """Place an instance that moves to a host; None if it cannot."""
    return place(instance, host) if may_join(instance, host) else None


def place(instance: state.Instance,
          host: state.FleetHost) -> placements.Placement | None:
    """Place an instance as if it might join the host."""
    guest = instance.guest
    if claim.depends_on_start(guest.demand):
        misfit = move_check.check(move_check.Move(
            guest.demand, guest.demand, reasons.Defect.LOST_LIMITS,
            page_kib=instance.pages_kib if guest.demand.pages_by_class
            else None), host.state.supply, host.packing)
        if misfit is not None:
            return None
    placed = admission.admit(guest, host.state, host.packing)
    return None if isinstance(placed, reasons.Misfit) else placed


def arrive(instance: state.Instance, host: state.FleetHost,
           placement: placements.Placement) -> state.FleetHost:
    """Add an instance to a host, where it has landed."""
    cpus = pins.of_cells(instance.guest.demand, host.state.supply,
                         placement.cells)
    after = admission.take(instance.guest, host.state, placement)
    landed = dataclasses.replace(
        instance, host=host.name, cpus=cpus, cells=placement.cells,
        pools=pci_pools.taken(host.state.supply.pools, after.supply.pools))
    return dataclasses.replace(host, state=after,
                               instances=(*host.instances, landed))


def moved(hosts: dict[str, state.FleetHost], instance: state.Instance,
          target: str) -> Move | None:
    """Move an instance between hosts; None if its target refuses it."""
    host = hosts[target]
    placed = land(instance, host)
    if placed is None:
        return None
    hosts[target] = arrive(instance, host, placed)
    hosts[instance.host] = leave(instance, hosts[instance.host])
    return Move(instance.id, instance.host, target, placed.cells,
                only_cold(instance) is not None)


def leave(instance: state.Instance, host: state.FleetHost) -> state.FleetHost:
    """Remove an instance from its host."""
    return dataclasses.replace(
        host, state=released(instance, host.state),
        instances=tuple(other for other in host.instances
                        if other.id != instance.id))


def released(instance: state.Instance, host: state.State) -> state.State:
    """Compute what a host has left without an instance."""
    own = dict(zip(instance.cells, instance.guest.demand.cells, strict=True))
    cells = tuple(cell_without(instance, cell) if cell.id in own else cell
                  for cell in host.supply.cells)
    supply = dataclasses.replace(
        host.supply, cells=cells,
        pools=pci_pools.given_back(host.supply.pools, instance.pools))
    return dataclasses.replace(
        host, supply=supply, free=guests.Sums(*map(sum, zip(
            host.free, instance.guest.sums, strict=True))))


def cell_without(instance: state.Instance,
                 cell: supplies.CellSupply) -> supplies.CellSupply:
    """Compute what a cell has left without an instance on it."""
    demand = instance.guest.demand.cells[instance.cells.index(cell.id)]
    sizes = [pool.size_kib for pool in cell.pages]
    size_kib = instance.pages_kib or min(sizes, default=0)
    count = demand.memory_mib * 1024 // size_kib if size_kib else 0
    return cell._replace(
        free=cell.free | (instance.cpus & cell.dedicated),
        cpu_usage=cell.cpu_usage - demand.vcpus,
        memory_used_mib=cell.memory_used_mib - demand.memory_mib,
        pages=tuple(
            pool._replace(used=pool.used - count, free=pool.free + count)
            if pool.size_kib == size_kib else pool for pool in cell.pages))
