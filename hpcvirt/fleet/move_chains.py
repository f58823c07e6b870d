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

"""Find chains of moves after which a number of guests fit.

Who has to leave for the guests decides a chain: each of them lands on a host
as it is, or on one that others leave before, who land somewhere in turn. Of
hosts and instances that are alike, and that no other move of the chain
touches, any will do, so that a few of each kind are tried. This finds any
chain of moves that make room by leaving; that a guest fits because another
instance comes is for :mod:`hpcvirt.fleet.move_candidates`.
"""

import collections
import itertools
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt.fit import placement as placements
from hpcvirt.fleet import admission
from hpcvirt.fleet import departures
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import landings
from hpcvirt.fleet import moving
from hpcvirt.fleet import state

#: Instances and the hosts to which they have to go, None for any.
_Todo = tuple[tuple[state.Instance, str | None], ...]
_Sets = list[tuple[tuple[state.Instance, ...], str]]


def places(guest: guests.Guest, host: state.FleetHost,
           most: int) -> list[placements.Placement]:
    """Place up to so many guests on a host, one after the other."""
    found: list[placements.Placement] = []
    left = host.state
    while len(found) < most:
        placed = admission.admit(guest, left, host.packing)
        if not isinstance(placed, placements.Placement):
            break
        found.append(placed)
        left = admission.take(guest, left, placed)
    return found


class Chains:
    """The chains of moves of one fleet for a number of equal guests."""

    def __init__(self, guest: guests.Guest,
                 hosts: tuple[state.FleetHost, ...], count: int,
                 most: int, cold: bool) -> None:
        """Look at a fleet.

        :param count: how many guests must fit at once
        :param most: the most moves of a chain
        :param cold: whether instances may be migrated cold
        """
        self._guest = guest
        self._hosts = {host.name: host for host in hosts}
        self._count = count
        self._landings = landings.Landings(hosts, cold)
        self._now = {host.name: len(places(guest, host, count))
                     for host in hosts}
        self._missing = count - sum(self._now.values())
        self._departures = {host.name: departures.Departures(
            guest, host, self._now[host.name], count,
            self._landings.movable[host.name]) for host in hosts}
        # Whoever lands on a host that takes guests may take their room.
        self._may_lose = self._missing < count
        # The other moves touch fewer hosts than these.
        self._alike = 2 * most + 1
        self._leaving: dict[int, list[tuple[tuple[state.Instance, ...], int,
                                            str]]] = {}
        self._known_openings: dict[tuple[int, int], _Sets] = {}

    def find(self, number: int, most_cold: int) -> moving.Plan | None:
        """Find a chain of so many moves, of which so many may be cold."""
        if not number:
            return self._done((), self._hosts)
        for size in range(1, number + 1):
            spare = number - size
            for leaving in self._sets(size, spare):
                for ordered in itertools.permutations(leaving):
                    found = self._carry(
                        tuple((one, None) for one in ordered), spare,
                        most_cold, (), self._hosts)
                    if found is not None:
                        return found
        return None

    def _sets(self, size: int, spare: int, gained: int = 0, after: str = '',
              ) -> Iterator[tuple[state.Instance, ...]]:
        """Yield sets of instances, of any hosts, for the missing guests."""
        for own in range(size, 0, -1):
            for chosen, gain, name in self._leaving_one(own):
                if name <= after or not all(
                        self._may_land(one, spare) for one in chosen):
                    continue
                if own == size:
                    # Those who make way may make the rest of the room.
                    if spare or gained + gain >= self._missing:
                        yield chosen
                elif self._may_lose or gained + gain < self._missing:
                    for others in self._sets(size - own, spare,
                                             gained + gain, name):
                        yield (*chosen, *others)

    def _may_land(self, instance: state.Instance, spare: int) -> bool:
        if spare == 1:
            return self._lands(instance) or bool(self._openings(instance, 1))
        return spare > 1 or self._lands(instance)

    def _leaving_one(self, size: int) -> list[
            tuple[tuple[state.Instance, ...], int, str]]:
        """Find sets of instances of one host after which it takes more."""
        if size not in self._leaving:
            known: collections.Counter[object] = collections.Counter()
            found = self._leaving[size] = []
            for host in self._hosts.values():
                now = self._now[host.name]
                for chosen in self._departures[host.name].of(size):
                    gain = self._gain(chosen, host)
                    key = now, gain, self._alike_as(chosen)
                    known[key] += 1
                    if gain > 0 and known[key] <= self._alike:
                        found.append((chosen, gain, host.name))
        return self._leaving[size]

    def _gain(self, gone: Sequence[state.Instance],
              host: state.FleetHost) -> int:
        """Count how many more guests a host takes without some instances."""
        if self._departures[host.name].bound(gone) <= self._now[host.name]:
            return 0
        taken = places(self._guest, _without(host, gone), self._count)
        return len(taken) - self._now[host.name]

    def _alike_as(self, chosen: Sequence[state.Instance]) -> object:
        return tuple(sorted(map(self._landings.kind, chosen)))

    def _lands(self, instance: state.Instance) -> bool:
        return any(name != instance.host
                   for name in self._landings.of(instance))

    def _carry(self, todo: _Todo, spare: int, most_cold: int,
               moves: tuple[moving.Move, ...],
               hosts: dict[str, state.FleetHost]) -> moving.Plan | None:
        """Make the first move, and the others after it.

        :param spare: how many other moves may make way for these
        """
        if sum(move.cold for move in moves) > most_cold:
            return None
        if not todo:
            return self._done(moves, hosts) or self._again(
                spare, most_cold, moves, hosts)
        (instance, wanted), rest = todo[0], todo[1:]
        for name in [wanted] if wanted else self._targets(instance, hosts):
            after = dict(hosts)
            move = moving.moved(after, instance, name)
            if move is not None:
                found = self._carry(rest, spare, most_cold, (*moves, move),
                                    after)
                if found is not None:
                    return found
        busy = {move.id for move in moves} | {one.id for one, _ in todo}
        for size in range(1, spare + 1) if wanted is None else ():
            for others, name in self._ways(instance, size, hosts):
                if name == instance.host or not busy.isdisjoint(
                        other.id for other in others):
                    continue
                for ordered in itertools.permutations(others):
                    way: _Todo = tuple((other, None) for other in ordered)
                    found = self._carry(
                        (*way, (instance, name), *rest), spare - size,
                        most_cold, moves, hosts)
                    # Where they land may depend on who has left before.
                    if found is None and moves:
                        found = self._carry(
                            (*way, *map(self._repeated, moves),
                             (instance, name), *rest), spare - size,
                            most_cold, (), self._hosts)
                    if found is not None:
                        return found
        return None

    def _repeated(self, move: moving.Move) -> tuple[state.Instance, str]:
        return next(one for one in self._landings.movable[move.source]
                    if one.id == move.id), move.target

    def _again(self, spare: int, most_cold: int,
               moves: tuple[moving.Move, ...],
               hosts: dict[str, state.FleetHost]) -> moving.Plan | None:
        """Let more instances leave hosts to which others have come."""
        names = ({move.source for move in moves}
                 & {move.target for move in moves})
        for name in sorted(names) if spare else ():
            host = hosts[name]
            looked_at = departures.Departures(
                self._guest, host,
                len(places(self._guest, host, self._count)), self._count,
                [one for one in host.instances if self._landings.knows(one)])
            for size in range(1, spare + 1):
                for leaving in looked_at.of(size):
                    for ordered in itertools.permutations(leaving):
                        found = self._carry(
                            tuple((one, None) for one in ordered),
                            spare - size, most_cold, moves, hosts)
                        if found is not None:
                            return found
        return None

    def _done(self, moves: tuple[moving.Move, ...],
              hosts: dict[str, state.FleetHost]) -> moving.Plan | None:
        changed = [name for name in hosts if self._changed(name, hosts)]
        takes = dict(self._now) | {
            name: len(places(self._guest, hosts[name], self._count))
            for name in changed}
        if sum(takes.values()) < self._count:
            return None
        taking = [name for name in (*changed, *takes) if takes[name]]
        found = [(name, placed.cells) for name in dict.fromkeys(taking)
                 for placed in places(self._guest, hosts[name], takes[name])]
        return moving.Plan(moves, tuple(found[:self._count]))

    def _changed(self, name: str, hosts: dict[str, state.FleetHost]) -> bool:
        return hosts[name] is not self._hosts[name]

    def _targets(self, instance: state.Instance,
                 hosts: dict[str, state.FleetHost]) -> Iterator[str]:
        """Yield hosts on which an instance may land now."""
        alike = 0
        for name in self._landings.of(instance):
            if name == instance.host or self._changed(name, hosts):
                continue
            alike += not self._now[name]
            if self._now[name] or alike <= self._alike:
                yield name
        for name in hosts:
            if name != instance.host and self._changed(name, hosts):
                yield name

    def _ways(self, instance: state.Instance, size: int,
              hosts: dict[str, state.FleetHost]) -> Iterator[
                  tuple[tuple[state.Instance, ...], str]]:
        """Yield who may leave a host so that an instance lands there now."""
        for others, name in self._openings(instance, size):
            if not self._changed(name, hosts):
                yield others, name
        for name, host in hosts.items():
            if self._changed(name, hosts):
                yield from self._openings_on(instance, size, host)

    def _openings(self, instance: state.Instance, size: int) -> _Sets:
        key = self._landings.kind(instance), size
        if key not in self._known_openings:
            known: collections.Counter[object] = collections.Counter()
            found = self._known_openings[key] = []
            landing = self._landings.of(instance)
            for host in self._hosts.values():
                if host.name in landing and not self._now[host.name]:
                    continue
                for others, name in self._openings_on(instance, size, host):
                    alike = (self._alike_as(others), self._now[name] and name,
                             self._missing > 1 and self._gain(others, host))
                    known[alike] += 1
                    if known[alike] <= self._alike:
                        found.append((others, name))
        return self._known_openings[key]

    def _openings_on(self, instance: state.Instance, size: int,
                     host: state.FleetHost) -> _Sets:
        if instance.hosts is not None and host.name not in instance.hosts:
            return []
        there = {other.id for other in host.instances}
        leavers = [other for other in self._landings.movable[host.name]
                   if other.id in there
                   and (size == 1 or self._lands(other))]
        looked_at = departures.Departures(instance.guest, host, 0, 1, leavers)
        # On a host that takes guests it also matters where it lands.
        sets = (looked_at.of(size) if moving.may_join(instance, host)
                and not self._now[host.name] else
                (others for others in itertools.combinations(leavers, size)
                 if moving.may_join(instance, host, others)
                 and looked_at.bound(others)))
        return [(others, host.name) for others in sets
                if moving.land(instance, _without(host, others)) is not None]


def _without(host: state.FleetHost,
             gone: Sequence[state.Instance]) -> state.FleetHost:
    for instance in gone:
        host = moving.leave(instance, host)
    return host
