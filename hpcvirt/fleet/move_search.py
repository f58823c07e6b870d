# SPDX-License-Identifier: Apache-2.0

"""Find one or two moves after which a number of equal guests fit.

The search starts with the instances that must leave for the guests, and tries
the ways to move them. Equal instances that no other move touches are
interchangeable, so only a few of each kind are tried. Each plan is proven by
carrying it out.

The search finds all moves that make room by leaving. It does not consider that
a guest may fit because an instance arrives, as some of Nova's defects allow.
"""

import collections
import itertools
from collections.abc import Hashable
from collections.abc import Iterator

from hpcvirt.fit import admission
from hpcvirt.fit import guest as guests
from hpcvirt.fleet import freed_bound
from hpcvirt.fleet import move_ways
from hpcvirt.fleet import moving
from hpcvirt.fleet import state


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
        self._ways = move_ways.MoveWays(hosts, cold, self._is_new_opening)
        self._now = {host.name: len(admission.place_guests(
            guest, host.state, count)) for host in hosts}
        self._ways.aim(list(self._hosts), hosts, wanted=[
            name for name, number in self._now.items() if number])
        self._missing = count - sum(self._now.values())
        self._freed = {host.name: freed_bound.FreedHost(
            guest, host, self._now[host.name], count,
            list(filter(self._ways.may_leave, host.instances)))
            for host in hosts}
        # An instance that moves may take the room of a guest.
        self._may_lose = self._missing < count
        # All other moves touch fewer hosts than this number.
        self._alike = 2 * most + 1
        self._leaving: dict[tuple[str, int],
                            list[tuple[move_ways.Leavers, int]]] = {}
        self._known_sets: move_ways.Counts = {}
        self._gains: dict[tuple[str, tuple[str, ...]], int] = {}

    def find(self, number: int, most_cold: int) -> moving.MovePlan | None:
        """Find a plan with a number of moves.

        :param number: the number of moves; no smaller number is enough
        :param most_cold: the most cold migrations among them
        """
        if not number:
            return self._done((), self._hosts)
        for leaving in self._sets(number):
            for ordered in itertools.permutations(leaving):
                for moves, hosts in self._ways.find_all(
                        ordered, self._hosts, number):
                    if sum(move.cold for move in moves) > most_cold:
                        continue
                    found = self._done(moves, hosts)
                    if found is not None:
                        return found
        return None

    def _sets(self, number: int, gained: int = 0,
              after: str = '') -> Iterator[move_ways.Leavers]:
        """Yield sets of instances that leave for the missing guests.

        If a set has fewer instances than there may be moves, others may make
        room for its instances.

        :param number: the number of moves
        :param gained: the number of guests that fit after moves from hosts up
            to the one with the name ``after``
        """
        for freed in self._freed.values():
            if freed.name <= after:
                continue
            for size in range(number, 0, -1):
                others = number - size
                for chosen, gain in self._leaving_one(freed, size):
                    lands = all(map(self._lands, chosen))
                    is_enough = gained + gain >= self._missing
                    # A preceding move may make the rest of the room.
                    if others or (lands and is_enough):
                        yield chosen
                    if others and lands and (self._may_lose or not is_enough):
                        for more in self._sets(others, gained + gain,
                                               freed.name):
                            yield (*chosen, *more)

    def _leaving_one(self, freed: freed_bound.FreedHost,
                     size: int) -> list[tuple[move_ways.Leavers, int]]:
        """Find sets of instances without which a host takes more guests."""
        if (freed.name, size) not in self._leaving:
            found = []
            for chosen in freed.find_sets(size):
                gain = self._gain(freed.name, chosen)
                kinds = sorted(map(self._ways.kind, chosen))
                if gain and self._is_new(
                        self._known_sets, (freed.now, gain, *kinds),
                        freed.name):
                    found.append((chosen, gain))
            self._leaving[freed.name, size] = found
        return self._leaving[freed.name, size]

    def _is_new_opening(self, leavers: move_ways.Leavers, host: str,
                        tried: move_ways.Counts) -> bool:
        """Tell whether to try that instances leave a host for another."""
        # If one guest is missing, the host that takes it is known.
        gain = self._gain(host, leavers) if self._missing > 1 else 0
        kinds = tuple(map(self._ways.kind, leavers))
        return self._is_new(tried, (kinds, self._now[host] and host, gain),
                            host)

    def _gain(self, host: str, leavers: move_ways.Leavers) -> int:
        """Count how many more guests a host takes without instances."""
        key = host, tuple(one.id for one in leavers)
        if key not in self._gains:
            self._gains[key] = self._freed[host].gain(leavers)
        return self._gains[key]

    def _is_new(self, known: move_ways.Counts, key: Hashable,
                host: str) -> bool:
        """Count equal candidates, and tell whether to try this one."""
        counts = known.setdefault(key, collections.Counter())
        counts[host] += 1
        return max(counts[host], len(counts)) <= self._alike

    def _lands(self, instance: state.Instance) -> bool:
        """Whether another host has room for an instance."""
        return any(name != instance.host
                   for name in self._ways.targets(instance, self._hosts))

    def _done(self, moves: tuple[moving.Move, ...],
              hosts: move_ways.Hosts) -> moving.MovePlan | None:
        """Return the plan if all guests fit after the moves."""
        changed = [name for name in hosts
                   if hosts[name] is not self._hosts[name]]
        takes = dict(self._now) | {
            name: len(admission.place_guests(
                self._guest, hosts[name].state, self._count))
            for name in changed}
        if sum(takes.values()) < self._count:
            return None
        taking = [name for name in (*changed, *takes) if takes[name]]
        found: list[tuple[str, tuple[int, ...]]] = []
        for name in dict.fromkeys(taking):
            placed = admission.place_guests(self._guest, hosts[name].state,
                                            takes[name])
            found += [(name, each.cells) for each in placed]
        return moving.MovePlan(moves, tuple(found[:self._count]))
