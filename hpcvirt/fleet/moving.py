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


def can_move(instance: state.Instance) -> bool:
    """Whether an instance may move; one with VFs cannot do so live."""
    return (instance.movable and not instance.devices and
            not instance.guest.demand.requests)


def land(instance: state.Instance, host: state.State, packing: bool,
         ) -> placements.Placement | reasons.Misfit:
    """Place an instance that moves to a host, or say why it must not."""
    guest = instance.guest
    if claim.depends_on_start(guest.demand):
        misfit = move_check.check(move_check.Move(
            guest.demand, guest.demand, reasons.Defect.LOST_LIMITS,
            page_kib=instance.pages_kib if guest.demand.pages_by_class
            else None), host.supply, packing)
        if misfit is not None:
            return misfit
    return admission.admit(guest, host, packing)


def arrive(instance: state.Instance, host: state.FleetHost,
           placement: placements.Placement) -> state.FleetHost:
    """Add an instance to a host, where it has landed."""
    cells = {cell.id: cell for cell in host.state.supply.cells}
    cpus = frozenset[int]().union(*(
        pins.choose(demand, cells[number]).taken for number, demand
        in zip(placement.cells, instance.guest.demand.cells, strict=True)))
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
    return state.State(dataclasses.replace(host.supply, cells=cells),
                       guests.Sums(*map(sum, zip(
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
