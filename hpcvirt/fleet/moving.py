# SPDX-License-Identifier: Apache-2.0

"""Move an instance from its host to another, as Nova migrates it.

The claim on the target chooses the host cells. The instance needs its room
there before it leaves its source: at the end of a live migration, or when a
cold migration is confirmed.
"""

import dataclasses
import functools
from collections.abc import Collection
from collections.abc import Iterable

from hpcvirt.fit import admission
from hpcvirt.fit import allocation
from hpcvirt.fit import claim
from hpcvirt.fit import demand as demands
from hpcvirt.fit import move_check
from hpcvirt.fit import new_guest
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.fleet import state


@dataclasses.dataclass(frozen=True)
class Move:
    """The move of an instance.

    :ivar cells: the host cells that it gets on the target
    :ivar cold: whether it is a cold migration
    """

    id: str
    source: str
    target: str
    cells: tuple[int, ...]
    cold: bool = False


@dataclasses.dataclass(frozen=True)
class MoveAttempt:
    """A move that was begun.

    :ivar failure: why it did not succeed; None if it did
    """

    move: Move
    failure: str | None = None


@dataclasses.dataclass(frozen=True)
class MovePlan:
    """Moves, in their order, and the hosts on which the guests then fit.

    :ivar places: host and cells of each guest, in the order of their claims
    """

    moves: tuple[Move, ...]
    places: tuple[tuple[str, tuple[int, ...]], ...]


def stays(instance: state.Instance, cold: bool = False) -> str | None:
    """Say why an instance must stay on its host; None if it may move.

    :param cold: whether it may be migrated cold
    """
    if instance.stays is not None:
        return instance.stays
    if instance.group and instance.group.policy is state.Policy.AFFINITY:
        # Nova's filter passes only hosts that have members of the group.
        return 'belongs to a server group with affinity'
    if len(instance.devices) > sum(
            request.count for request in instance.guest.demand.requests):
        return 'has PCI devices that its flavor does not request'
    if instance.guest.demand.device_set and not instance.follows_placement:
        return ('has a set of PCI devices, and Nova would give it other '
                'devices in a cold migration')
    return None if cold else only_cold(instance)


def only_cold(instance: state.Instance) -> str | None:
    """Say why an instance cannot be live-migrated; None if it can."""
    if instance.devices or instance.guest.demand.requests:
        return 'has PCI devices'
    return instance.only_cold


def may_join(instance: state.Instance, host: state.FleetHost,
             gone: Collection[state.Instance] = ()) -> bool:
    """Whether aggregates, image and server group allow a host.

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
         host: state.FleetHost) -> demands.CellAssignment | None:
    """Place an instance on the target of a move; None if it cannot move."""
    return place(instance, host) if may_join(instance, host) else None


def place(instance: state.Instance,
          host: state.FleetHost) -> demands.CellAssignment | None:
    """Place an instance, regardless of aggregates, image and server group."""
    guest = instance.guest
    if claim.depends_on_start(guest.demand):
        misfit = move_check.check(move_check.MoveClaim(
            guest.demand, guest.demand, reasons.Defect.LOST_LIMITS,
            page_kib=instance.holding.placement.pages_kib[0]
            if guest.demand.pages_by_class else None), host.state.supply)
        if misfit is not None:
            return None
    # Without the patch, a move takes the first devices that match.
    placed = admission.predict(
        guest, host.state,
        new_guest.predict if instance.follows_placement else claim.predict)
    return None if isinstance(placed, reasons.Misfit) else placed


def arrive(instance: state.Instance, host: state.FleetHost,
           placement: demands.CellAssignment) -> state.FleetHost:
    """Add an instance to a host."""
    supply, holding = allocation.charge(
        instance.guest.demand, host.state.supply, placement)
    moved = dataclasses.replace(instance, host=host.name, holding=holding)
    return dataclasses.replace(
        host, instances=(*host.instances, moved), state=dataclasses.replace(
            host.state, supply=supply,
            free=host.state.free.minus(instance.guest.sums)))


def try_move(hosts: dict[str, state.FleetHost], instance: state.Instance,
             target: str) -> Move | None:
    """Move an instance between hosts; None if the target refuses it."""
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
    before = host.state
    return dataclasses.replace(
        host, state=dataclasses.replace(
            before, supply=allocation.release(
                instance.guest.demand, before.supply, instance.holding),
            free=before.free.plus(instance.guest.sums)),
        instances=tuple(other for other in host.instances
                        if other.id != instance.id))


def leave_all(instances: Iterable[state.Instance],
              host: state.FleetHost) -> state.FleetHost:
    """Remove several instances from their host."""
    return functools.reduce(lambda left, instance: leave(instance, left),
                            instances, host)


def release_cell(instance: state.Instance,
                 cell: supplies.CellSupply) -> supplies.CellSupply:
    """Compute what a cell has left without an instance on it."""
    held = instance.holding
    place = instance.cells.index(cell.id)
    return allocation.release_cell(
        instance.guest.demand.cells[place], cell,
        held.placement.pages_kib[place], held.cpus)


class InstanceKinds:
    """Numbers the kinds of instances.

    Instances of one kind fit on the same hosts, and take the same from them.
    """

    def __init__(self) -> None:
        self._kinds: dict[str, int] = {}
        self._numbers: dict[object, int] = {}

    def number(self, instance: state.Instance) -> int:
        """Return the number of the kind of an instance."""
        if instance.id not in self._kinds:
            guest = instance.guest
            kind = (
                # The tags of device requests cannot be hashed.
                id(guest) if guest.demand.requests else guest.demand,
                guest.sums, instance.holding.placement.pages_kib,
                instance.hosts, instance.group, only_cold(instance),
                instance.follows_placement)
            self._kinds[instance.id] = self._numbers.setdefault(
                kind, len(self._numbers))
        return self._kinds[instance.id]
