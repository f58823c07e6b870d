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

"""Name the moves that may be enough to make room for a guest.

The question is on which host the guest will be, and what the moves do to that
host: instances leave it, or others come to it. A move that does neither lets
another instance land. If no single move is enough, every pair that is enough
is among the candidates, except for pairs that differ from a candidate only in
the target of an instance that lands there just as well.
"""

import itertools
from collections.abc import Iterator

from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import landings
from hpcvirt.fleet import moving
from hpcvirt.fleet import room
from hpcvirt.fleet import state

#: Instances with the names of the hosts to which they move.
Steps = tuple[tuple[state.Instance, str], ...]


def steps(guest: guests.Guest, hosts: tuple[state.FleetHost, ...],
          number: int, cold: bool) -> Iterator[Steps]:
    """Yield candidates.

    :param number: of moves, 0 to 2; no smaller number must be enough
    :param cold: whether instances may be migrated cold
    """
    if not number:
        yield ()
        return
    finder = _Finder(guest, hosts, cold)
    yield from finder.one() if number == 1 else finder.two()


class _Finder:

    def __init__(self, guest: guests.Guest,
                 hosts: tuple[state.FleetHost, ...], cold: bool) -> None:
        self._guest = guest
        self._hosts = hosts
        self._landings = landings.Landings(hosts, cold)
        self._movable = self._landings.movable
        self._kinds = self._landings.kinds
        self._rooms: dict[tuple[int, str], room.Room] = {}
        self._openings: dict[int, list[Steps]] = {}
        self._company: dict[int, bool] = {}
        self._own = {host.name: room.Room(guest, host) for host in hosts}

    def one(self) -> Iterator[Steps]:
        for host in self._hosts:
            own = self._own[host.name]
            for instance in self._movable[host.name]:
                target = next(self._targets(instance, host), None)
                if target is not None and own.without(instance):
                    yield ((instance, target),)
            if not own.counts_only and own.may_have():
                for instance in self._comers(host):
                    yield ((instance, host.name),)

    def two(self) -> Iterator[Steps]:
        for host in self._hosts:
            yield from self._both_leave(host)
            yield from self._one_leaves(host)
            if not self._own[host.name].counts_only:
                yield from self._one_comes(host)

    def _both_leave(self, host: state.FleetHost) -> Iterator[Steps]:
        own = self._own[host.name]
        lands = {instance.id: next(self._targets(instance, host), None)
                 is not None for instance in self._movable[host.name]}
        for pair in itertools.combinations(self._movable[host.name], 2):
            if not all(lands[one.id] or self._needs_company(one)
                       for one in pair) or not own.without(*pair):
                continue
            for first, second in (pair, pair[::-1]):
                others = tuple(self._targets(second, host))
                for target in self._targets(first, host):
                    other = next((name for name in others
                                  if name != target), None)
                    if other is not None:
                        yield (first, target), (second, other)
                        break
                    if target in others or not self._room(
                            second, target).counts_only:
                        yield (first, target), (second, target)

    def _needs_company(self, instance: state.Instance) -> bool:
        """Whether it may land only where another one has come before."""
        kind = self._landings.kind(instance)
        if kind not in self._company:
            self._company[kind] = not all(
                room.counts_only(instance.guest.demand, host.state)
                for host in self._hosts)
        return self._company[kind]

    def _one_leaves(self, host: state.FleetHost) -> Iterator[Steps]:
        """One leaves for a host that another leaves or comes to before."""
        own = self._own[host.name]
        for instance in self._movable[host.name]:
            if not own.without(instance):
                continue
            for ((other, where),) in self._openings_for(instance):
                if other.host == host.name or where == host.name:
                    continue
                if other.host != where:
                    # It comes, and lets the instance land next to it.
                    yield (other, where), (instance, where)
                    continue
                further = next((name for name in self._landings.of(other)
                                if name not in (where, host.name)), None)
                if further is not None:
                    yield (other, further), (instance, where)
                elif host.name in self._landings.of(other) and self._with(
                        host, other).without(instance):
                    yield (other, host.name), (instance, where)

    def _one_comes(self, host: state.FleetHost) -> Iterator[Steps]:
        """Moves after which a guest fits that more room may keep off."""
        own = self._own[host.name]
        comers = list(self._comers(host))
        for instance in self._movable[host.name]:
            if not own.may_have(instance):
                continue
            targets = tuple(self._targets(instance, host))
            if targets:
                yield (instance, targets[0]), (instance, host.name)
                for same in self._kinds:
                    other = next((one for one in same
                                  if one.host != host.name), None)
                    if other is not None:
                        yield (instance, targets[0]), (other, host.name)
            for other in comers if targets else ():
                yield (other, host.name), (instance, targets[0])
            for ((other, where),) in self._openings_for(instance):
                if (other.host == where != host.name
                        and host.name in self._landings.of(other)):
                    yield (other, host.name), (instance, where)
        if own.may_have():
            for same, others in itertools.product(self._kinds, repeat=2):
                pair = _two_of(same, others, host.name)
                if pair:
                    yield (pair[0], host.name), (pair[1], host.name)

    def _openings_for(self, instance: state.Instance) -> list[Steps]:
        """Find moves that may let an instance land on a host.

        :returns: who moves, and the host on which the instance lands then,
            which is the one that it leaves or the one to which it comes
        """
        kind = self._landings.kind(instance)
        if kind not in self._openings:
            found: list[Steps] = []
            for host in self._hosts:
                there = self._room(instance, host.name)
                joins = moving.may_join(instance, host)
                found += [((other, host.name),)
                          for other in self._movable[host.name]
                          if moving.may_join(instance, host, (other,))
                          and there.without(other)]
                if joins and not there.counts_only and there.may_have():
                    found += [((other, host.name),)
                              for other in self._comers(host)]
            self._openings[kind] = found
        return self._openings[kind]

    def _comers(self, host: state.FleetHost) -> Iterator[state.Instance]:
        """Yield one instance of each kind that another host can send."""
        for same in self._kinds:
            if host.name in self._landings.of(same[0]):
                yield from itertools.islice(
                    (one for one in same if one.host != host.name), 2)

    def _targets(self, instance: state.Instance,
                 host: state.FleetHost) -> Iterator[str]:
        """Yield the hosts to which an instance can move from its host."""
        return (name for name in self._landings.of(instance)
                if name != host.name)

    def _room(self, instance: state.Instance, name: str) -> room.Room:
        """Return the room of a host for an instance."""
        key = self._landings.size(instance), name
        if key not in self._rooms:
            host = next(host for host in self._hosts if host.name == name)
            self._rooms[key] = room.Room(instance.guest, host)
        return self._rooms[key]

    def _with(self, host: state.FleetHost,
              other: state.Instance) -> room.Room:
        """Return the room for the guest once another instance has come."""
        placed = moving.place(other, host)
        return room.Room(self._guest, moving.arrive(other, host, placed)
                         if placed else host)


def _two_of(same: list[state.Instance], others: list[state.Instance],
            name: str) -> tuple[state.Instance, state.Instance] | None:
    """Choose an instance of each kind that is not on a host."""
    for first in same:
        if first.host == name:
            continue
        for second in others:
            if second.host != name and second is not first:
                return first, second
    return None
