# SPDX-License-Identifier: Apache-2.0

"""Move other guests to make room: for a refused request, or beforehand.

The moves are those that ``hpcvirt make-room`` finds. In a large fleet only the
hosts with the most free CPUs are searched: they are the likeliest to get
enough room, and the ones to which guests can move.
"""

import math
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence

import numpy as np

from hpcvirt.fit import admission
from hpcvirt.fit import guest as guests
from hpcvirt.fit import reasons
from hpcvirt.fleet import make_room
from hpcvirt.fleet import moving
from hpcvirt.fleet import state
from hpcvirt.simulate import host_table
from hpcvirt.simulate import requests
from hpcvirt.simulate import scheduler as schedulers

#: The number of hosts of a fleet that are searched.
MAX_HOSTS = 48
#: Requests for more guests get no moves, since there are too many plans.
MAX_GUESTS = 8


class Mover:
    """Makes room by moves, as the strategy of a scheduler says.

    For a refused request, moves take no time. Beforehand, after every Nth
    request, moves are planned for the kinds that
    :func:`hpcvirt.fleet.make_room.find_usual` finds among the requests so far.
    They are made one after the other, until one is no longer possible. While
    its memory is copied, a guest is on both hosts.

    :ivar moves: the number of moves so far
    :ivar moved: the guest that moves now, on its target
    :ivar next_end: the time at which this move ends
    """

    def __init__(self, scheduler: schedulers.Scheduler,
                 running: host_table.Population,
                 flavors: Sequence[guests.Guest]) -> None:
        self._strategy = scheduler.strategy
        self._known = scheduler.known
        self._table = scheduler.table
        self._running = running
        self._flavors = flavors
        self._requested = [0] * len(flavors)
        self._seen = 0
        self._steps: Iterator[host_table.Running] = iter(())
        self.moves = 0
        self.moved: host_table.Running | None = None
        self.next_end = math.inf

    def rescue(self, number: int, count: int) -> list[host_table.Running]:
        """Place the guests of a request if moves make room for them.

        :param number: the number of their flavor
        :returns: empty if no plan of few moves makes room
        """
        if not self._strategy.moves or count > MAX_GUESTS:
            return []
        hosts, names = self._describe_hosts()
        plan = make_room.search(self._flavors[number], hosts,
                                self._strategy.moves, count)
        if plan is None:
            return []
        for move in plan.moves:
            old = names[move.id]
            names[move.id] = self._move(old, int(move.target))
            self._table.remove(old)
        return [self._place(int(host), number) for host, _ in plan.places]

    def observe(self, arrival: requests.Arrival,
                fits: Callable[[int, int], bool]) -> None:
        """Count a request, and begin to make room after every Nth one.

        :param fits: whether guests of a flavor, both by number, have room now
        """
        self._requested[arrival.flavor] += arrival.count
        self._seen += 1
        if not self._strategy.standing or self.moved is not None or (
                self._seen % self._strategy.standing):
            return
        usual = make_room.find_usual(
            self._flavors, self._requested)
        if all(fits(number, 1) for number in usual):
            return
        hosts, names = self._describe_hosts()
        targets = [make_room.RoomTarget(self._flavors[number], 1)
                   for number in usual]
        moves: list[moving.Move] = []
        for kept in make_room.keep_room(targets, hosts,
                                        self._strategy.most_moves,
                                        together=False):
            if kept.plan:
                moves += kept.plan.moves
        self._steps = self._begin_moves(moves, names)
        self.end_move(arrival.time)

    def end_move(self, now: float) -> None:
        """End the present move, if there is one, and begin the next."""
        self.moved = next(self._steps, None)
        self.next_end = math.inf if self.moved is None else now + (
            self._flavors[self.moved.flavor].sums.memory_mib
            / self._strategy.copy_mib_per_s)

    def _begin_moves(self, moves: Sequence[moving.Move],
                     names: dict[str, host_table.Running],
                     ) -> Iterator[host_table.Running]:
        """Yield each guest on its target, and then free its source."""
        for move in moves:
            old, target = names[move.id], int(move.target)
            if old not in self._running.list_guests(
                    old.host) or isinstance(admission.predict(
                        self._flavors[old.flavor],
                        self._table.describe_host(target)), reasons.Misfit):
                return
            names[move.id] = new = self._move(old, target)
            yield new
            self._table.remove(old)

    def _move(self, old: host_table.Running,
              target: int) -> host_table.Running:
        """Place a guest on another host, without leaving the first one."""
        new = self._place(target, old.flavor)
        self._running.replace(old, new)
        self.moves += 1
        return new

    def _place(self, host: int, number: int) -> host_table.Running:
        return self._table.place(
            host, number, self._known.placement(number, host))

    def _describe_hosts(self) -> tuple[tuple[state.FleetHost, ...],
                                       dict[str, host_table.Running]]:
        """Describe the hosts that are searched.

        :returns: the hosts, and the guests by the ids of their instances
        """
        free = self._table.free_pcpus + self._table.shared_left
        order = np.argsort(-free, kind='stable')[:MAX_HOSTS]
        names: dict[str, host_table.Running] = {}
        return tuple(self._host(host, names)
                     for host in sorted(order.tolist())), names

    def _host(self, host: int,
              names: dict[str, host_table.Running]) -> state.FleetHost:
        own = []
        for guest in self._running.list_guests(host):
            name = str(len(names))
            names[name] = guest
            flavor = self._flavors[guest.flavor]
            own.append(state.Instance(name, '', str(host), flavor,
                                      guest.holding))
        return state.FleetHost(str(host), self._table.describe_host(host),
                               tuple(own))
