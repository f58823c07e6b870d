# SPDX-License-Identifier: Apache-2.0

"""Decide for which instances room is kept, and which moves are made for it.

Room is kept for the largest of the usual kinds, because small instances find
room anyway. Moves for instances that nobody has requested yet can wait.
"""

import dataclasses
from collections.abc import Collection
from collections.abc import Sequence

from hpcvirt.fleet import make_room
from hpcvirt.fleet import moving
from hpcvirt.fleet import state
from hpcvirt.model import flavor as flavor_model

#: A kind is usual if its requests have at least this share of the CPUs of all
#: requests.
USUAL_SHARE = 0.02
#: The number of kinds for which room is kept.
MAX_KINDS = 3


def find_usual(flavors: Sequence[flavor_model.Flavor],
               requested: Sequence[float]) -> list[int]:
    """Find the largest kinds that are usually requested, the largest first.

    :param requested: how many instances of each flavor were requested
    :returns: the indexes of at most three flavors
    """
    cpus = [flavor.vcpus * count
            for flavor, count in zip(flavors, requested, strict=True)]
    usual = [index for index, own in enumerate(cpus)
             if own and own >= USUAL_SHARE * sum(cpus)]
    return sorted(usual, key=lambda index: (
        flavors[index].vcpus, flavors[index].ram_mib),
        reverse=True)[:MAX_KINDS]


def exclude_projects(hosts: Sequence[state.FleetHost],
                     projects: Collection[str]) -> tuple[state.FleetHost, ...]:
    """Let the instances of some projects stay where they are."""
    return tuple(dataclasses.replace(host, instances=tuple(
        dataclasses.replace(instance, stays='is of an excluded project')
        if instance.project in projects else instance
        for instance in host.instances)) for host in hosts)


@dataclasses.dataclass(frozen=True)
class StandingPlan:
    """The plans of a pass.

    :ivar found: the plan of each kind
    :ivar moves: the moves that may be made now
    :ivar waiting: the number of the other moves
    :ivar why: why they must wait; None if there are none
    """

    found: Sequence[make_room.Kept]
    moves: tuple[moving.Move, ...]
    waiting: int
    why: str | None


def limit(found: Sequence[make_room.Kept], most: int | None,
          why: str) -> StandingPlan:
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
    return StandingPlan(found, allowed, waiting, why if waiting else None)
