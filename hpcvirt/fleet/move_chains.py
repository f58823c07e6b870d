# SPDX-License-Identifier: Apache-2.0

"""Find one or two moves after which several guests fit.

Who has to leave for the guests decides: each of them lands on a host as it is,
or on one that another instance leaves before. Of hosts and instances that are
alike, and that no other move touches, any will do, so that a few of each kind
are tried. This finds any moves that make room by leaving; that a guest fits
because another instance comes is for :mod:`hpcvirt.fleet.move_candidates`.
"""

import collections
import itertools
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt.fit import cell_assignment as cell_assignments
from hpcvirt.fleet import admission
from hpcvirt.fleet import freed_bound
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import moving
from hpcvirt.fleet import state

#: Instances and the hosts to which they have to go, None for any.
_Todo = tuple[tuple[state.Instance, str | None], ...]


def place_guests(guest: guests.Guest, host: state.FleetHost,
                 most: int) -> list[cell_assignments.CellAssignment]:
    """Place at most this number of guests on a host, one after the other."""
    found: list[cell_assignments.CellAssignment] = []
    left = host.state
    while len(found) < most:
        placed = admission.admit(guest, left)
        if not isinstance(placed, cell_assignments.CellAssignment):
            break
        found.append(placed)
        left = admission.take(guest, left, placed)
    return found


class Chains:
    """The moves in one fleet for a number of equal guests."""

    def __init__(self, guest: guests.Guest,
                 hosts: tuple[state.FleetHost, ...], count: int,
                 most: int, cold: bool) -> None:
        """Look at a fleet.

        :param count: how many guests must fit at once
        :param most: the most moves, at most 2
        :param cold: whether instances may be migrated cold
        """
        self._guest = guest
        self._hosts = {host.name: host for host in hosts}
        self._count = count
        self._landings = moving.MoveTargets(hosts, cold)
        self._now = {host.name: len(place_guests(guest, host, count))
                     for host in hosts}
        self._missing = count - sum(self._now.values())
        self._departures = {host.name: freed_bound.FreedBound(
            guest, host, self._now[host.name], count,
            self._landings.movable[host.name]) for host in hosts}
        # An instance that moves to a host that takes guests may take their
        # room.
        self._may_lose = self._missing < count
        # The other moves touch fewer hosts than these.
        self._alike = 2 * most + 1
        self._leaving: dict[int, list[tuple[tuple[state.Instance, ...], int,
                                            str]]] = {}
        self._known_openings: dict[
            int, list[tuple[state.Instance, str]]] = {}

    def find(self, number: int, most_cold: int) -> moving.MovePlan | None:
        """Find a plan of this number of moves, with few enough cold ones."""
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
        return self._lands(instance) or (
            spare > 0 and bool(self._openings(instance)))

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
        taken = place_guests(self._guest, _without(host, gone), self._count)
        return len(taken) - self._now[host.name]

    def _alike_as(self, chosen: Sequence[state.Instance]) -> object:
        return tuple(sorted(map(self._landings.kind, chosen)))

    def _lands(self, instance: state.Instance) -> bool:
        return any(name != instance.host
                   for name in self._landings.of(instance))

    def _carry(self, todo: _Todo, spare: int, most_cold: int,
               moves: tuple[moving.Move, ...],
               hosts: dict[str, state.FleetHost]) -> moving.MovePlan | None:
        """Make the first move, and the others after it.

        :param spare: how many other moves may make way for the first one
        """
        if sum(move.cold for move in moves) > most_cold:
            return None
        if not todo:
            return self._done(moves, hosts)
        (instance, wanted), rest = todo[0], todo[1:]
        for name in [wanted] if wanted else self._targets(instance, hosts):
            after = dict(hosts)
            move = moving.try_move(after, instance, name)
            if move is not None:
                found = self._carry(rest, 0, most_cold, (*moves, move), after)
                if found is not None:
                    return found
        for other, name in self._openings(instance) if spare else ():
            if name != instance.host:
                found = self._carry(((other, None), (instance, name)), 0,
                                    most_cold, moves, hosts)
                if found is not None:
                    return found
        return None

    def _done(self, moves: tuple[moving.Move, ...],
              hosts: dict[str, state.FleetHost]) -> moving.MovePlan | None:
        changed = [name for name in hosts if self._changed(name, hosts)]
        takes = dict(self._now) | {
            name: len(place_guests(self._guest, hosts[name], self._count))
            for name in changed}
        if sum(takes.values()) < self._count:
            return None
        taking = [name for name in (*changed, *takes) if takes[name]]
        found = [(name, placed.cells) for name in dict.fromkeys(taking)
                 for placed
                 in place_guests(self._guest, hosts[name], takes[name])]
        return moving.MovePlan(moves, tuple(found[:self._count]))

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

    def _openings(self, instance: state.Instance,
                  ) -> list[tuple[state.Instance, str]]:
        """Find who may leave a host so that an instance lands there."""
        kind = self._landings.kind(instance)
        if kind not in self._known_openings:
            known: collections.Counter[object] = collections.Counter()
            found = self._known_openings[kind] = []
            landing = self._landings.of(instance)
            for host in self._hosts.values():
                if host.name in landing and not self._now[host.name]:
                    continue
                for other in self._openings_on(instance, host):
                    alike = (self._landings.kind(other),
                             self._now[host.name] and host.name,
                             self._missing > 1 and self._gain((other,), host))
                    known[alike] += 1
                    if known[alike] <= self._alike:
                        found.append((other, host.name))
        return self._known_openings[kind]

    def _openings_on(self, instance: state.Instance,
                     host: state.FleetHost) -> list[state.Instance]:
        if instance.hosts is not None and host.name not in instance.hosts:
            return []
        leavers = self._landings.movable[host.name]
        looked_at = freed_bound.FreedBound(instance.guest, host, 0, 1, leavers)
        # On a host that takes guests it also matters where it lands.
        sets = (looked_at.of(1) if moving.may_join(instance, host)
                and not self._now[host.name] else
                ((other,) for other in leavers
                 if moving.may_join(instance, host, (other,))
                 and looked_at.bound((other,))))
        return [other for other, in sets
                if moving.land(instance, _without(host, (other,))) is not None]


def _without(host: state.FleetHost,
             gone: Sequence[state.Instance]) -> state.FleetHost:
    for instance in gone:
        host = moving.leave(instance, host)
    return host
