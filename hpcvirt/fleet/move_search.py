# SPDX-License-Identifier: Apache-2.0

"""Find one or two moves after which a number of equal guests fit.

The search starts with the instances that must leave for the guests. Each moves
to a host with room, or to a host that another instance leaves first. Equal
hosts and instances that no other move touches are interchangeable, so only a
few of each kind are tried. Each plan is proven by carrying it out.

The search finds all moves that make room by leaving. It does not consider that
a guest may fit because an instance arrives, as some of Nova's defects allow.
"""

import collections
import itertools
from collections.abc import Iterator

from hpcvirt.fit import admission
from hpcvirt.fit import guest as guests
from hpcvirt.fleet import freed_bound
from hpcvirt.fleet import moving
from hpcvirt.fleet import state

#: Instances and their targets; None for any host.
_Todo = tuple[tuple[state.Instance, str | None], ...]


class MoveSearch:
    """Searches the moves in a fleet for a number of equal guests."""

    def __init__(self, guest: guests.Guest,
                 hosts: tuple[state.FleetHost, ...], count: int,
                 most: int, cold: bool) -> None:
        """Count the guests that fit now, and find instances that may move.

        :param count: the number of guests that must fit together
        :param most: the most moves, at most 2
        :param cold: whether instances may be migrated cold
        """
        self._guest = guest
        self._hosts = {host.name: host for host in hosts}
        self._count = count
        self._move_targets = moving.MoveTargets(hosts, cold)
        self._now = {host.name: len(admission.place_guests(
            guest, host.state, count)) for host in hosts}
        self._missing = count - sum(self._now.values())
        self._freed = [freed_bound.FreedHost(
            guest, host, self._now[host.name], count,
            self._move_targets.movable[host.name]) for host in hosts]
        # An instance that moves may take the room of a guest.
        self._may_lose = self._missing < count
        # All other moves touch fewer hosts than this number.
        self._alike = 2 * most + 1
        self._leaving: dict[tuple[str, int], list[tuple[
            tuple[state.Instance, ...], int]]] = {}
        self._known_sets: dict[object, collections.Counter[str]] = {}
        self._known_openings: dict[
            int, list[tuple[state.Instance, str]]] = {}

    def find(self, number: int, most_cold: int) -> moving.MovePlan | None:
        """Find a plan with a number of moves.

        :param number: the number of moves; no smaller number is enough
        :param most_cold: the most cold migrations among them
        """
        if not number:
            return self._done((), self._hosts)
        for leaving, spare in self._sets(number):
            for ordered in itertools.permutations(leaving):
                found = self._carry(
                    tuple((one, None) for one in ordered), spare,
                    most_cold, (), self._hosts)
                if found is not None:
                    return found
        return None

    def _sets(self, number: int, gained: int = 0, after: str = '',
              ) -> Iterator[tuple[tuple[state.Instance, ...], int]]:
        """Yield sets of instances that leave for the missing guests.

        :param number: the number of moves
        :returns: each set with the number of moves that may precede it, to
            make room for its instances
        """
        for freed in self._freed:
            for own in range(number, 0, -1) if freed.name > after else ():
                spare = number - own
                for chosen, gain in self._leaving_one(freed, own):
                    lands = all(map(self._lands, chosen))
                    # A preceding move may make the rest of the room.
                    if (all(map(self._openings, chosen)) if spare else
                            lands and gained + gain >= self._missing):
                        yield chosen, spare
                    if spare and lands and (
                            self._may_lose or gained + gain < self._missing):
                        for others, left in self._sets(
                                spare, gained + gain, freed.name):
                            yield (*chosen, *others), left

    def _leaving_one(self, freed: freed_bound.FreedHost, size: int,
                     ) -> list[tuple[tuple[state.Instance, ...], int]]:
        """Find sets of instances without which a host takes more guests."""
        if (freed.name, size) not in self._leaving:
            self._leaving[freed.name, size] = [
                (chosen, gain) for chosen in freed.find_sets(size)
                for gain in [freed.gain(chosen)]
                if gain and self._is_new(
                    self._known_sets, (freed.now, gain, *sorted(map(
                        self._move_targets.kind, chosen))), freed.name)]
        return self._leaving[freed.name, size]

    def _is_new(self, known: dict[object, collections.Counter[str]],
                key: object, host: str) -> bool:
        """Count equal candidates, and tell whether to try this one."""
        counts = known.setdefault(key, collections.Counter())
        counts[host] += 1
        return max(counts[host], len(counts)) <= self._alike

    def _lands(self, instance: state.Instance) -> bool:
        return any(name != instance.host
                   for name in self._move_targets.find(instance))

    def _carry(self, todo: _Todo, spare: int, most_cold: int,
               moves: tuple[moving.Move, ...],
               hosts: dict[str, state.FleetHost]) -> moving.MovePlan | None:
        """Make the first move, and then the others.

        :param spare: the number of moves that may precede the first one, to
            make room for it
        """
        if sum(move.cold for move in moves) > most_cold:
            return None
        if not todo:
            return self._done(moves, hosts)
        (instance, wanted), *rest = todo
        if spare:
            tries = (self._carry(((other, None), (instance, name)), 0,
                                 most_cold, moves, hosts)
                     for other, name in self._openings(instance)
                     if name != instance.host)
            return next(filter(None, tries), None)
        # The host that the next instance leaves is tried last.
        last = rest[0][0].host if rest else None
        for name in [wanted] if wanted else sorted(
                self._targets(instance, hosts), key=lambda name: name == last):
            after = dict(hosts)
            move = moving.try_move(after, instance, name)
            if move is not None:
                found = self._carry(tuple(rest), 0, most_cold, (*moves, move),
                                    after)
                if found is not None:
                    return found
        return None

    def _done(self, moves: tuple[moving.Move, ...],
              hosts: dict[str, state.FleetHost]) -> moving.MovePlan | None:
        changed = [name for name in hosts if self._changed(name, hosts)]
        takes = dict(self._now) | {
            name: len(admission.place_guests(
                self._guest, hosts[name].state, self._count))
            for name in changed}
        if sum(takes.values()) < self._count:
            return None
        taking = [name for name in (*changed, *takes) if takes[name]]
        found = [(name, placed.cells) for name in dict.fromkeys(taking)
                 for placed in admission.place_guests(
                     self._guest, hosts[name].state, takes[name])]
        return moving.MovePlan(moves, tuple(found[:self._count]))

    def _changed(self, name: str, hosts: dict[str, state.FleetHost]) -> bool:
        return hosts[name] is not self._hosts[name]

    def _targets(self, instance: state.Instance,
                 hosts: dict[str, state.FleetHost]) -> Iterator[str]:
        """Yield hosts to which an instance may move now."""
        alike = 0
        for name in self._move_targets.find(instance):
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
        """Find instances that may leave a host to make room for another.

        :returns: each with the name of its host
        """
        kind = self._move_targets.kind(instance)
        if kind not in self._known_openings:
            known: dict[object, collections.Counter[str]] = {}
            targets = self._move_targets.find(instance)
            self._known_openings[kind] = [
                (other, freed.name) for freed in self._freed
                if not (freed.name in targets and not freed.now)
                for other in self._openings_on(
                    instance, self._hosts[freed.name])
                if self._is_new(
                    known, (self._move_targets.kind(other),
                            freed.now and freed.name,
                            self._missing > 1 and freed.gain((other,))),
                    freed.name)]
        return self._known_openings[kind]

    def _openings_on(self, instance: state.Instance,
                     host: state.FleetHost) -> list[state.Instance]:
        if instance.hosts is not None and host.name not in instance.hosts:
            return []
        leavers = self._move_targets.movable[host.name]
        freed = freed_bound.FreedHost(instance.guest, host, 0, 1, leavers)
        return [other for other in leavers
                if moving.may_join(instance, host, (other,))
                and freed.bound((other,)) and moving.land(
                    instance, moving.leave_all((other,), host)) is not None]
