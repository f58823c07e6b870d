# SPDX-License-Identifier: Apache-2.0

"""Move other guests to make room for a request that was refused.

The moves are those that ``hpcvirt make-room`` finds. In a large fleet only the
hosts with the most free CPUs are searched: they are the likeliest to get
enough room, and the ones to which guests can move.
"""

from collections.abc import Sequence

import numpy as np

from hpcvirt.fleet import make_room
from hpcvirt.fleet import state
from hpcvirt.simulate import host_table
from hpcvirt.simulate import requests
from hpcvirt.simulate import scheduler as schedulers

#: The number of hosts of a fleet that are searched.
MAX_HOSTS = 48
#: Requests for more guests get no moves, since there are too many plans.
MAX_GUESTS = 8


class Mover:
    """Makes room for refused requests by moves.

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
        names: dict[str, host_table.Running] = {}
        plan = make_room.search(
            self._flavors[number].guest, tuple(
                self._host(host, names) for host in self._list_candidates()),
            self._most, count)
        if plan is None:
            return []
        for move in plan.moves:
            old = names[move.id]
            names[move.id] = new = self._place(int(move.target), old.flavor)
            self._table.remove(old)
            self._running.replace(old, new)
        self.moves += len(plan.moves)
        return [self._place(int(host), number) for host, _ in plan.places]

    def _place(self, host: int, number: int) -> host_table.Running:
        return self._table.place(
            host, number, self._scheduler.known.placement(number, host))

    def _list_candidates(self) -> list[int]:
        free = self._table.free_pcpus + self._table.shared_left
        order = np.argsort(-free, kind='stable')[:MAX_HOSTS]
        return sorted(order.tolist())

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
