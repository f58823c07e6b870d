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

"""Model nova-scheduler and the claims of nova-compute.

:mod:`hpcvirt.fit.claim` predicts which hosts can hold a guest and on which
cells it is placed; CPUs, memory, pages and devices are allocated as by the
claim. The host is chosen by weighers as in Nova: each weigher normalizes its
weights over the hosts and multiplies them.
"""

import dataclasses
import heapq
from collections.abc import Callable
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

#: The default multipliers of nova-scheduler.
UPSTREAM = {'ram': 1.0, 'cpu': 1.0, 'disk': 1.0, 'pci': 1.0}
#: The multipliers that pack guests with the weighers of Nova alone.
PACKING = {'ram': -1.0, 'cpu': -1.0, 'disk': -1.0, 'pci': 1.0}
#: hpcvirt's weigher, with its default multiplier, added to Nova's own.
HPCVIRT = {**UPSTREAM, 'fragmentation': 20.0}

_FROM_ZERO = frozenset({'ram', 'cpu', 'disk'})


@dataclasses.dataclass(frozen=True)
class Arrival:
    """A request for one or more guests, which are all placed or refused.

    :ivar time: time of the request, in the unit of ``duration``
    :ivar flavor: number of the flavor
    :ivar count: number of guests
    """

    time: float
    duration: float
    flavor: int
    count: int = 1


@dataclasses.dataclass
class Tally:
    """Counts of the requests.

    :ivar offered: CPUs x time of all requests
    :ivar lost: CPUs x time of the refused requests
    """

    requests: int = 0
    refused: int = 0
    offered: float = 0.0
    lost: float = 0.0

    def count(self, work: float, placed: bool) -> None:
        self.requests += 1
        self.offered += work
        if not placed:
            self.refused += 1
            self.lost += work


@dataclasses.dataclass
class Answer:
    """Whether and where a host can hold a guest of one flavor."""

    placement: placements.Placement | None
    loss: float | None = None


class Host:
    """A compute host.

    :ivar answers: the answers for each state of a host and each flavor,
        shared by the hosts of a simulation because most states recur
    """

    def __init__(self, kind: int, supply: supplies.Supply,
                 answers: dict[Hashable, dict[int, Answer]]) -> None:
        self._kind = kind
        self._all_answers = answers
        self.supply = supply
        self.free_mib = sum(cell.memory_mib for cell in supply.cells)
        self.vcpus_used = 0
        self._answers: dict[int, Answer] = {}
        self.set_supply(supply)

    def answer(self, number: int, demand: demands.Demand,
               packing: bool) -> Answer:
        """Predict whether and where a guest of a flavor is placed."""
        if number not in self._answers:
            predicted = claim.predict(demand, self.supply, packing)
            self._answers[number] = Answer(
                predicted if isinstance(predicted, placements.Placement)
                else None)
        return self._answers[number]

    def loss(self, number: int, demand: demands.Demand) -> float:
        """Measure the room for larger guests that a guest would destroy."""
        answer = self._answers[number]
        if answer.loss is None:
            if answer.placement is None:
                raise ValueError('a guest that does not fit has no loss')
            answer.loss = round(
                score.loss(demand, self.supply, answer.placement), 1)
        return answer.loss

    def set_supply(self, supply: supplies.Supply) -> None:
        """Change the state of the host."""
        self.supply = supply
        self._answers = self._all_answers.setdefault(
            (self._kind, _state(supply)), {})

    def charge(self, demand: demands.Demand, sign: int) -> None:
        """Count a guest that has started (1) or ended (-1)."""
        self.free_mib -= sign * sum(c.memory_mib for c in demand.cells)
        self.vcpus_used += sign * sum(c.pcpus + c.vcpus
                                      for c in demand.cells)

    def weigh(self, weigher: str, number: int,
              demand: demands.Demand) -> float:
        """Weigh the host like Nova's weigher of that name."""
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
        if weigher == 'locality':
            placement = self._answers[number].placement
            return score.locality(demand, self.supply, placement)
        # Guests boot from volumes: all hosts have the same disk.
        return 0.0


def choose(hosts: Sequence[Host], number: int, demand: demands.Demand,
           multipliers: Mapping[str, float], packing: bool) -> Host | None:
    """Choose a host like nova-scheduler: the first of the best hosts."""
    able = [host for host in hosts
            if host.answer(number, demand, packing).placement is not None]
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
        packing: bool, warm_up: int,
        make_room: 'MakeRoom | None' = None) -> dict[int, Tally]:
    """Simulate requests.

    :param multipliers: the multipliers of the weighers
    :param packing: ``packing_host_numa_cells_allocation_strategy``
    :param warm_up: number of requests that are not counted
    :param make_room: moves other guests for a request that was refused
    :returns: a tally for each flavor
    """
    kinds: dict[int, int] = {}
    answers: dict[Hashable, dict[int, Answer]] = {}
    hosts = [Host(kinds.setdefault(id(supply), len(kinds)), supply, answers)
             for supply in fleet]
    tallies = {number: Tally() for number in range(len(flavors))}
    leaving: list[tuple[float, int, list[Guest]]] = []
    for order, arrival in enumerate(arrivals):
        while leaving and leaving[0][0] <= arrival.time:
            remove(heapq.heappop(leaving)[2])
        demand = flavors[arrival.flavor]
        guests: list[Guest] = []
        for _ in range(arrival.count):
            host = choose(hosts, arrival.flavor, demand, multipliers, packing)
            if host is None:
                break
            guests.append(place(host, arrival.flavor, demand, packing))
        placed = len(guests) == arrival.count
        if not placed and make_room is not None:
            remove(guests)
            guests = [
                place(host, arrival.flavor, demand, packing)
                for host in make_room(hosts, [own for *_, own in leaving],
                                      demand, arrival.count)]
            placed = bool(guests)
        if placed:
            heapq.heappush(leaving, (arrival.time + arrival.duration, order,
                                     guests))
        else:
            remove(guests)
        if order >= warm_up:
            tallies[arrival.flavor].count(
                cpus(demand) * arrival.count * arrival.duration, placed)
    return tallies


def pooled(fleet: Iterable[supplies.Supply],
           flavors: Sequence[demands.Demand], arrivals: Sequence[Arrival],
           warm_up: int) -> Tally:
    """Simulate one pool of CPUs, whose losses no placement can avoid."""
    free = sum(len(cell.dedicated) for supply in fleet
               for cell in supply.cells)
    leaving: list[tuple[float, int]] = []
    tally = Tally()
    for order, arrival in enumerate(arrivals):
        while leaving and leaving[0][0] <= arrival.time:
            free += heapq.heappop(leaving)[1]
        wanted = cpus(flavors[arrival.flavor]) * arrival.count
        placed = wanted <= free
        if placed:
            free -= wanted
            heapq.heappush(leaving, (arrival.time + arrival.duration,
                                     wanted))
        if order >= warm_up:
            tally.count(wanted * arrival.duration, placed)
    return tally


def cpus(demand: demands.Demand) -> int:
    """Count the dedicated CPUs of a guest."""
    return sum(cell.pcpus + cell.emulator_pcpus for cell in demand.cells)


@dataclasses.dataclass(frozen=True)
class Guest:
    """A guest, and its host before and after it was placed."""

    host: Host
    number: int
    demand: demands.Demand
    placement: placements.Placement
    before: supplies.Supply
    after: supplies.Supply


#: Moves guests among the hosts, given the guests of each request and how many
#: guests are requested; returns the host for each of these, or nothing.
MakeRoom = Callable[[Sequence[Host], Sequence[list[Guest]], demands.Demand,
                     int], Sequence[Host]]


def place(host: Host, number: int, demand: demands.Demand,
          packing: bool) -> Guest:
    """Place a guest on a host that can hold it."""
    placement = host.answer(number, demand, packing).placement
    if placement is None:
        raise ValueError('the host cannot hold the guest')
    before = host.supply
    after = allocation.allocate(demand, before, placement)
    host.set_supply(after)
    host.charge(demand, 1)
    return Guest(host, number, demand, placement, before, after)


def remove(guests: Sequence[Guest]) -> None:
    """Remove guests from their hosts."""
    for guest in reversed(guests):
        guest.host.set_supply(_freed(guest))
        guest.host.charge(guest.demand, -1)


def _freed(guest: Guest) -> supplies.Supply:
    """Return the host with the resources of the guest free again."""
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
                               pools=_freed_pools(guest))


def _freed_pools(guest: Guest) -> tuple[supplies.devices.Pool, ...]:
    pools = {(pool.cell, pool.provider): pool
             for pool in guest.host.supply.pools or ()}
    after = {(pool.cell, pool.provider): pool.free
           for pool in guest.after.pools or ()}
    for pool in guest.before.pools or ():
        place = pool.cell, pool.provider
        taken = pool.free - after.get(place, 0)
        if taken:
            free = pools[place].free if place in pools else 0
            pools[place] = pool._replace(free=free + taken)
    return tuple(pools.values())


def _state(supply: supplies.Supply) -> Hashable:
    """Return all of a host on which placements and losses depend.

    Only the number of free CPUs and of whole free cores matters, not which
    CPUs are free.
    """
    return (
        tuple((len(cell.free),
               sum(core <= cell.free for core in cell.siblings),
               cell.memory_used_mib, tuple(pool.used for pool in cell.pages))
              for cell in supply.cells),
        tuple((pool.cell, pool.free) for pool in supply.pools or ()))
