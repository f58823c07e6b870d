# SPDX-License-Identifier: Apache-2.0

"""Plan how hosts are emptied, all at once or in waves.

A host of an earlier wave takes instances again. What stands in the way of an
empty host is named with the reason, and with changes that would help. Each
change was tried.
"""

import dataclasses
import itertools
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.fit import admission
from hpcvirt.fit import reasons
from hpcvirt.fleet import drain_search
from hpcvirt.fleet import moving
from hpcvirt.fleet import state


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
        return tuple(itertools.chain.from_iterable(
            wave.moves for wave in self.waves))


def plan(hosts: Sequence[state.FleetHost], names: Sequence[str],
         cold: bool = False, last: Sequence[str] = ()) -> DrainPlan:
    """Plan the moves away from hosts that are to be empty at the same time.

    :param cold: whether instances may be migrated cold
    :param last: hosts that take instances only if no others do
    """
    found = drain_search.DrainSearch(hosts, cold).find(
        {host.name: host for host in hosts}, names, last)
    stay = {one.host for one in found.left}
    return DrainPlan(
        (Wave(tuple(name for name in names if name not in stay),
              found.moves),),
        tuple(_explain(one, found.hosts, names, cold) for one in found.left),
        found.proven)


def plan_waves(hosts: Sequence[state.FleetHost], names: Sequence[str],
               size: int, cold: bool = False) -> DrainPlan:
    """Plan waves of hosts, those with the fewest instances first.

    Instances move to hosts that are still to be emptied only if there is no
    room on others.

    :param size: the number of hosts that are empty at the same time
    """
    now: Mapping[str, state.FleetHost] = {host.name: host for host in hosts}
    search = drain_search.DrainSearch(hosts, cold)
    pending = [name for name in names if not any(
        moving.stays(one, cold) for one in now[name].instances)]
    waves: list[Wave] = []
    while pending:
        done: tuple[str, ...] = ()
        moves: tuple[moving.Move, ...] = ()
        # Moves of others take long to find, and are seldom needed later.
        for others in (0, drain_search.MAX_OTHERS):
            for name in sorted(pending, key=lambda name: len(
                    now[name].instances)):
                if len(done) == size or (others and done):
                    break
                found = search.find(now, (*done, name), pending, others, 0)
                if not found.left:
                    done, now = (*done, name), found.hosts
                    moves += found.moves
                elif others:
                    pending.remove(name)
        pending = [name for name in pending if name not in done]
        waves += [Wave(done, moves)] if done else []
    left: list[Obstacle] = []
    emptied = set(itertools.chain.from_iterable(
        wave.hosts for wave in waves))
    for name in (name for name in names if name not in emptied):
        found = search.find(now, (name,), tries=0)
        left += [_explain(one, found.hosts, (name,), cold)
                 for one in found.left]
        if not found.left:
            # Later waves have made room for its instances.
            now = found.hosts
            waves.append(Wave((name,), found.moves))
    return DrainPlan(tuple(waves), tuple(left), False)


def plan_again(hosts: Sequence[state.FleetHost], names: Sequence[str],
               cold: bool, last: Sequence[str],
               made: Sequence[moving.MoveAttempt]) -> DrainPlan:
    """Plan what is left, without the moves that failed before.

    After a live migration that failed, an instance may be migrated cold if
    that is allowed, or else to another host. After two, it stays.

    :param made: the moves that were begun before; see also :func:`plan`
    """
    known = frozenset(host.name for host in hosts)
    failed: dict[str, list[moving.MoveAttempt]] = {}
    for attempt in made:
        if attempt.failure is not None:
            failed.setdefault(attempt.move.id, []).append(attempt)

    def change(one: state.Instance) -> state.Instance:
        own = failed.get(one.id)
        if not own or one.stays:
            return one
        move, why = own[-1].move, f'did not move: {own[-1].failure}'
        if len(own) > 1:
            return dataclasses.replace(one, stays=why)
        if cold and not move.cold:
            return dataclasses.replace(one, only_cold=why)
        return dataclasses.replace(
            one, hosts=(one.hosts or known) - {move.target})
    found = plan([dataclasses.replace(host, instances=tuple(
        map(change, host.instances))) for host in hosts], names, cold, last)

    def describe(one: Obstacle) -> Obstacle:
        own = failed.get(one.instance.id, ())
        if len(own) != 1 or one.instance.stays:
            return one
        return dataclasses.replace(
            one, reason=f'did not move to {own[0].move.target}: '
            f'{own[0].failure}; now: {one.reason}')
    return dataclasses.replace(
        found, obstacles=tuple(map(describe, found.obstacles)))


def _explain(instance: state.Instance, hosts: Mapping[str, state.FleetHost],
             names: Sequence[str], cold: bool) -> Obstacle:
    """Say why an instance is left.

    :param hosts: the hosts after the moves
    :param names: those that were to be empty
    """
    why = moving.stays(instance, True)
    if why is not None:
        return Obstacle(instance, why)
    takers = [host for name, host in hosts.items() if name not in names]
    if not cold and moving.only_cold(instance):
        return Obstacle(
            instance, f'{moving.only_cold(instance)}, so that it cannot be '
            'live-migrated', ('--cold',) if any(
                moving.land(instance, host) for host in takers) else ())
    home = hosts[instance.host]
    bare = moving.leave_all(home.instances, home)
    opened = dataclasses.replace(
        bare, state=dataclasses.replace(bare.state, closed=None))
    return Obstacle(
        instance, _explain_hosts(instance, hosts, names),
        (f'an empty host like {home.name}',)
        if moving.place(instance, opened) else ())


def _explain_hosts(instance: state.Instance,
                   hosts: Mapping[str, state.FleetHost],
                   names: Sequence[str]) -> str:
    """Say why no other host takes an instance that could be moved."""
    others = [host for name, host in hosts.items() if name != instance.host
              and (instance.hosts is None or name in instance.hosts)]
    allowed = [host for host in others if host.name not in names]
    if not allowed:
        if others:
            return 'may move only to hosts that are to be emptied too'
        return ('may move to no other host because of its aggregates, zone, '
                'traits or image')
    open_to = [host for host in allowed if moving.may_join(instance, host)]
    if not open_to or any(moving.place(instance, host) for host in allowed):
        return 'shares each host with room with members of its server group'
    most = max(open_to, key=lambda host: host.state.free)
    placed = admission.predict(instance.guest, most.state)
    why = 'a migration would not be placed soundly'
    if isinstance(placed, reasons.Misfit):
        why = placed.message
    return f'no host has room; {most.name}: {why}'
