# SPDX-License-Identifier: Apache-2.0

"""Compute a bound: the loss of a fleet without fragmentation.

The bound admits each request that fits when it arrives, as the strategies do.
It is not strict, because admitted requests keep later ones out: a strategy
that refuses a large guest may lose less as a result.
"""

import collections
import heapq
import time
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.fit import devices
from hpcvirt.fit import supply as supplies
from hpcvirt.fleet import guest as guests
from hpcvirt.simulate import outcome
from hpcvirt.simulate import requests as request_model

_PCPUS, _VCPUS, _MEMORY = 'PCPU', 'VCPU', 'MEMORY_MB'


def replay_as_one_host(fleet: Sequence[supplies.Supply],
                       requests: request_model.Requests,
                       on_progress: Callable[[int, int], None] | None = None,
                       ) -> outcome.ReplayOutcome:
    """Replay requests over one bin with the total resources of the fleet.

    The bin has CPUs, memory, pages and devices, but neither hosts nor host
    cells, so that it is never fragmented.

    :param on_progress: called after each request with the number of finished
        requests and of all requests
    """
    start = time.perf_counter()
    free, needs = _add_up(fleet, requests.flavors)
    leaving: list[tuple[float, int, Mapping[Hashable, float]]] = []
    for order, resident in enumerate(requests.residents):
        leaving.append((resident.end, order - len(requests.residents),
                        needs[resident.flavor]))
        for resource, amount in needs[resident.flavor].items():
            free[resource] -= amount
    heapq.heapify(leaving)
    fates: list[outcome.Cause | None] = []
    for order, arrival in enumerate(requests.arrivals):
        if arrival.flavor == request_model.NO_FLAVOR:
            fates.append(outcome.Cause.SIZE)
            continue
        while leaving and leaving[0][0] <= arrival.time:
            for resource, amount in heapq.heappop(leaving)[2].items():
                free[resource] += amount
        wanted = {resource: amount * arrival.count for resource, amount
                  in needs[arrival.flavor].items()}
        lacking = next((resource for resource, amount in wanted.items()
                        if free[resource] < amount), None)
        if lacking is None:
            for resource, amount in wanted.items():
                free[resource] -= amount
            heapq.heappush(leaving, (arrival.time + arrival.duration, order,
                                     wanted))
        fates.append(None if lacking is None else _cause(lacking))
        if on_progress is not None:
            on_progress(order + 1, len(requests.arrivals))
    return outcome.ReplayOutcome('pool', tuple(fates),
                                 seconds=time.perf_counter() - start)


def _cause(resource: Hashable) -> outcome.Cause:
    """Return the cause of a refusal for want of a resource."""
    if isinstance(resource, frozenset):
        return outcome.Cause.DEVICES
    return (outcome.Cause.PAGES if isinstance(resource, int)
            else outcome.Cause.CAPACITY)


def _add_up(fleet: Sequence[supplies.Supply],
            flavors: Sequence[request_model.RequestedFlavor],
            ) -> tuple[dict[Hashable, float],
                       list[Mapping[Hashable, float]]]:
    """Return the free resources of a fleet, and the needs of each flavor.

    The keys are names of resources, page sizes in KiB for memory in MiB, and
    sets of device pools for the PCI requests that they serve.
    """
    kinds: list[devices.Pool] = []
    counts: collections.Counter[int] = collections.Counter()
    for supply in fleet:
        for pool in supply.pools or ():
            kind = pool._replace(cell=None, free=0, provider=None)
            if kind not in kinds:
                kinds.append(kind)
            counts[kinds.index(kind)] += pool.free
    needs: list[Mapping[Hashable, float]] = [
        _needs(flavor.guest, kinds) for flavor in flavors]
    cells = [(cell, supply) for supply in fleet for cell in supply.cells]
    free: dict[Hashable, float] = {
        _PCPUS: sum(len(cell.free) for cell, _ in cells),
        _VCPUS: sum(len(cell.shared) * supply.cpu_ratio - cell.cpu_usage
                    for cell, supply in cells),
        _MEMORY: sum(
            cell.memory_mib * supply.ram_ratio - cell.memory_used_mib
            for cell, supply in cells)}
    for resource in {each for need in needs for each in need}:
        if isinstance(resource, frozenset):
            free[resource] = sum(counts[place] for place in resource)
        elif isinstance(resource, int):
            free[resource] = sum(
                pool.free for cell, _ in cells for pool in cell.pages
                if pool.size_kib == resource) * resource / 1024
    return free, needs


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
