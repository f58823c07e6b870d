# SPDX-License-Identifier: Apache-2.0

"""Bounds: what is lost even if no placement has to last.

Both bounds admit each request that they can place when it comes, as the
strategies do. What was admitted before keeps others out, so that neither is a
strict bound: a strategy that had to refuse a large guest may lose less for
it.

To make room for a request, one bound packs all guests of some hosts anew: in
decreasing order, those that need devices first, each on the best host for it.
Hosts with many free CPUs are packed first, and more of them if that was not
enough, so that a large fleet is not packed anew as a whole for each request.
"""

import collections
import dataclasses
import heapq
import itertools
import time
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Mapping
from collections.abc import Sequence

import numpy as np

from hpcvirt.fit import devices
from hpcvirt.fit import supply as supplies
from hpcvirt.fleet import guest as guests
from hpcvirt.simulate import causes
from hpcvirt.simulate import host_table
from hpcvirt.simulate import outcome
from hpcvirt.simulate import replay
from hpcvirt.simulate import requests as request_model
from hpcvirt.simulate import scheduler as schedulers
from hpcvirt.simulate import strategy as strategies

#: How many hosts are packed anew, at the first attempt and the next ones.
HOSTS = (4, 16, 64)

#: How guests are chosen a host when they are packed.
_PACKERS = 'best-fit+fullest,best-fit'
_Order = Callable[[request_model.RequestedFlavor], tuple[float, ...]]
#: The guests with the largest of these values are packed first.
_ORDERS: tuple[_Order, ...] = (
    lambda flavor: (len(flavor.guest.demand.requests), flavor.cpus,
                    flavor.flavor.ram_mib),
    lambda flavor: (len(flavor.guest.demand.requests), max(
        (cell.pcpus for cell in flavor.guest.demand.cells), default=0),
        flavor.cpus))

#: The number of a flavor, and who has it now; None for the request.
_Guest = tuple[int, host_table.Running | None]
#: The same, and where the guest would be.
_Packed = tuple[int, host_table.Running | None, host_table.Running]


class Repacker:
    """Makes room for requests by packing guests anew."""

    def __init__(self, fleet: Sequence[supplies.Supply],
                 scheduler: schedulers.Scheduler,
                 running: host_table.Population,
                 flavors: Sequence[request_model.RequestedFlavor]) -> None:
        self._table = scheduler.table
        self._running = running
        self._flavors = flavors
        # The hosts once more, without the guests of the replay.
        self._packers = [
            schedulers.Scheduler(host_table.HostTable(fleet, flavors),
                                 flavors, strategy)
            for strategy in strategies.parse(_PACKERS, 0)]

    def __call__(self, number: int, count: int) -> list[host_table.Running]:
        """Place the guests of a request, if packing anew makes room for them.

        :param number: of their flavor
        """
        emptiest = self._emptiest(number)
        needed = self._flavors[number].guest.sums.pcpus * count
        for most, before in zip(HOSTS, (0, *HOSTS), strict=False):
            hosts = emptiest[:most]
            if before >= len(emptiest):
                break
            if self._table.free_pcpus[hosts].sum() < needed:
                continue
            packed = self._pack(hosts, number, count)
            if packed:
                return self._adopt(packed)
        return []

    def _emptiest(self, number: int) -> host_table.Integers:
        table = self._table
        free = table.free_pcpus + table.shared_left
        if self._flavors[number].guest.demand.requests:
            # Those that have devices come first.
            free = free + (table.free_devices > 0) * (free.max() + 1)
        return np.argsort(-free, kind='stable')

    def _pack(self, hosts: host_table.Integers, number: int,
              count: int) -> list[_Packed]:
        """Pack the guests of some hosts, and those of a request.

        :returns: all of them, or nothing if some have no place
        """
        among = np.sort(hosts)
        guests: list[_Guest] = [
            (guest.flavor, guest) for host in hosts.tolist()
            for guest in self._running.on(host)]
        guests += [(number, None)] * count
        for packer, order in itertools.product(self._packers, _ORDERS):
            packer.known.keep_few()
            packed: list[_Packed] = []
            for flavor, old in _sorted(guests, order, self._flavors):
                placed = packer.place_among(among, flavor, 1)
                if not placed:
                    break
                packed.append((flavor, old, placed[0]))
            packer.remove([new for *_, new in packed])
            if len(packed) == len(guests):
                return packed
        return []

    def _adopt(self, packed: Sequence[_Packed],
               ) -> list[host_table.Running]:
        """Let the guests be where they were packed.

        :returns: the guests of the request
        """
        for _, old, _ in packed:
            if old is not None:
                self._table.remove(old)
        own = []
        for flavor, old, new in packed:
            guest = self._table.place(new.host, flavor,
                                      new.holding.placement)
            if old is None:
                own.append(guest)
            else:
                self._running.replace(old, guest)
        return own


def _sorted(guests: Sequence[_Guest], order: _Order,
            flavors: Sequence[request_model.RequestedFlavor]) -> list[_Guest]:
    return sorted(guests, key=lambda guest: order(flavors[guest[0]]),
                  reverse=True)


_PCPUS, _VCPUS, _MEMORY = 'PCPU', 'VCPU', 'MEMORY_MB'


def replay_as_one_host(fleet: Sequence[supplies.Supply],
                       requests: request_model.Requests,
                       on_progress: Callable[[int, int], None] | None = None,
                       ) -> outcome.ReplayOutcome:
    """Replay requests over one bin that has the sums of the fleet.

    It has CPUs, memory, pages and devices, but neither hosts nor cells, so
    that nothing is ever fragmented.

    :param on_progress: is called for each request with the number of those
        that are done, and of all
    """
    start = time.perf_counter()
    sums = add_up(fleet, requests.flavors)
    free = dict(sums.free)
    leaving: list[tuple[float, int, Mapping[Hashable, float]]] = []
    fates: list[outcome.Cause | None] = []
    for order, arrival in enumerate(requests.arrivals):
        while leaving and leaving[0][0] <= arrival.time:
            for resource, amount in heapq.heappop(leaving)[2].items():
                free[resource] += amount
        wanted = {resource: amount * arrival.count for resource, amount
                  in sums.needs[arrival.flavor].items()}
        lacking = next((resource for resource, amount in wanted.items()
                        if free[resource] < amount), None)
        if lacking is None:
            for resource, amount in wanted.items():
                free[resource] -= amount
            heapq.heappush(leaving, (arrival.time + arrival.duration, order,
                                     wanted))
        fates.append(None if lacking is None else sums.cause(lacking))
        if on_progress is not None:
            on_progress(order + 1, len(requests.arrivals))
    return outcome.ReplayOutcome('pool', tuple(fates),
                                 seconds=time.perf_counter() - start)


def replay_repacked(fleet: Sequence[supplies.Supply],
                    requests: request_model.Requests,
                    on_progress: Callable[[int, int], None] | None = None,
                    ) -> outcome.ReplayOutcome:
    """Replay requests where all guests may be packed anew at any time.

    A request that hpcvirt's weighers cannot place is accepted nevertheless if
    it can be placed together with all guests that are running.

    :param on_progress: as for :func:`replay_as_one_host`
    """
    start = time.perf_counter()
    strategy, = strategies.parse('hpcvirt+fullest', 0)
    table = host_table.HostTable(fleet, causes.flavors(requests.flavors))
    scheduler = schedulers.Scheduler(table, requests.flavors, strategy)
    running = host_table.Population(requests.flavors)
    repacker = Repacker(fleet, scheduler, running, requests.flavors)
    fates, samples = replay.run_events(requests, scheduler, running, repacker,
                                       on_progress)
    return outcome.ReplayOutcome('repacking', fates, samples,
                                 seconds=time.perf_counter() - start)


@dataclasses.dataclass(frozen=True)
class SummedFleet:
    """What the hosts of a fleet have in total, and what guests need of it.

    Devices are counted for each request that flavors make, by the pools that
    serve it, and pages in MiB for each size that flavors name.

    :ivar free: what the fleet has
    :ivar needs: what a guest of each flavor needs
    """

    free: Mapping[Hashable, float]
    needs: Sequence[Mapping[Hashable, float]]

    @staticmethod
    def cause(resource: Hashable) -> outcome.Cause:
        """Say why a request was refused that lacked a resource."""
        if isinstance(resource, frozenset):
            return outcome.Cause.DEVICES
        return (outcome.Cause.PAGES if isinstance(resource, int)
                else outcome.Cause.CAPACITY)


def add_up(fleet: Sequence[supplies.Supply],
           flavors: Sequence[request_model.RequestedFlavor]) -> SummedFleet:
    """Add up what a fleet has of everything that flavors need."""
    kinds: list[devices.Pool] = []
    counts: collections.Counter[int] = collections.Counter()
    for supply in fleet:
        for pool in supply.pools or ():
            kind = pool._replace(cell=None, free=0, provider=None)
            if kind not in kinds:
                kinds.append(kind)
            counts[kinds.index(kind)] += pool.free
    needs = [_needs(flavor.guest, kinds) for flavor in flavors]
    free: dict[Hashable, float] = {
        _PCPUS: sum(len(cell.free) for supply in fleet
                    for cell in supply.cells),
        _VCPUS: sum(
            len(cell.shared) * supply.cpu_ratio - cell.cpu_usage
            for supply in fleet for cell in supply.cells),
        _MEMORY: sum(
            cell.memory_mib * supply.ram_ratio - cell.memory_used_mib
            for supply in fleet for cell in supply.cells)}
    for resource in {each for need in needs for each in need}:
        if isinstance(resource, frozenset):
            free[resource] = sum(counts[place] for place in resource)
        elif isinstance(resource, int):
            free[resource] = sum(
                pool.free for supply in fleet for cell in supply.cells
                for pool in cell.pages
                if pool.size_kib == resource) * resource / 1024
    return SummedFleet(free, needs)


def _needs(guest: guests.Guest,
           kinds: Sequence[devices.Pool]) -> dict[Hashable, float]:
    needs: collections.Counter[Hashable] = collections.Counter({
        _PCPUS: guest.sums.pcpus, _VCPUS: guest.sums.vcpus,
        _MEMORY: guest.sums.memory_mib})
    for request in guest.demand.requests:
        needs[frozenset(place for place, kind in enumerate(kinds)
                        if devices.serves(kind, request))] += request.count
    for cell in guest.demand.cells:
        if cell.page_kib is not None and cell.page_kib > 0:
            needs[int(cell.page_kib)] += cell.memory_mib
    return {resource: amount for resource, amount in needs.items() if amount}
