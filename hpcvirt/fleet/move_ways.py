# SPDX-License-Identifier: Apache-2.0

"""Find the ways to move instances to other hosts.

An instance moves to a host with room, or to a host that other instances leave
first; these move in the same way. :mod:`hpcvirt.fleet.move_search` looks among
the ways for those after which guests fit, and
:mod:`hpcvirt.fleet.drain_search` for those after which hosts are empty.

For example, instance A fits on host 2 after B has left it, and B fits on host
3. With at most one other move, the only way to move A is ``(B to 3, A to 2)``;
with none, there is no way.

What was found out about a host is remembered, and a move makes new hosts of
its source and its target only. Interchangeable hosts are tried once.
"""

import collections
import itertools
import math
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Hashable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import TypeVar

from hpcvirt.fit import placement
from hpcvirt.fleet import freed_bound
from hpcvirt.fleet import moving
from hpcvirt.fleet import state

#: The most lists of targets that are remembered.
_MAX_LISTS = 500

#: The hosts of a fleet by their names.
Hosts = Mapping[str, state.FleetHost]
#: Moves in their order, and the hosts after them.
Way = tuple[tuple[moving.Move, ...], Hosts]
#: Instances that leave, in their order.
Leavers = tuple[state.Instance, ...]
#: For each kind of candidates, how often a host was tried.
Counts = dict[Hashable, collections.Counter[str]]
T = TypeVar('T')


class MoveWays:
    """Finds the ways to move the instances of a fleet.

    :ivar tries: the number of moves that were tried
    :ivar limit: the number of tries at which no further way is found
    """

    def __init__(self, hosts: Sequence[state.FleetHost], cold: bool,
                 is_new: Callable[[Leavers, str, Counts], bool] | None = None,
                 ) -> None:
        """Prepare the search.

        :param cold: whether instances may be migrated cold
        :param is_new: tells whether to try that instances leave a host for
            another instance, and counts what was tried for that one; None to
            try all
        """
        self.tries = 0
        self.limit = math.inf
        self._cold = cold
        self._is_new = is_new
        self._kinds = moving.InstanceKinds()
        self._zones: set[frozenset[str] | None] = set()
        for host in hosts:
            self._zones.update(one.hosts for one in host.instances)
        self._memo: dict[tuple[Hashable, int],
                         tuple[state.FleetHost, Any]] = {}
        self._numbers: dict[object, int] = {}
        self._lists: dict[tuple[int, int], tuple[Hosts, list[str]]] = {}
        self.aim([host.name for host in hosts], hosts)

    def aim(self, takers: Sequence[str], hosts: Collection[state.FleetHost],
            last: Collection[str] = (),
            wanted: Collection[str] = ()) -> None:
        """Choose the hosts that take instances.

        :param hosts: the hosts from which the moves begin; what is known of
            others is forgotten
        :param last: hosts that take instances only if no others do
        :param wanted: hosts whose room is wanted, so that an instance may
            leave them for one that joins although they have room
        """
        known = set(map(id, hosts))
        self._memo = {key: found for key, found in self._memo.items()
                      if key[1] in known}
        self._lists.clear()
        self.takers = takers
        self._last = last
        self._wanted = wanted

    def may_leave(self, instance: state.Instance) -> bool:
        """Whether an instance may leave its host."""
        return moving.stays(instance, self._cold) is None

    def kind(self, instance: state.Instance) -> int:
        """Number the kind of an instance, which determines its targets."""
        return self._kinds.number(instance)

    def number(self, host: state.FleetHost) -> int:
        """Number a host, so that interchangeable hosts have one number."""
        return self.remember('number', host, self._describe)

    def _describe(self, host: state.FleetHost) -> int:
        zones = frozenset(zone for zone in self._zones
                          if zone and host.name in zone)
        instances = sorted((self.kind(one), one.cells, one.stays or '',
                            one.holding.devices) for one in host.instances)
        return self._numbers.setdefault(
            (placement.describe(host.state), host.name in self._last, zones,
             tuple(instances)), len(self._numbers))

    def find(self, instance: state.Instance, hosts: Hosts, others: int,
             apart: Collection[str] = ()) -> Iterator[Way]:
        """Yield the ways to move an instance, those without others first.

        :param others: the most moves of others that may precede its own
        :param apart: hosts that are not interchangeable with any other,
            because an instance leaves or joins them later
        """
        tried: Counts = {}
        with_room: set[int | str] = set()
        for most in sorted({0, others}):
            known = set(with_room)
            self.tries += len(self.takers) // 10 if most else 0
            names = self.takers if most else self.targets(instance, hosts)
            for name in names:
                alike = name if name in apart else self.number(hosts[name])
                if name == instance.host or alike in known:
                    continue
                known.add(alike)
                if name not in self._wanted:
                    with_room.add(alike)
                touched = {*apart, instance.host, name}
                for leavers in self.openings(instance, hosts[name], most):
                    if self._is_new and leavers and not self._is_new(
                            leavers, name, tried):
                        continue
                    for moves, after in self.find_all(
                            leavers, hosts, most, touched):
                        self.tries += 1
                        if self.tries > self.limit:
                            return
                        now = dict(after)
                        move = moving.try_move(now, instance, name)
                        if move is not None:
                            yield (*moves, move), now

    def find_all(self, leavers: Leavers, hosts: Hosts, most: int,
                 apart: Collection[str] = ()) -> Iterator[Way]:
        """Yield the ways to move instances one after the other.

        :param most: the most moves, with those of others
        """
        if not leavers:
            yield (), hosts
            return
        first, *rest = leavers
        left_later = {*apart, *(one.host for one in rest)}
        for moves, after in self.find(first, hosts, most - len(leavers),
                                      left_later):
            for more, then in self.find_all(tuple(rest), after,
                                            most - len(moves), apart):
                yield (*moves, *more), then

    def targets(self, instance: state.Instance, hosts: Hosts) -> list[str]:
        """Find the hosts with room, the one that fits best first."""
        key = self.kind(instance), id(hosts)
        if key not in self._lists:
            if len(self._lists) > _MAX_LISTS:
                self._lists.clear()
            ranks = []
            for name in self.takers:
                if moving.may_join(instance, hosts[name]):
                    rank = self._rank(instance, hosts[name])
                    if rank is not None:
                        ranks.append((name in self._last, rank, name))
            # The hosts are kept, so that no others get their id.
            self._lists[key] = hosts, [name for *_, name in sorted(ranks)]
        return self._lists[key][1]

    def _rank(self, instance: state.Instance,
              host: state.FleetHost) -> tuple[int, ...] | None:
        """Count what its cells have free; None if there is no room."""
        def count(host: state.FleetHost) -> tuple[int, ...] | None:
            placed = moving.place(instance, host)
            if placed is None:
                return None
            free = sum(len(cell.free) for cell in host.state.supply.cells
                       if cell.id in placed.cells)
            return (free, *host.state.free)
        return self.remember(('rank', self.kind(instance)), host, count)

    def openings(self, instance: state.Instance, host: state.FleetHost,
                 most: int) -> list[Leavers]:
        """Find the sets of instances without which a host has room.

        :param most: the most instances of a set; 0 if the host has room
        :returns: the sets in all orders
        """
        if not most:
            return [()]
        if instance.hosts is not None and host.name not in instance.hosts:
            return []
        return self.remember(
            ('open', self.kind(instance), most), host,
            lambda host: self._find_openings(instance, host, most))

    def _find_openings(self, instance: state.Instance, host: state.FleetHost,
                       most: int) -> list[Leavers]:
        leavers = self.leavers(host, most)
        freed = freed_bound.FreedHost(instance.guest, host, 0, 1, leavers)
        found: dict[frozenset[str], Leavers] = {}
        for size in range(1, most + 1):
            for chosen in itertools.combinations(leavers, size):
                ids = frozenset(one.id for one in chosen)
                if (freed.bound(chosen)
                        and not any(fewer <= ids for fewer in found)
                        and moving.may_join(instance, host, chosen)
                        and moving.place(instance, moving.leave_all(
                            chosen, host)) is not None):
                    found[ids] = chosen
        return list(itertools.chain.from_iterable(
            map(itertools.permutations, found.values())))

    def leavers(self, host: state.FleetHost,
                most: int) -> list[state.Instance]:
        """Find the instances that may leave a host together.

        :param most: the most instances that leave; more instances that are
            alike give no other sets
        """
        counts = collections.Counter[object]()
        found = []
        for one in host.instances:
            if self.may_leave(one):
                alike = self.kind(one), one.cells, one.holding.devices
                counts[alike] += 1
                if counts[alike] <= most:
                    found.append(one)
        return found

    def remember(self, what: Hashable, host: state.FleetHost,
                 make: Callable[[state.FleetHost], T]) -> T:
        """Return what was found out about a host, or find it out."""
        key = what, id(host)
        if key not in self._memo:
            # The host is kept, so that no other gets its id.
            self._memo[key] = host, make(host)
        found: T = self._memo[key][1]
        return found
