# SPDX-License-Identifier: Apache-2.0

"""Plan how hosts are emptied, all at once or in waves.

A host of an earlier wave takes instances again. What stands in the way of an
empty host is named with the reason, and with changes that would help. Each
change was tried.
"""

import collections
import dataclasses
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.fit import reasons
from hpcvirt.fleet import admission
from hpcvirt.fleet import changes
from hpcvirt.fleet import drain_search
from hpcvirt.fleet import moving
from hpcvirt.fleet import state

#: How often it is tried to empty a host in a wave.
_MAX_MISSES = 3


@dataclasses.dataclass(frozen=True)
class Obstacle:
    """An instance that stays.

    :ivar helps: changes after which it could leave
    """

    instance: state.Instance
    reason: str
    helps: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Wave:
    """Hosts that are empty at the same time, and the moves for it."""

    hosts: tuple[str, ...]
    moves: tuple[moving.Move, ...]


@dataclasses.dataclass(frozen=True)
class DrainPlan:
    """The waves in their order, and what stands in the way of more.

    :ivar proven: whether no other plan is better; waves are never proven
    """

    waves: tuple[Wave, ...]
    obstacles: tuple[Obstacle, ...]
    proven: bool

    @property
    def moves(self) -> tuple[moving.Move, ...]:
        """The moves of all waves."""
        return tuple(move for wave in self.waves for move in wave.moves)


def plan(hosts: Sequence[state.FleetHost], names: Sequence[str],
         cold: bool = False, last: Sequence[str] = ()) -> DrainPlan:
    """Plan the moves away from hosts that are to be empty at the same time.

    :param cold: whether instances may be migrated cold
    :param last: hosts that take instances only if no others do
    """
    by_name = {host.name: host for host in hosts}
    found = drain_search.DrainSearch(hosts, cold).find(by_name, names, last)
    stay = {one.host for one in found.left}
    return DrainPlan(
        (Wave(tuple(name for name in names if name not in stay),
              found.moves),),
        _explain_all(found, by_name, names, None if cold else
                     drain_search.DrainSearch(hosts, True)), found.proven)


def plan_waves(hosts: Sequence[state.FleetHost], names: Sequence[str],
               size: int, cold: bool = False) -> DrainPlan:
    """Plan waves of hosts, those with the fewest instances first.

    Instances move to hosts that are still to be emptied only if there is no
    room on others.

    :param size: the number of hosts that are empty at the same time
    """
    now: Mapping[str, state.FleetHost] = {host.name: host for host in hosts}
    search = drain_search.DrainSearch(hosts, cold)
    pending = set(names)
    misses = collections.Counter[str]()
    waves: list[Wave] = []
    while True:
        done: tuple[str, ...] = ()
        moves: tuple[moving.Move, ...] = ()
        # Moves of others take long to find, and are seldom needed later.
        for others in (0, drain_search.MAX_OTHERS):
            for name in sorted(pending, key=lambda name: (
                    misses[name], len(now[name].instances),
                    names.index(name))):
                if len(done) == size or (others and done) or (
                        misses[name] == _MAX_MISSES):
                    break
                if name in done or any(moving.stays(one, cold)
                                       for one in now[name].instances):
                    continue
                found = search.find(now, (*done, name), pending, others, 0)
                if not found.left:
                    done, now = (*done, name), found.hosts
                    moves += found.moves
                elif others:
                    misses[name] += 1
        if not done:
            break
        pending.difference_update(done)
        waves.append(Wave(done, moves))
    with_cold = None if cold else drain_search.DrainSearch(hosts, True)
    left: list[Obstacle] = []
    for name in sorted(pending, key=names.index):
        left += _explain_all(search.find(now, (name,), tries=0), now,
                             (name,), with_cold)
    return DrainPlan(tuple(waves), tuple(left), False)


def leave_out(hosts: Sequence[state.FleetHost], cold: bool,
              failed: Mapping[str, Sequence[tuple[moving.Move, str]]],
              ) -> tuple[state.FleetHost, ...]:
    """Leave out the moves that failed before.

    After a live migration that failed, an instance may be migrated cold if
    that is allowed, or else to another host. After two, it stays.

    :param failed: the id of an instance -> its moves that failed, and why
    """
    names = frozenset(host.name for host in hosts)

    def change(one: state.Instance) -> state.Instance:
        moves = failed.get(one.id, ())
        if not moves or one.stays:
            return one
        move, why = moves[-1]
        if len(moves) > 1:
            return dataclasses.replace(one, stays=f'did not move: {why}')
        if cold and not move.cold:
            return dataclasses.replace(one, only_cold=f'did not move: {why}')
        return dataclasses.replace(
            one, hosts=(one.hosts or names) - {move.target})
    return tuple(dataclasses.replace(host, instances=tuple(
        map(change, host.instances))) for host in hosts)


def _explain_all(found: drain_search.Drain,
                 before: Mapping[str, state.FleetHost], names: Sequence[str],
                 with_cold: drain_search.DrainSearch | None,
                 ) -> tuple[Obstacle, ...]:
    """Explain each instance that is left.

    :param with_cold: a search that allows cold migrations, if they were not
    """
    if not found.left:
        return ()
    takers = [host for name, host in found.hosts.items() if name not in names]
    moves_cold = set()
    if with_cold is not None and any(
            moving.only_cold(one) for host in before.values()
            for one in host.instances):
        moves_cold = {one.id for one in found.left} - {
            one.id for one in with_cold.find(before, names, tries=0).left}
    return tuple(_explain(one, takers, before[one.host], with_cold is None,
                          one.id in moves_cold) for one in found.left)


def _explain(instance: state.Instance, takers: Sequence[state.FleetHost],
             home: state.FleetHost, cold: bool,
             moves_cold: bool) -> Obstacle:
    why = moving.stays(instance, True)
    if why is not None:
        return Obstacle(instance, why)
    helps = ['--cold'] if moves_cold else []
    if not cold and moving.only_cold(instance):
        return Obstacle(instance, f'{moving.only_cold(instance)}, so that it '
                        'cannot be live-migrated', tuple(helps))
    allowed = [host for host in takers if instance.hosts is None
               or host.name in instance.hosts]
    open_to = [host for host in allowed if moving.may_join(instance, host)]
    if not allowed:
        why = ('may move to no other host because of its aggregates, zone, '
               'traits or image')
    elif not open_to or any(moving.place(instance, host) for host in allowed):
        why = 'shares each host with room with members of its server group'
    else:
        most = max(open_to, key=lambda host: host.state.free)
        placed = admission.admit(instance.guest, most.state)
        why = f'no host has room; {most.name}: ' + (
            placed.message if isinstance(placed, reasons.Misfit)
            else 'a migration would not be placed soundly')
        smaller = changes.find_smaller(instance.guest, open_to)
        helps += [str(smaller)] if smaller else []
    bare = moving.leave_all(home.instances, home)
    if moving.place(instance, dataclasses.replace(
            bare, state=dataclasses.replace(bare.state, closed=None))):
        helps.append(f'an empty host like {home.name}')
    return Obstacle(instance, why, tuple(helps))
