# SPDX-License-Identifier: Apache-2.0

"""Find the moves after which some hosts have as few instances as possible.

The best moves leave the fewest instances, then have the fewest cold
migrations, then are the fewest. First, the largest instances move to the
targets that fit them best. Instances of other hosts move only if that is not
enough. Then all orders and targets are tried, if there are few of them. Each
plan is proven by carrying it out.
"""

import collections
import dataclasses
import itertools
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import TypeVar

from hpcvirt.fit import placement
from hpcvirt.fleet import freed_bound
from hpcvirt.fleet import moving
from hpcvirt.fleet import state

#: The most moves of other instances that make room for one instance, and the
#: most in a plan when all plans are tried.
MAX_OTHERS = 2
#: The most moves that are tried when all plans are tried.
MAX_TRIES = 5_000
#: The most moves that are tried for one instance.
_MAX_TRIES_EACH = 3_000
#: The most lists of targets that are remembered.
_MAX_LISTS = 500
#: The most instances for which all plans are tried.
_MAX_INSTANCES = 40

_Hosts = Mapping[str, state.FleetHost]
_Moves = tuple[moving.Move, ...]
_Ways = Iterator[tuple[_Moves, _Hosts]]
_Leavers = tuple[state.Instance, ...]
T = TypeVar('T')


@dataclasses.dataclass(frozen=True)
class Drain:
    """Moves, and what they leave.

    :ivar left: the instances that stay on the hosts
    :ivar hosts: name -> host, after the moves
    :ivar proven: whether no plan with up to two moves of instances of other
        hosts is better
    """

    moves: tuple[moving.Move, ...]
    left: tuple[state.Instance, ...]
    hosts: Mapping[str, state.FleetHost]
    proven: bool = False

    @property
    def cost(self) -> tuple[int, int, int]:
        """The numbers of instances left, cold migrations, and moves."""
        return (len(self.left), sum(move.cold for move in self.moves),
                len(self.moves))


class DrainSearch:
    """Searches the moves in a fleet, and remembers where instances fit."""

    def __init__(self, hosts: Sequence[state.FleetHost], cold: bool) -> None:
        """Prepare the search.

        :param cold: whether instances may be migrated cold
        """
        self._cold = cold
        self._kind = moving.MoveTargets(hosts, cold).kind
        self._zones = {one.hosts for host in hosts for one in host.instances}
        self._memo: dict[tuple[object, int], tuple[state.FleetHost, Any]] = {}
        self._numbers: dict[object, int] = {}
        self._seen: dict[object, int] = {}
        self._lists: dict[object, tuple[_Hosts, list[str]]] = {}
        self._tries = self._limit = 0

    def find(self, hosts: Mapping[str, state.FleetHost],
             drained: Collection[str], last: Collection[str] = (),
             others: int = MAX_OTHERS, tries: int = MAX_TRIES) -> Drain:
        """Find moves away from some hosts.

        :param hosts: name -> host
        :param drained: the hosts, which take no instances
        :param last: hosts that take instances only if no others do
        :param others: the most moves of other instances for one instance
        :param tries: the most moves that are tried when all plans are tried
        """
        self._last = last
        known = set(map(id, hosts.values()))
        self._memo = {key: found for key, found in self._memo.items()
                      if key[1] in known}
        self._drained = list(drained)
        self._takers = [name for name in hosts if name not in drained]
        self._best = self._judge((), hosts)
        order = sorted((
            one for one in self._best.left
            if moving.stays(one, self._cold) is None), reverse=True,
            key=lambda one: (not moving.only_cold(one), *one.guest.sums[:3],
                             len(one.cells)))
        self._fixed = len(self._best.left) - len(order)
        for most in range(others + 1):
            self._move_each(order, hosts, most)
            if len(self._best.left) == self._fixed:
                break
        proven = tries > 0 and self._prove(order, hosts, tries)
        return dataclasses.replace(self._best, proven=proven)

    def _judge(self, moves: _Moves, hosts: _Hosts) -> Drain:
        return Drain(moves, tuple(one for name in self._drained
                                  for one in hosts[name].instances), hosts)

    def _keep_best(self, moves: _Moves, hosts: _Hosts) -> None:
        self._best = min(self._best, self._judge(moves, hosts),
                         key=lambda found: found.cost)

    def _move_each(self, order: Sequence[state.Instance], hosts: _Hosts,
                   others: int) -> None:
        """Move one instance after the other to the first good target."""
        moves: _Moves = ()
        full = set()
        for one in order:
            self._limit = self._tries + _MAX_TRIES_EACH
            way = None if self._kind(one) in full else next(
                itertools.chain.from_iterable(
                    self._ways(one, hosts, most)
                    for most in range(others + 1)), None)
            if way is None:
                full.add(self._kind(one))
            else:
                moves, hosts = (*moves, *way[0]), way[1]
        self._keep_best(moves, hosts)

    def _prove(self, order: Sequence[state.Instance], hosts: _Hosts,
               tries: int) -> bool:
        """Try all plans that may be better; False if there are too many."""
        self._limit = self._tries + tries
        for others in range(MAX_OTHERS + 1):
            if self._best.cost <= (self._fixed, self._count_cold(order),
                                   len(order) + others):
                break
            self._seen.clear()
            if len(order) > _MAX_INSTANCES or not self._explore(
                    order, hosts, (), others):
                return False
        return True

    def _count_cold(self, instances: Sequence[state.Instance]) -> int:
        return sum(moving.only_cold(one) is not None for one in instances)

    def _explore(self, left: Sequence[state.Instance], hosts: _Hosts,
                 moves: _Moves, others: int) -> bool:
        """Try all moves that may follow; False if there are too many.

        :param left: the instances that may still leave
        :param others: the most moves of other instances
        """
        self._keep_best(moves, hosts)
        self._tries += len(self._takers) // 10
        cold = sum(move.cold for move in moves)
        key = (others, tuple(sorted(map(self._kind, left))), tuple(sorted(
            self._number(hosts[name]) for name in self._takers)))
        if self._seen.get(key, cold + 1) <= cold:
            return True
        self._seen[key] = cold
        # The least that can be reached from here.
        if self._best.cost <= (self._fixed, cold + self._count_cold(left),
                               len(moves) + len(left)):
            return True
        for one in {self._kind(one): one for one in left}.values():
            rest = [other for other in left if other.id != one.id]
            for more, after in self._ways(one, hosts, others):
                if not self._explore(rest, after, (*moves, *more),
                                     others + 1 - len(more)):
                    return False
        return self._tries <= self._limit

    def _ways(self, instance: state.Instance, hosts: _Hosts,
              others: int) -> _Ways:
        """Yield the ways to move an instance: moves, and the hosts after them.

        :param others: the most moves of others that may precede its own
        """
        known = set()
        for most in sorted({0, others}):
            self._tries += len(self._takers) // 10 if most else 0
            for name in self._takers if most else self._targets(
                    instance, hosts):
                number = self._number(hosts[name])
                if name == instance.host or number in known:
                    continue
                known.add(number)
                for moves, after in itertools.chain.from_iterable(
                        self._ways_of_all(leavers, hosts, most) for leavers
                        in self._openings(instance, hosts[name], most)):
                    self._tries += 1
                    if self._tries > self._limit:
                        return
                    now = dict(after)
                    move = moving.try_move(now, instance, name)
                    if move is not None:
                        yield (*moves, move), now

    def _ways_of_all(self, leavers: _Leavers, hosts: _Hosts,
                     most: int) -> _Ways:
        """Yield the ways to move several instances, with a number of moves."""
        if not leavers:
            yield (), hosts
            return
        for moves, after in self._ways(leavers[0], hosts, most - len(leavers)):
            for more, then in self._ways_of_all(leavers[1:], after,
                                                most - len(moves)):
                yield (*moves, *more), then

    def _targets(self, instance: state.Instance, hosts: _Hosts) -> list[str]:
        """Find the hosts with room, the one that fits best first."""
        key = self._kind(instance), id(hosts)
        if key not in self._lists:
            ranks = [(name in self._last, self._rank(instance, hosts[name]),
                      name) for name in self._takers
                     if moving.may_join(instance, hosts[name])]
            if len(self._lists) > _MAX_LISTS:
                self._lists.clear()
            self._lists[key] = hosts, [name for *_, name in sorted(
                found for found in ranks if found[1] is not None)]
        return self._lists[key][1]

    def _rank(self, instance: state.Instance,
              host: state.FleetHost) -> tuple[int, ...] | None:
        """Count what its cells have free; None if there is no room."""
        def count(host: state.FleetHost) -> tuple[int, ...] | None:
            placed = moving.place(instance, host)
            return None if placed is None else (
                sum(len(cell.free) for cell in host.state.supply.cells
                    if cell.id in placed.cells), *host.state.free)
        return self._remember(('rank', self._kind(instance)), host, count)

    def _openings(self, instance: state.Instance, host: state.FleetHost,
                  most: int) -> list[_Leavers]:
        """Find the sets of instances without which a host has room.

        :param most: the most instances of a set; 0 if the host has room
        :returns: the sets in all orders
        """
        def find(host: state.FleetHost) -> list[_Leavers]:
            counts = collections.Counter[object]()
            leavers = []
            for one in host.instances:
                if moving.stays(one, self._cold) is None:
                    alike = self._kind(one), one.cells, one.holding.devices
                    counts[alike] += 1
                    # More instances that are alike give no other sets.
                    if counts[alike] <= most:
                        leavers.append(one)
            freed = freed_bound.FreedHost(instance.guest, host, 0, 1, leavers)
            found: dict[frozenset[str], _Leavers] = {}
            for size in range(1, most + 1):
                for chosen in itertools.combinations(leavers, size):
                    ids = frozenset(one.id for one in chosen)
                    if (freed.bound(chosen)
                            and not any(fewer <= ids for fewer in found)
                            and moving.may_join(instance, host, chosen)
                            and moving.place(instance, moving.leave_all(
                                chosen, host)) is not None):
                        found[ids] = chosen
            return [ordered for chosen in found.values()
                    for ordered in itertools.permutations(chosen)]
        if not most:
            return [()]
        if instance.hosts is not None and host.name not in instance.hosts:
            return []
        return self._remember(('open', self._kind(instance), most), host, find)

    def _number(self, host: state.FleetHost) -> int:
        """Number a host, so that interchangeable hosts have one number."""
        return self._remember('number', host, lambda host: (
            self._numbers.setdefault((
                placement.describe(host.state), host.name in self._last,
                frozenset(zone for zone in self._zones
                          if zone and host.name in zone),
                tuple(sorted((self._kind(one), one.cells, one.stays or '',
                              one.holding.devices)
                             for one in host.instances))),
                len(self._numbers))))

    def _remember(self, what: object, host: state.FleetHost,
                  make: Callable[[state.FleetHost], T]) -> T:
        """Return what was found out about a host."""
        key = what, id(host)
        if key not in self._memo:
            # The host is kept, so that no other gets its id.
            self._memo[key] = host, make(host)
        found: T = self._memo[key][1]
        return found
