# SPDX-License-Identifier: Apache-2.0

"""Move other guests to make room: for a refused request, or beforehand.

The moves are those that ``hpcvirt make-room`` finds. In a large fleet only the
hosts with the most free CPUs are searched: they are the likeliest to get
enough room, and the ones to which guests can move.
"""

import math
from collections.abc import Iterator
from collections.abc import Sequence

import numpy as np

from hpcvirt.fit import reasons
from hpcvirt.fleet import admission
from hpcvirt.fleet import make_room
from hpcvirt.fleet import moving
from hpcvirt.fleet import state
from hpcvirt.simulate import host_table
from hpcvirt.simulate import requests
from hpcvirt.simulate import scheduler as schedulers
from hpcvirt.simulate import strategy as strategies

#: The number of hosts of a fleet that are searched.
MAX_HOSTS = 48
#: Requests for more guests get no moves, since there are too many plans.
MAX_GUESTS = 8


class Mover:
    """Makes room for refused requests by moves, which take no time.

    :ivar moves: the number of moves so far
    """

    def __init__(self, scheduler: schedulers.Scheduler,
                 running: host_table.Population,
                 flavors: Sequence[requests.RequestedFlavor],
                 most: int) -> None:
        """Prepare to make room.

        :param most: the maximum number of moves for each request
        """
        self._scheduler = scheduler
        self._table = scheduler.table
        self._running = running
        self._flavors = flavors
        self._most = most
        self.moves = 0

    def __call__(self, number: int, count: int) -> list[host_table.Running]:
        """Place the guests of a request if moves make room for them.

        :param number: the number of their flavor
        :returns: empty if no plan of few moves makes room
        """
        if count > MAX_GUESTS:
            return []
        hosts, names = self._describe_hosts()
        plan = make_room.search(self._flavors[number].guest, hosts,
                                self._most, count)
        if plan is None:
            return []
        for move in plan.moves:
            old = names[move.id]
            names[move.id] = self._move(old, int(move.target))
            self._table.remove(old)
        return [self._place(int(host), number) for host, _ in plan.places]

    def _move(self, old: host_table.Running,
              target: int) -> host_table.Running:
        """Place a guest on another host, without leaving the first one."""
        new = self._place(target, old.flavor)
        self._running.replace(old, new)
        self.moves += 1
        return new

    def _place(self, host: int, number: int) -> host_table.Running:
        return self._table.place(
            host, number, self._scheduler.known.placement(number, host))

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
            own.append(state.Instance(name, '', str(host), flavor.flavor,
                                      flavor.guest, guest.holding))
        return state.FleetHost(str(host), self._table.describe_host(host),
                               tuple(own))


class StandingRoom(Mover):
    """Keeps room for the usual kinds of requests, by moves that take time.

    After every Nth request, moves are planned for the kinds that
    :func:`hpcvirt.fleet.make_room.find_usual` finds among the requests so far.
    They are made one after the other, until one is no longer possible. While
    its memory is copied, a guest is on both hosts.

    :ivar moved: the guest that moves now, on its target
    :ivar next_end: the time at which this move ends
    """

    def __init__(self, scheduler: schedulers.Scheduler,
                 running: host_table.Population,
                 flavors: Sequence[requests.RequestedFlavor],
                 strategy: strategies.Strategy) -> None:
        super().__init__(scheduler, running, flavors, strategy.most_moves)
        self._every = strategy.standing
        self._mib_per_s = strategy.copy_mib_per_s
        # It tries where guests would fit, without a trace in any weigher.
        self._packer = schedulers.Scheduler(
            self._table, flavors, strategies.Strategy(
                'best-fit', strategies.BEST_FIT, scheduler.packing))
        self._requested = [0] * len(flavors)
        self._seen = 0
        self._steps: Iterator[host_table.Running] = iter(())
        self.moved: host_table.Running | None = None
        self.next_end = math.inf

    def observe(self, arrival: requests.Arrival) -> None:
        """Count a request, and begin to make room after every Nth one."""
        self._requested[arrival.flavor] += arrival.count
        self._seen += 1
        if self._seen % self._every or self.moved is not None:
            return
        usual = make_room.find_usual(
            [each.flavor for each in self._flavors], self._requested)
        if all(map(self._fits, usual)):
            return
        hosts, names = self._describe_hosts()
        self._steps = self._begin_moves([
            move for kept in make_room.keep_room(
                [make_room.Wanted(self._flavors[number].flavor, 1,
                                  self._flavors[number].guest)
                 for number in usual], hosts, self._most, together=False)
            if kept.plan for move in kept.plan.moves], names)
        self.end_move(arrival.time)

    def end_move(self, now: float) -> None:
        """End the present move, if there is one, and begin the next."""
        self.moved = next(self._steps, None)
        self.next_end = math.inf if self.moved is None else now + (
            self._flavors[self.moved.flavor].flavor.ram_mib
            / self._mib_per_s)

    def _begin_moves(self, moves: Sequence[moving.Move],
                     names: dict[str, host_table.Running],
                     ) -> Iterator[host_table.Running]:
        """Yield each guest on its target, and then free its source."""
        for move in moves:
            old, target = names[move.id], int(move.target)
            if old not in self._running.list_guests(
                    old.host) or isinstance(admission.admit(
                        self._flavors[old.flavor].guest,
                        self._table.describe_host(target)), reasons.Misfit):
                return
            names[move.id] = new = self._move(old, target)
            yield new
            self._table.remove(old)

    def _fits(self, number: int) -> bool:
        placed = self._packer.place(number, 1)
        self._packer.remove(placed)
        return bool(placed)
