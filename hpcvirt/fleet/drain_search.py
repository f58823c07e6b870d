# SPDX-License-Identifier: Apache-2.0

"""Find the moves after which some hosts have as few instances as possible.

The best moves leave the fewest instances, then have the fewest cold
migrations, then are the fewest. First, the largest instances move to the
targets that fit them best. Instances of other hosts move only if that is not
enough. Then all orders and targets are tried, if there are few of them. Each
plan is proven by carrying it out.
"""

import dataclasses
import itertools
from collections.abc import Collection
from collections.abc import Sequence

from hpcvirt.fleet import move_ways
from hpcvirt.fleet import moving
from hpcvirt.fleet import state

#: The most moves of other instances that make room for one instance, and the
#: most in a plan when all plans are tried.
MAX_OTHERS = 2
#: The most moves that are tried when all plans are tried.
MAX_TRIES = 5_000
#: The most moves that are tried for one instance.
_MAX_TRIES_EACH = 3_000
#: The most instances for which all plans are tried.
_MAX_INSTANCES = 40

_Moves = tuple[moving.Move, ...]


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
    hosts: move_ways.Hosts
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
        self._ways = move_ways.MoveWays(hosts, cold)
        self._seen: dict[object, int] = {}

    def find(self, hosts: move_ways.Hosts,
             drained: Collection[str], last: Collection[str] = (),
             others: int = MAX_OTHERS, tries: int = MAX_TRIES) -> Drain:
        """Find moves away from some hosts.

        :param hosts: name -> host
        :param drained: the hosts, which take no instances
        :param last: hosts that take instances only if no others do
        :param others: the most moves of other instances for one instance
        :param tries: the most moves that are tried when all plans are tried
        """
        self._ways.aim([name for name in hosts if name not in drained],
                       hosts.values(), last)
        self._drained = list(drained)
        self._best = self._judge((), hosts)
        order = sorted(
            filter(self._ways.may_leave, self._best.left), reverse=True,
            key=lambda one: (not moving.only_cold(one), *one.guest.sums[:3],
                             len(one.cells)))
        self._fixed = len(self._best.left) - len(order)
        for most in range(others + 1):
            self._move_each(order, hosts, most)
            if len(self._best.left) == self._fixed:
                break
        proven = tries > 0 and self._prove(order, hosts, tries)
        return dataclasses.replace(self._best, proven=proven)

    def _judge(self, moves: _Moves, hosts: move_ways.Hosts) -> Drain:
        left = itertools.chain.from_iterable(
            hosts[name].instances for name in self._drained)
        return Drain(moves, tuple(left), hosts)

    def _keep_best(self, moves: _Moves, hosts: move_ways.Hosts) -> None:
        self._best = min(self._best, self._judge(moves, hosts),
                         key=lambda found: found.cost)

    def _move_each(self, order: Sequence[state.Instance],
                   hosts: move_ways.Hosts, others: int) -> None:
        """Move one instance after the other to the first good target."""
        moves: _Moves = ()
        full = set()
        for one in order:
            self._ways.limit = self._ways.tries + _MAX_TRIES_EACH
            way = (None if self._ways.kind(one) in full
                   else self._find_first(one, hosts, others))
            if way is None:
                full.add(self._ways.kind(one))
            else:
                moves, hosts = (*moves, *way[0]), way[1]
        self._keep_best(moves, hosts)

    def _find_first(self, instance: state.Instance, hosts: move_ways.Hosts,
                    others: int) -> move_ways.Way | None:
        """Find a way to move an instance with the fewest moves of others."""
        for most in range(others + 1):
            for way in self._ways.find(instance, hosts, most):
                return way
        return None

    def _prove(self, order: Sequence[state.Instance], hosts: move_ways.Hosts,
               tries: int) -> bool:
        """Try all plans that may be better; False if there are too many."""
        self._ways.limit = self._ways.tries + tries
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

    def _explore(self, left: Sequence[state.Instance], hosts: move_ways.Hosts,
                 moves: _Moves, others: int) -> bool:
        """Try all moves that may follow; False if there are too many.

        :param left: the instances that may still leave
        :param others: the most moves of other instances
        """
        self._keep_best(moves, hosts)
        self._ways.tries += len(self._ways.takers) // 10
        cold = sum(move.cold for move in moves)
        key = (others, tuple(sorted(map(self._ways.kind, left))),
               tuple(sorted(self._ways.number(hosts[name])
                            for name in self._ways.takers)))
        if self._seen.get(key, cold + 1) <= cold:
            return True
        self._seen[key] = cold
        # The least that can be reached from here.
        if self._best.cost <= (self._fixed, cold + self._count_cold(left),
                               len(moves) + len(left)):
            return True
        for one in {self._ways.kind(one): one for one in left}.values():
            rest = [other for other in left if other.id != one.id]
            for more, after in self._ways.find(one, hosts, others):
                if not self._explore(rest, after, (*moves, *more),
                                     others + 1 - len(more)):
                    return False
        return self._ways.tries <= self._ways.limit
