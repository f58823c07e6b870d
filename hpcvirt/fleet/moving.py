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

"""Move an instance from its host to another, as a live migration does.

The claim on the target decides where the instance lands. It needs its room
there before the instance leaves its source.
"""

import dataclasses

from hpcvirt.fit import claim
from hpcvirt.fit import move_check
from hpcvirt.fit import pins
from hpcvirt.fit import placement as placements
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.fleet import admission
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import state


@dataclasses.dataclass(frozen=True)
class Move:
    """One instance that moves.

    :ivar cells: the host cells that it gets on the target
    """

    id: str
    source: str
    target: str
    cells: tuple[int, ...]


def stays(instance: state.Instance) -> str | None:
    """Say why an instance must stay on its host; None if it may move."""
    if instance.stays is not None:
        return instance.stays
    if instance.devices or instance.guest.demand.requests:
        return 'has PCI devices'
    if instance.group and instance.group.policy is state.Policy.AFFINITY:
        # The scheduler passes only hosts that have members of the group.
        return 'belongs to a server group with affinity'
    return None


def movable(host: state.FleetHost) -> tuple[state.Instance, ...]:
    """Return the instances of a host that may move."""
    return tuple(instance for instance in host.instances
                 if stays(instance) is None)


def may_join(instance: state.Instance, host: state.FleetHost,
             gone: state.Instance | None = None) -> bool:
    """Whether aggregates, image and server group let an instance come.

    :param gone: an instance of the host that leaves before
    """
    if instance.hosts is not None and host.name not in instance.hosts:
        return False
    group = instance.group
    if group is None or group.policy is not state.Policy.ANTI_AFFINITY:
        return True
    return group.most_per_host > sum(
        other.id in group.members and other is not gone
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
    landed = dataclasses.replace(instance, host=host.name, cpus=cpus,
                                 cells=placement.cells)
    return dataclasses.replace(
        host, state=admission.take(instance.guest, host.state, placement),
        instances=(*host.instances, landed))


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
    return dataclasses.replace(
        host, supply=dataclasses.replace(host.supply, cells=cells),
        free=guests.Sums(*map(sum, zip(
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
