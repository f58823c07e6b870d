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

"""A model of nova-scheduler and of the claims of nova-compute.

Hosts and guests are those of the generator. Which hosts can take a guest,
and on which cells it comes to sit, is what :mod:`hpcvirt.fit.claim`
foretells; CPUs, memory, pages and devices are taken as the claim takes them.
The host is chosen by weighers as in ``nova/weights.py``: each normalises its
weights over the hosts and multiplies them. ``tests/functional/test_weights``
holds the choice against Nova's own weighers.
"""

import dataclasses
import heapq
from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.fit import allocation
from hpcvirt.fit import claim
from hpcvirt.fit import demand as demands
from hpcvirt.fit import placement as placements
from hpcvirt.fit import score
from hpcvirt.fit import supply as supplies

#: What nova-scheduler does if it is told nothing.
UPSTREAM = {'ram': 1.0, 'cpu': 1.0, 'disk': 1.0, 'pci': 1.0}
#: What an operator can do about it with Nova alone.
PACKING = {'ram': -1.0, 'cpu': -1.0, 'disk': -1.0, 'pci': 1.0}
#: Our weigher beside Nova's own, at the default of its option.
HPCVIRT = {**UPSTREAM, 'fragmentation': 20.0}

_FROM_ZERO = frozenset({'ram', 'cpu', 'disk'})


@dataclasses.dataclass(frozen=True)
class Arrival:
    """A request of one or several guests, placed together or refused.

    :ivar time: when it comes, in the unit of ``duration``
    :ivar flavor: which flavor, by its number
    :ivar count: number of guests
    """

    time: float
    duration: float
    flavor: int
    count: int = 1


@dataclasses.dataclass
class Tally:
    """What became of the requests.

    :ivar offered: CPUs x time of all requests
    :ivar lost: of those that were refused
    """

    requests: int = 0
    refused: int = 0
    offered: float = 0.0
    lost: float = 0.0

    def count(self, work: float, taken: bool) -> None:
        self.requests += 1
        self.offered += work
        if not taken:
            self.refused += 1
            self.lost += work


@dataclasses.dataclass
class Answer:
    """What a host would do with one flavor."""

    placed: placements.Placement | None
    loss: float | None = None


class Host:
    """A compute host.

    :ivar known: what hosts in any state would do with each flavor, shared
        by the hosts of a run: most states come again
    """

    def __init__(self, kind: int, supply: supplies.Supply,
                 known: dict[Hashable, dict[int, Answer]]) -> None:
        self._kind = kind
        self._known = known
        self.supply = supply
        self.free_mib = sum(cell.memory_mib for cell in supply.cells)
        self.vcpus_used = 0
        self._answers: dict[int, Answer] = {}
        self.put(supply)

    def answer(self, number: int, demand: demands.Demand,
               packing: bool) -> Answer:
        """Say on which cells a guest would come to sit."""
        if number not in self._answers:
            placed = claim.predict(demand, self.supply, packing)
            self._answers[number] = Answer(
                placed if isinstance(placed, placements.Placement) else None)
        return self._answers[number]

    def loss(self, number: int, demand: demands.Demand) -> float:
        """Measure the room that a guest would destroy, if there is any."""
        answer = self._answers[number]
        if answer.loss is None:
            if answer.placed is None:
                raise ValueError('a guest that does not fit has no loss')
            answer.loss = round(
                score.loss(demand, self.supply, answer.placed), 1)
        return answer.loss

    def put(self, supply: supplies.Supply) -> None:
        """Go over to a new state."""
        self.supply = supply
        self._answers = self._known.setdefault(
            (self._kind, _state(supply)), {})

    def charge(self, demand: demands.Demand, sign: int) -> None:
        """Count a guest that has come (1) or gone (-1)."""
        self.free_mib -= sign * sum(c.memory_mib for c in demand.cells)
        self.vcpus_used += sign * sum(c.pcpus + c.vcpus
                                      for c in demand.cells)

    def weigh(self, weigher: str, number: int,
              demand: demands.Demand) -> float:
        """Weigh as the weigher of that name in ``nova/scheduler/weights``."""
        if weigher == 'ram':
            return self.free_mib
        if weigher == 'cpu':
            shared = sum(len(cell.shared) for cell in self.supply.cells)
            return shared * self.supply.cpu_ratio - self.vcpus_used
        if weigher == 'pci':
            free = sum(pool.free for pool in self.supply.pools or ())
            return 100 - min(free, 99)
        if weigher == 'fragmentation':
            return -self.loss(number, demand)
        # Guests boot from volumes: no host has less disk than another.
        return 0.0


def choose(hosts: Sequence[Host], number: int, demand: demands.Demand,
           multipliers: Mapping[str, float], packing: bool) -> Host | None:
    """Choose a host as nova-scheduler does: the first of the heaviest."""
    able = [host for host in hosts
            if host.answer(number, demand, packing).placed is not None]
    if len(able) < 2:
        return able[0] if able else None
    totals = [0.0] * len(able)
    for weigher, multiplier in multipliers.items():
        weights = [host.weigh(weigher, number, demand) for host in able]
        low = 0.0 if weigher in _FROM_ZERO else min(weights)
        span = max(weights) - low
        if span > 0:
            for index, weight in enumerate(weights):
                totals[index] += multiplier * max(weight - low, 0.0) / span
    return able[max(range(len(able)), key=totals.__getitem__)]


def run(fleet: Iterable[supplies.Supply], flavors: Sequence[demands.Demand],
        arrivals: Sequence[Arrival], multipliers: Mapping[str, float],
        packing: bool, warm_up: int) -> dict[int, Tally]:
    """Let guests come and go.

    :param multipliers: of the weighers
    :param packing: ``packing_host_numa_cells_allocation_strategy``
    :param warm_up: number of requests that are not counted
    :returns: a tally for each flavor
    """
    kinds: dict[int, int] = {}
    known: dict[Hashable, dict[int, Answer]] = {}
    hosts = [Host(kinds.setdefault(id(supply), len(kinds)), supply, known)
             for supply in fleet]
    tallies = {number: Tally() for number in range(len(flavors))}
    leaving: list[tuple[float, int, list[Guest]]] = []
    for order, arrival in enumerate(arrivals):
        while leaving and leaving[0][0] <= arrival.time:
            leave(heapq.heappop(leaving)[2])
        demand = flavors[arrival.flavor]
        guests: list[Guest] = []
        for _ in range(arrival.count):
            host = choose(hosts, arrival.flavor, demand, multipliers, packing)
            if host is None:
                break
            guests.append(enter(host, arrival.flavor, demand, packing))
        taken = len(guests) == arrival.count
        if taken:
            heapq.heappush(leaving, (arrival.time + arrival.duration, order,
                                     guests))
        else:
            leave(guests)
        if order >= warm_up:
            tallies[arrival.flavor].count(
                cpus(demand) * arrival.count * arrival.duration, taken)
    return tallies


def pooled(fleet: Iterable[supplies.Supply],
           flavors: Sequence[demands.Demand], arrivals: Sequence[Arrival],
           warm_up: int) -> Tally:
    """Run the same on one pool of CPUs: what no placement could avoid."""
    free = sum(len(cell.dedicated) for supply in fleet
               for cell in supply.cells)
    leaving: list[tuple[float, int]] = []
    tally = Tally()
    for order, arrival in enumerate(arrivals):
        while leaving and leaving[0][0] <= arrival.time:
            free += heapq.heappop(leaving)[1]
        wanted = cpus(flavors[arrival.flavor]) * arrival.count
        taken = wanted <= free
        if taken:
            free -= wanted
            heapq.heappush(leaving, (arrival.time + arrival.duration,
                                     wanted))
        if order >= warm_up:
            tally.count(wanted * arrival.duration, taken)
    return tally


def cpus(demand: demands.Demand) -> int:
    """Dedicated CPUs that a guest takes."""
    return sum(cell.pcpus + cell.emulator_pcpus for cell in demand.cells)


@dataclasses.dataclass(frozen=True)
class Guest:
    """A guest, and what to give back: the host without it and with it."""

    host: Host
    demand: demands.Demand
    before: supplies.Supply
    after: supplies.Supply


def enter(host: Host, number: int, demand: demands.Demand,
           packing: bool) -> Guest:
    """Put a guest on a host that can take it."""
    placed = host.answer(number, demand, packing).placed
    if placed is None:
        raise ValueError('the host cannot take the guest')
    before = host.supply
    after = allocation.allocate(demand, before, placed)
    host.put(after)
    host.charge(demand, 1)
    return Guest(host, demand, before, after)


def leave(guests: Sequence[Guest]) -> None:
    """Let guests give back what they took."""
    for guest in reversed(guests):
        guest.host.put(_give_back(guest))
        guest.host.charge(guest.demand, -1)


def _give_back(guest: Guest) -> supplies.Supply:
    """The host of now with what the guest took when it came."""
    cells = []
    for now, before, after in zip(
            guest.host.supply.cells, guest.before.cells, guest.after.cells,
            strict=True):
        if before is after:
            cells.append(now)
            continue
        cells.append(now._replace(
            free=now.free | (before.free - after.free),
            memory_used_mib=(now.memory_used_mib + before.memory_used_mib
                             - after.memory_used_mib),
            pages=tuple(
                pool._replace(used=pool.used - old_after.used + old.used,
                              free=pool.free - old_after.free + old.free)
                for pool, old, old_after in zip(
                    now.pages, before.pages, after.pages, strict=True))))
    return dataclasses.replace(guest.host.supply, cells=tuple(cells),
                               pools=_pools_back(guest))


def _pools_back(guest: Guest) -> tuple[supplies.devices.Pool, ...]:
    pools = {(pool.cell, pool.provider): pool
             for pool in guest.host.supply.pools or ()}
    had = {(pool.cell, pool.provider): pool.free
           for pool in guest.after.pools or ()}
    for pool in guest.before.pools or ():
        place = pool.cell, pool.provider
        taken = pool.free - had.get(place, 0)
        if taken:
            free = pools[place].free if place in pools else 0
            pools[place] = pool._replace(free=free + taken)
    return tuple(pools.values())


def _state(supply: supplies.Supply) -> Hashable:
    """Everything of a host on which placements and losses depend.

    Which CPUs are free does not count, but how many, and on how many whole
    cores.
    """
    return (
        tuple((len(cell.free),
               sum(core <= cell.free for core in cell.siblings),
               cell.memory_used_mib, tuple(pool.used for pool in cell.pages))
              for cell in supply.cells),
        tuple((pool.cell, pool.free) for pool in supply.pools or ()))
