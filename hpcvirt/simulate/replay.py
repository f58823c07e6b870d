# SPDX-License-Identifier: Apache-2.0

"""Replay requests over a fleet, whose guests start and end.

At the time of a request, guests whose lives are over are removed first. Then
all guests of the request are placed at once, or the request is lost. The cause
is the first of these that is true:

* ``capacity``: the hosts that may take the guests by their traits have, in
  total, too few free CPUs of the kind that these need, or too little free
  memory;
* ``devices``: they have, in total, too few free devices for a PCI request;
* ``pages``: they have, in total, too few free pages of a requested size;
* ``devices``: the guests would be placed if they requested no devices;
* ``pages``: the guests would be placed if they needed no memory;
* ``fragmentation``: what the guests need is free, but scattered.
"""

import dataclasses
import math
from collections.abc import Callable
from collections.abc import Sequence

import numpy as np

from hpcvirt.fit import devices
from hpcvirt.fit import guest as guests
from hpcvirt.fit import placement
from hpcvirt.simulate import host_table
from hpcvirt.simulate import moving
from hpcvirt.simulate import outcome
from hpcvirt.simulate import requests as request_model
from hpcvirt.simulate import scheduler as schedulers
from hpcvirt.simulate import strategy as strategies


def replay(strategy: strategies.Strategy,
           fleet: Sequence[placement.HostState],
           requests: request_model.Requests,
           on_progress: Callable[[int, int], None] | None = None,
           ) -> outcome.ReplayOutcome:
    """Replay all requests with one strategy.

    :param fleet: the hosts before the first request, in the order of
        nova-scheduler
    :param on_progress: see :func:`run_events`
    """
    table = host_table.HostTable(fleet, relax_flavors(requests.flavors),
                                 requests.residents)
    return run_events(requests, schedulers.Scheduler(
        table, requests.flavors, strategy), on_progress)


def run_events(requests: request_model.Requests,
               scheduler: schedulers.Scheduler,
               on_progress: Callable[[int, int], None] | None = None,
               ) -> outcome.ReplayOutcome:
    """Place all requests with a scheduler.

    :param scheduler: its table must have the flavors of
        :func:`relax_flavors`
    :param on_progress: called after each request with the number of finished
        requests and of all requests
    """
    running = host_table.Population(requests.flavors)
    for resident in requests.residents:
        running.start([scheduler.table.settle(resident)], resident.end)
    why = Causes(scheduler, requests.flavors)
    mover = moving.Mover(scheduler, running, requests.flavors)
    sampler = outcome.FleetSampler(scheduler, running, requests)
    fates: list[outcome.Cause | None] = []
    for number, arrival in enumerate(requests.arrivals, 1):
        while (due := min(running.next_end,
                          mover.next_end)) <= arrival.time:
            sampler.sample_until(due)
            if mover.next_end == due:
                mover.end_move(due)
                continue
            ended = running.end_next()
            scheduler.remove(ended)
            if mover.moved in ended:
                mover.end_move(due)
        sampler.sample_until(arrival.time)
        if arrival.flavor == request_model.NO_FLAVOR:
            fates.append(outcome.Cause.SIZE)
            continue
        cause = None
        placed = scheduler.place(arrival.flavor, arrival.count)
        if not placed:
            cause = why.find(arrival.flavor, arrival.count)
            if cause is not outcome.Cause.CAPACITY:
                placed = mover.rescue(arrival.flavor, arrival.count)
        if placed:
            cause = None
            running.start(placed, arrival.time + arrival.duration)
        fates.append(cause)
        mover.observe(arrival, why.fits)
        scheduler.known.limit_states()
        if on_progress is not None:
            on_progress(number, len(requests.arrivals))
    sampler.sample_until(math.inf)
    return outcome.ReplayOutcome(tuple(fates), tuple(sampler.samples),
                                 mover.moves)


class Causes:
    """The causes of the refusals of a scheduler.

    To find them, it tries to place guests that need less, whose flavors follow
    those of the requests as in :func:`relax_flavors`. It always packs them on
    the hosts with the fewest free CPUs, whatever the strategy.
    """

    def __init__(self, scheduler: schedulers.Scheduler,
                 own: Sequence[guests.Guest]) -> None:
        self._table = scheduler.table
        self._packer = schedulers.Scheduler(
            scheduler.table, relax_flavors(own), dataclasses.replace(
                scheduler.strategy, multipliers=strategies.BEST_FIT))
        self._own = own

    def find(self, number: int, count: int) -> outcome.Cause:
        """Return the cause of the refusal of the last request.

        :param number: number of its flavor
        :param count: number of its guests
        """
        flavor = self._own[number]
        hosts = self._packer.find_open(number)
        if self._lacks_capacity(flavor, count, hosts):
            return outcome.Cause.CAPACITY
        demand = flavor.demand
        if any(self._free_devices(request, hosts) < request.count * count
               for request in demand.requests):
            return outcome.Cause.DEVICES
        if any(self._free_kib(size, hosts) < mib * count * 1024
               for size, mib in flavor.pages_mib.items()):
            return outcome.Cause.PAGES
        if demand.requests and self.fits(len(self._own) + number, count):
            return outcome.Cause.DEVICES
        if self.fits(2 * len(self._own) + number, count):
            return outcome.Cause.PAGES
        return outcome.Cause.FRAGMENTATION

    def fits(self, number: int, count: int) -> bool:
        """Whether the guests of a request would be placed, if packed."""
        placed = self._packer.place(number, count)
        self._packer.remove(placed)
        return bool(placed)

    def _lacks_capacity(self, flavor: guests.Guest, count: int,
                        hosts: host_table.Booleans) -> bool:
        sums = flavor.sums
        table = self._table
        return bool(
            table.free_pcpus[hosts].sum() < sums.pcpus * count
            or table.shared_left[hosts].sum() < sums.vcpus * count
            or table.memory_left[hosts].sum() < sums.memory_mib * count)

    def _free_devices(self, request: devices.DeviceRequest,
                      hosts: host_table.Booleans) -> int:
        table = self._table
        free = 0
        for host in np.flatnonzero(hosts & (table.free_devices > 0)).tolist():
            for pool in table.supplies[host].pools or ():
                if devices.serves(pool, request):
                    free += pool.free
        return free

    def _free_kib(self, size: int, hosts: host_table.Booleans) -> float:
        free = self._table.free_pages.get(size)
        return 0.0 if free is None else float(free[hosts].sum()) * size


def relax_flavors(own: Sequence[guests.Guest],
                  ) -> tuple[guests.Guest, ...]:
    """Return flavors, then the same without devices and without memory."""
    return (*own, *map(_without_devices, own), *map(_without_memory, own))


def _without_devices(flavor: guests.Guest) -> guests.Guest:
    demand = dataclasses.replace(flavor.demand, requests=(), device_set=None)
    return dataclasses.replace(flavor, demand=demand)


def _without_memory(flavor: guests.Guest) -> guests.Guest:
    cells = tuple(dataclasses.replace(cell, memory_mib=0)
                  for cell in flavor.demand.cells)
    return dataclasses.replace(
        flavor, demand=dataclasses.replace(flavor.demand, cells=cells),
        sums=flavor.sums._replace(memory_mib=0))
