# SPDX-License-Identifier: Apache-2.0

"""Find the fewest moves after which one or more guests fit.

If :mod:`hpcvirt.fleet.move_search` finds two moves, no single move is enough,
and if it finds none, there are none.

Room for several kinds of guests is made for one kind after another, the
largest first. Each kind gets the fewest moves after which all of its guests
fit, while the room for the kinds before it is kept. The total may exceed the
fewest moves for all kinds together, but every move is needed by its kind.

Before anybody asks, room is kept for the largest of the usual kinds, because
small guests find room anyway.
"""

import dataclasses
from collections.abc import Collection
from collections.abc import Sequence

from hpcvirt.fit import admission
from hpcvirt.fit import allocation
from hpcvirt.fit import demand as demands
from hpcvirt.fit import guest as guests
from hpcvirt.fleet import move_search
from hpcvirt.fleet import moving
from hpcvirt.fleet import state

#: A kind is usual if its requests have at least this share of the CPUs of all
#: requests.
USUAL_SHARE = 0.02
#: The number of usual kinds for which room is kept.
MAX_KINDS = 3


def search(guest: guests.Guest, hosts: tuple[state.FleetHost, ...],
           most: int, count: int = 1,
           cold: bool = False) -> moving.MovePlan | None:
    """Find a plan with the fewest moves.

    Cold migrations are the last resort: the plan has the fewest of them, and
    among such plans the fewest moves.

    :param most: the most moves, at most 2
    :param count: the number of guests that must fit together
    :param cold: whether instances may be migrated cold
    :returns: None if no plan has so few moves
    """
    for most_cold in range(most + 1 if cold else 1):
        moves = move_search.MoveSearch(guest, hosts, count, most,
                                       most_cold > 0)
        for number in range(most_cold, most + 1):
            plan = moves.find(number, most_cold)
            if plan is not None:
                return plan
    return None


@dataclasses.dataclass(frozen=True)
class RoomTarget:
    """The number of instances of a flavor for which room is kept."""

    guest: guests.Guest
    count: int


@dataclasses.dataclass(frozen=True)
class RoomPlan:
    """The moves for one kind of guests; ``plan`` is None if there are none."""

    target: RoomTarget
    plan: moving.MovePlan | None


def keep_room(targets: Sequence[RoomTarget],
              hosts: tuple[state.FleetHost, ...], most: int,
              cold: bool = False, together: bool = True) -> list[RoomPlan]:
    """Find the moves for each kind, in the order in which to make them.

    :param most: the most moves for one kind
    :param together: whether the guests of all kinds must fit at the same time
    """
    found = []
    by_name = {host.name: host for host in hosts}
    for target in sorted(targets, reverse=True, key=lambda target: (
            target.guest.cpus, target.guest.sums.memory_mib)):
        guest = target.guest
        plan = search(guest, tuple(by_name.values()), most,
                      target.count, cold)
        found.append(RoomPlan(target, plan))
        if plan is not None:
            for move in plan.moves:
                (instance,) = (
                    instance for instance in by_name[move.source].instances
                    if instance.id == move.id)
                moving.try_move(by_name, instance, move.target)
            for name, _ in plan.places if together else ():
                by_name[name] = _held(guest, by_name[name])
    return found


def _held(guest: guests.Guest, host: state.FleetHost) -> state.FleetHost:
    """Put a guest on a host, so that no other guest gets its room."""
    placed = admission.predict(guest, host.state)
    if not isinstance(placed, demands.CellAssignment):
        raise ValueError(f'{guest.name} does not fit as planned')
    return moving.arrive(state.Instance(
        f'room for {guest.name} {len(host.instances)}', '', host.name,
        guest, allocation.Holding(placed),
        stays='holds room'), host, placed)


def find_usual(flavors: Sequence[guests.Guest],
               requested: Sequence[float]) -> list[int]:
    """Find the largest kinds that are usually requested, the largest first.

    :param requested: how many instances of each flavor were requested
    :returns: the indexes of at most three flavors
    """
    cpus = [flavor.cpus * count
            for flavor, count in zip(flavors, requested, strict=True)]
    usual = [index for index, own in enumerate(cpus)
             if own and own >= USUAL_SHARE * sum(cpus)]
    return sorted(usual, key=lambda index: (
        flavors[index].cpus, flavors[index].sums.memory_mib),
        reverse=True)[:MAX_KINDS]


def exclude_projects(hosts: Sequence[state.FleetHost],
                     projects: Collection[str]) -> tuple[state.FleetHost, ...]:
    """Let the instances of some projects stay where they are."""
    return tuple(dataclasses.replace(host, instances=tuple(
        dataclasses.replace(instance, stays='is of an excluded project')
        if instance.project in projects else instance
        for instance in host.instances)) for host in hosts)


@dataclasses.dataclass(frozen=True)
class ReservePlan:
    """The plans for several kinds.

    :ivar found: the plan of each kind
    :ivar moves: the moves that may be made now
    :ivar waiting: the number of the other moves
    :ivar why: why they must wait; None if there are none
    """

    found: Sequence[RoomPlan]
    moves: tuple[moving.Move, ...]
    waiting: int
    why: str | None


def limit(found: Sequence[RoomPlan], most: int | None,
          why: str) -> ReservePlan:
    """Find the moves that may be made now; no plan is made in part.

    :param most: the most moves; None for any number
    :param why: why no more may be made
    """
    plans = [kept.plan.moves for kept in found if kept.plan]
    total = sum(map(len, plans))
    allowed: tuple[moving.Move, ...] = ()
    for moves in plans:
        if most is not None and len(allowed) + len(moves) > most:
            break
        allowed += moves
    waiting = total - len(allowed)
    return ReservePlan(found, allowed, waiting, why if waiting else None)
