# SPDX-License-Identifier: Apache-2.0

"""Find the cause of a refusal.

It is the first of these that is true:

* ``capacity``: the fleet has, in total, too few free CPUs of the kind that the
  guests need, or too little free memory;
* ``devices``: it has, in total, too few free devices for a PCI request;
* ``pages``: it has, in total, too few free pages of a requested size;
* ``devices``: the guests would be placed if they requested no devices;
* ``pages``: the guests would be placed if they needed no memory;
* ``fragmentation``: what the guests need is free, but scattered.
"""

import collections
import dataclasses
from collections.abc import Sequence

import numpy as np

from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fleet import guest as guests
from hpcvirt.simulate import outcome
from hpcvirt.simulate import requests
from hpcvirt.simulate import scheduler as schedulers
from hpcvirt.simulate import strategy as strategies


class Causes:
    """The causes of the refusals of a scheduler.

    To find them, it tries to place guests that need less, whose flavors follow
    those of the requests in the order of :func:`flavors`. It always packs them
    on the hosts with the fewest free CPUs, whatever the strategy.
    """

    def __init__(self, scheduler: schedulers.Scheduler,
                 own: Sequence[requests.RequestedFlavor]) -> None:
        self._table = scheduler.table
        self._packer = schedulers.Scheduler(
            scheduler.table, flavors(own), strategies.Strategy(
                'best-fit', strategies.BEST_FIT, scheduler.packing))
        self._own = own

    def find(self, number: int, count: int) -> outcome.Cause:
        """Return the cause of the refusal of the last request.

        :param number: number of its flavor
        :param count: number of its guests
        """
        flavor = self._own[number]
        if self._lacks_capacity(flavor, count):
            return outcome.Cause.CAPACITY
        demand = flavor.guest.demand
        if any(self._free_devices(request) < request.count * count
               for request in demand.requests):
            return outcome.Cause.DEVICES
        if any(self._table.free_pages[size] * size < mib * count * 1024
               for size, mib in _pages_mib(demand).items()):
            return outcome.Cause.PAGES
        if demand.requests and self._fits(len(self._own) + number, count):
            return outcome.Cause.DEVICES
        if self._fits(2 * len(self._own) + number, count):
            return outcome.Cause.PAGES
        return outcome.Cause.FRAGMENTATION

    def _fits(self, number: int, count: int) -> bool:
        placed = self._packer.place(number, count)
        self._packer.remove(placed)
        return bool(placed)

    def _lacks_capacity(self, flavor: requests.RequestedFlavor,
                        count: int) -> bool:
        sums = flavor.guest.sums
        table = self._table
        return bool(
            table.free_pcpus.sum() < sums.pcpus * count
            or table.shared_left.sum() < sums.vcpus * count
            or table.memory_left.sum() < sums.memory_mib * count)

    def _free_devices(self, request: devices.DeviceRequest) -> int:
        table = self._table
        return sum(
            pool.free for host in np.flatnonzero(table.free_devices).tolist()
            for pool in table.supplies[host].pools or ()
            if devices.serves(pool, request))


def flavors(own: Sequence[requests.RequestedFlavor]) -> tuple[
        requests.RequestedFlavor, ...]:
    """Return flavors, then the same without devices and without memory."""
    return (*own, *(_changed(flavor, dataclasses.replace(
        flavor.guest.demand, requests=())) for flavor in own),
        *(_without_memory(flavor) for flavor in own))


def _without_memory(
        flavor: requests.RequestedFlavor) -> requests.RequestedFlavor:
    demand = flavor.guest.demand
    changed = _changed(flavor, dataclasses.replace(demand, cells=tuple(
        dataclasses.replace(cell, memory_mib=0) for cell in demand.cells)))
    guest = dataclasses.replace(
        changed.guest, sums=changed.guest.sums._replace(memory_mib=0))
    return dataclasses.replace(
        changed, flavor=dataclasses.replace(flavor.flavor, ram_mib=0),
        guest=guest)


def _changed(flavor: requests.RequestedFlavor,
             demand: demands.Demand) -> requests.RequestedFlavor:
    guest: guests.Guest = dataclasses.replace(flavor.guest, demand=demand)
    return dataclasses.replace(flavor, guest=guest)


def _pages_mib(demand: demands.Demand) -> dict[int, int]:
    needed: collections.Counter[int] = collections.Counter()
    for cell in demand.cells:
        if cell.page_kib is not None and cell.page_kib > 0:
            needed[int(cell.page_kib)] += cell.memory_mib
    return needed
