# SPDX-License-Identifier: Apache-2.0

"""Place the guests of requests on hosts, as nova-scheduler does."""

import collections
import dataclasses
from collections.abc import Sequence

import numpy as np

from hpcvirt.fit import demand as demands
from hpcvirt.fit import guest as guests
from hpcvirt.fit import move_check
from hpcvirt.fit import placement
from hpcvirt.simulate import choice
from hpcvirt.simulate import fit_cache
from hpcvirt.simulate import host_table
from hpcvirt.simulate import strategy as strategies


class Scheduler:
    """A scheduler that chooses hosts with one strategy.

    :ivar table: the hosts
    :ivar known: cache of the fits of the flavors
    """

    def __init__(self, table: host_table.HostTable,
                 flavors: Sequence[guests.Guest],
                 strategy: strategies.Strategy) -> None:
        self.table = table
        self._flavors = flavors
        self._demands = [_claimed(flavor.demand) for flavor in flavors]
        self._open = [table.find_open(flavor) for flavor in flavors]
        self.strategy = strategy
        if strategy.fullest is not None:
            table.set_packing(strategy.fullest)
        self.known = fit_cache.FitCache(table, self._demands)
        self._everywhere: host_table.Integers = np.arange(len(table))
        self._weighers = choice.make_weighers(strategy.multipliers)

    def place(self, number: int, count: int) -> list[host_table.Running]:
        """Place all guests of a request, or none.

        :param number: the number of the flavor
        :returns: empty if a guest has no host
        """
        hosts = self._everywhere
        placed: list[host_table.Running] = []
        picks: dict[int, int] = {}
        hosts = hosts[self._has_sums(number, hosts)]
        hosts = hosts[self.known.fits(number, hosts)]
        while len(placed) < count:
            if placed:
                hosts = hosts[self.known.fits(number, hosts)]
            hosts = _sift_alternates(self.known, number,
                                     self._demands[number], hosts, count > 1)
            if not len(hosts):
                break
            totals = choice.sums(choice.Look(
                self.table, self.known, number, self._demands[number], hosts,
                picks), self._weighers) if len(hosts) > 1 else np.zeros(1)
            if count == 1:
                host = int(hosts[totals.argmax()])
            else:
                hosts = hosts[np.argsort(-totals, kind='stable')]
                found = next((
                    each for each in hosts[self._has_sums(
                        number, hosts)].tolist()
                    if self._has_again(each, placed)), None)
                if found is None:
                    break
                host = found
                picks[host] = picks.get(host, 0) + 1
            placed.append(self.table.place(
                host, number, self.known.placement(number, host)))
        if len(placed) == count:
            return placed
        self.remove(placed)
        return []

    def _has_again(self, host: int,
                   placed: Sequence[host_table.Running]) -> bool:
        """Whether Placement can allocate the same devices of a host again.

        The scheduler claims the same allocation candidate of a host, with the
        same providers, for all guests of a request.
        """
        first = next((guest for guest in placed if guest.host == host), None)
        return first is None or all(
            pool.free >= own for pool, own in zip(
                self.table.supplies[host].pools or (), first.holding.devices,
                strict=False) if not pool.is_pci)

    def find_open(self, number: int) -> host_table.Booleans:
        """Return for each host whether its traits admit a flavor."""
        return self._open[number]

    def remove(self, guests: Sequence[host_table.Running]) -> None:
        """Remove guests from their hosts, the last one first."""
        for running in reversed(guests):
            self.table.remove(running)

    def _has_sums(self, number: int,
                  hosts: host_table.Integers) -> host_table.Booleans:
        """Return for each host whether Placement can allocate a guest."""
        sums = self._flavors[number].sums
        table = self.table
        able = self._open[number][hosts]
        able &= table.memory_left[hosts] >= sums.memory_mib
        # Overcommit does not let a single guest exceed the host (max_unit).
        able &= table.memory[hosts] >= sums.memory_mib
        if sums.pcpus:
            able &= table.free_pcpus[hosts] >= sums.pcpus
        if sums.vcpus:
            able &= table.shared_left[hosts] >= sums.vcpus
            able &= table.shared[hosts] >= sums.vcpus
        if any(request.one_pool for request in
               self._flavors[number].demand.requests):
            able &= self.known.figures(
                ('cards', number), hosts,
                lambda host: self._has_cards(number, host)) > 0
        return able

    def _has_cards(self, number: int, host: int) -> bool:
        """Whether Placement can allocate the vGPUs of a guest."""
        supply = self.table.supplies[host]
        return all(
            placement.most_of_one_pool(request, supply)
            >= request.count for request
            in self._flavors[number].demand.requests
            if request.one_pool)


def _claimed(demand: demands.Demand) -> demands.Demand:
    """Remove the requests that Placement allocates and no claim checks."""
    return dataclasses.replace(demand, requests=tuple(
        request for request in demand.requests if not request.one_pool))


def _sift_alternates(known: fit_cache.FitCache, number: int,
                     demand: demands.Demand, hosts: host_table.Integers,
                     several: bool) -> host_table.Integers:
    """Remove the hosts that must not become alternates.

    As in :mod:`hpcvirt.nova.decision` for HPCTopologyFilter, a guest whose
    cells differ is not sent to a host on which it would be misplaced after it
    failed to start on another. It is assumed that Nova tries several hosts
    (``[scheduler]max_attempts``), as by default.

    :param number: the number of the demand
    :param hosts: the hosts on which it fits
    :param several: whether the request is for several guests
    """
    if not demand.cells or not move_check.needs_retry_check(demand) or not (
            several or len(hosts) > 1):
        return hosts
    pages = [known.placement(number, host).pages_kib
             for host in hosts.tolist()]
    counts = collections.Counter(pages)
    safe = [_is_safe(known, number, demand, host, frozenset(
        sizes for sizes, count in counts.items()
        if several or count > (sizes == own)))
        for host, own in zip(hosts.tolist(), pages, strict=True)]
    if not several and not any(safe):
        return hosts[:1]
    return hosts[np.array(safe, dtype=np.bool_)]


def _is_safe(known: fit_cache.FitCache, number: int, demand: demands.Demand,
             host: int, possible: frozenset[move_check.Pages]) -> bool:
    def check(host: int) -> float:
        return move_check.check_retry(
            demand, known.table.supplies[host], possible) is None
    return bool(known.figures(('safe', number, possible), np.array([host]),
                              check)[0])
