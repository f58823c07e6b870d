# SPDX-License-Identifier: Apache-2.0

"""The outcome of a replay, with samples of the fleet over time."""

import dataclasses
import enum
import itertools
import math
import operator
from collections.abc import Sequence

import numpy as np

from hpcvirt.fit import capacity
from hpcvirt.fit import claim
from hpcvirt.fit import guest as guests
from hpcvirt.fit import supply as supplies
from hpcvirt.simulate import host_table
from hpcvirt.simulate import requests
from hpcvirt.simulate import scheduler as schedulers

#: Limit of the samples of a replay.
MAX_SAMPLES = 500


class Cause(enum.StrEnum):
    """Why a request was refused.

    A request is refused for devices or pages if it would have been placed
    without needing them, and for its size if no flavor is large enough.
    """

    CAPACITY = 'capacity'
    FRAGMENTATION = 'fragmentation'
    DEVICES = 'devices'
    PAGES = 'pages'
    SIZE = 'size'


@dataclasses.dataclass(frozen=True, slots=True)
class FleetSample:
    """The fleet at one time.

    :ivar time: in seconds from the start of the log
    :ivar busy_cpus: CPUs of the guests
    :ivar stranded_cpus: free CPUs that no guest of the smallest flavor
        without devices can use
    :ivar stranded_pages_mib: memory of free pages that no such guest can use
    :ivar guests: number of running guests
    :ivar across_sockets: number of guests on more than one socket
    :ivar with_devices: number of guests with devices and host cells
    :ivar local: number of these that have their devices on their host cells
    """

    time: float
    busy_cpus: int
    stranded_cpus: int
    stranded_pages_mib: int
    guests: int
    across_sockets: int
    with_devices: int = 0
    local: int = 0


@dataclasses.dataclass(frozen=True)
class ReplayOutcome:
    """The replay of all requests with one strategy.

    :ivar fates: for each arrival the cause of its refusal, or None
    :ivar moves: number of moves of other guests
    """

    fates: tuple[Cause | None, ...]
    samples: tuple[FleetSample, ...] = ()
    moves: int = 0


def mean(replays: Sequence[Sequence[FleetSample]], name: str) -> float:
    """Average a figure of samples from the first sample to the last one.

    :param replays: the samples of each replay
    :param name: the field with the figure
    """
    value = operator.attrgetter(name)
    area = span = 0.0
    for samples in replays:
        for sample, following in itertools.pairwise(samples):
            area += value(sample) * (following.time - sample.time)
            span += following.time - sample.time
    return area / span if span else 0.0


def find_local_percent(replays: Sequence[Sequence[FleetSample]],
                       ) -> float | None:
    """Return the share of guests whose devices are on their host cells.

    :returns: in percent of the guests with devices; None if there are none
    """
    guests = mean(replays, 'with_devices')
    return 100 * mean(replays, 'local') / guests if guests else None


def thin_out(samples: Sequence[FleetSample],
             most: int) -> list[FleetSample]:
    """Select at most this many samples, evenly in time."""
    if len(samples) <= most:
        return list(samples)
    first, last = samples[0].time, samples[-1].time
    found: list[FleetSample] = []
    for sample in samples:
        due = first + (last - first) * len(found) / (most - 1)
        if sample.time >= due and len(found) < most:
            found.append(sample)
    return found


class FleetSampler:
    """Takes samples from the first arrival that counts to the last.

    :ivar samples: the samples so far
    """

    def __init__(self, scheduler: schedulers.Scheduler,
                 running: host_table.Population,
                 requested: requests.Requests) -> None:
        self._table = scheduler.table
        self._known = scheduler.known
        self._running = running
        self._smallest = _smallest(requested.flavors)
        self.samples: list[FleetSample] = []
        arrivals = requested.arrivals
        self._first = (arrivals[requested.warm_up].time if arrivals
                       else math.inf)
        self._span = requested.span if arrivals else 0.0

    def sample_until(self, time: float) -> None:
        """Take the samples that are due before a change at this time."""
        if self._due() >= time:
            return
        sample = self._sample()
        while self._due() < time:
            self.samples.append(FleetSample(self._due(), *sample))

    def _due(self) -> float:
        """Return the time of the next sample."""
        taken = len(self.samples)
        if taken == MAX_SAMPLES or (taken and not self._span):
            return math.inf
        return self._first + self._span * taken / (MAX_SAMPLES - 1)

    def _sample(self) -> tuple[int, ...]:
        stranded = pages = 0
        if self._smallest is not None:
            everywhere = np.arange(len(self._table))
            guest = self._smallest
            stranded = int(self._known.figures(
                'stranded CPUs', everywhere,
                lambda host: self._stranded_cpus(guest, host)).sum())
            pages = int(self._known.figures(
                'stranded pages', everywhere,
                lambda host: self._stranded_mib(guest, host)).sum())
        return (self._running.busy_cpus, stranded, pages, len(self._running),
                self._running.across_sockets, self._running.with_devices,
                self._running.local)

    def _stranded_cpus(self, guest: guests.Guest, host: int) -> float:
        sums = guest.sums
        if sums.pcpus:
            return float(self._table.free_pcpus[host]
                         - self._room(guest, host) * sums.pcpus)
        return float(self._table.shared_left[host]
                     - self._room(guest, host) * sums.vcpus)

    def _stranded_mib(self, guest: guests.Guest, host: int) -> float:
        cells = guest.demand.cells
        size_kib = cells[0].page_kib if cells else None
        free_pages = 0
        for cell in self._table.supplies[host].cells:
            for pool in cell.pages:
                if pool.size_kib == size_kib:
                    free_pages += pool.free
        free_mib = free_pages * (size_kib or 0) // 1024
        return free_mib - self._room(guest, host) * sum(
            cell.memory_mib for cell in cells) if free_mib else 0

    def _room(self, guest: guests.Guest, host: int) -> int:
        """Return how many guests of the smallest flavor fit on a host."""
        return int(self._known.figures(
            'room', np.array([host]),
            lambda host: self._fill(guest, host))[0])

    def _fill(self, guest: guests.Guest, host: int) -> int:
        left = self._table.describe_host(host)
        most, supply = left.free.times(guest.sums), left.supply
        if len(guest.demand.cells) == 1 and claim.counts_cells(
                guest.demand, supply):
            def fill(cell: supplies.CellSupply) -> int:
                alone = dataclasses.replace(supply, cells=(cell,))
                return capacity.fill(guest, dataclasses.replace(
                    left, supply=alone)).count
            return min(most, self._known.sum_over_cells('room', host, fill))
        return capacity.fill(guest, left, most).count


def _smallest(flavors: Sequence[
        guests.Guest]) -> guests.Guest | None:
    """Return the smallest flavor without devices, None if there is none."""
    return min((flavor for flavor in flavors
                if not flavor.demand.requests),
               key=lambda flavor: (flavor.cpus, flavor.sums.memory_mib),
               default=None)
