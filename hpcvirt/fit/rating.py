# SPDX-License-Identifier: Apache-2.0

"""Rate a host on which a guest fits, by what the guest takes from others.

Hosts are compared by the room that the guest takes from the mix of requests,
then by the devices of the guest that are far from its cells, then by the whole
sets of devices that it breaks. Of hosts that are equal in these, the one with
the fewest free CPUs is best, then the one with the least free memory. A far
device can also count as room: see :func:`add_far_devices`.

Together, the hosts of a request take a number of guests of each kind, now and
later (:mod:`hpcvirt.fit.room`). They take fewer once the guest is placed on
one of them. The loss is the sum over all kinds of

    weight * log((total + 1) / (total - fewer + 1))

where the weight of a kind is its share of all CPUs that are requested. Scarce
room costs more: the last whole host costs much more than the tenth. The loss
depends only on shares of the room, so that it is comparable between fleets of
all sizes. With a difference instead of the logarithm, this would be scheduling
by the gradient of fragmentation [FGD-Weng-2023], which ignores scarcity.
"""

import math
import operator
import typing
from collections.abc import Hashable
from collections.abc import Sequence

from hpcvirt.fit import allocation
from hpcvirt.fit import demand as demands
from hpcvirt.fit import device_sets
from hpcvirt.fit import devices
from hpcvirt.fit import room
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model

#: After this many requests, the weight of all earlier ones is halved.
MEMORY = 1000
#: The most kinds of requests that matter: those for the most CPUs in total.
MAX_KINDS = 32
#: The most kinds that are counted.
MAX_COUNTED = 256
#: The number of requests after which the kinds that matter are reviewed.
REVIEW = 100

#: The decimals to which losses are rounded. Real differences are larger even
#: in the largest fleets, and rounding errors of floats are smaller.
DECIMALS = 9


def losses(weights: Sequence[float], totals: Sequence[float],
           fewer: Sequence[tuple[float, ...]]) -> list[float]:
    """Compute the loss on each host.

    :param weights: the weight of each kind
    :param totals: the guests of each kind that all hosts take
    :param fewer: for each host, the number of guests of each kind that it no
        longer takes with the guest
    """
    whole = [math.log(total + 1) for total in totals]
    # Most hosts lose as much as another.
    known: dict[tuple[float, ...], float] = {}
    for counts in fewer:
        if counts in known:
            continue
        loss = 0.0
        for weight, most, total, count in zip(weights, whole, totals, counts,
                                              strict=True):
            if count:
                loss += weight * (most - math.log(total - count + 1))
        known[counts] = round(loss, DECIMALS)
    return [known[counts] for counts in fewer]


class Mix:
    """Counts requests by kind; equal demands are of one kind.

    The mix ages: the weight of a request halves whenever as many others have
    been seen as :data:`MEMORY` says.

    :ivar kinds: the kinds that matter, in the order in which they were seen
    """

    def __init__(self) -> None:
        self.kinds: tuple[demands.Demand, ...] = ()
        self._demands: dict[Hashable, demands.Demand] = {}
        self._counts: dict[Hashable, float] = {}
        self._seen = 0

    def observe(self, demand: demands.Demand) -> None:
        """Count a request for guests with NUMA cells."""
        key = demand.key
        new = key not in self._counts
        self._demands.setdefault(key, demand)
        self._counts[key] = self._counts.get(key, 0.0) + 1.0
        self._seen += 1
        if self._seen % MEMORY == 0:
            for each in self._counts:
                self._counts[each] /= 2
        if (self._seen % REVIEW == 0
                or (new and len(self.kinds) < MAX_KINDS)):
            self._review()

    def weights(self) -> tuple[float, ...]:
        """Return the share of each kind in the CPUs of all requests."""
        wanted = [self._cpus(kind.key) for kind in self.kinds]
        total = sum(wanted) or 1.0
        return tuple([part / total for part in wanted])

    def _cpus(self, key: Hashable) -> float:
        """Return the CPUs of all requests of a kind."""
        cpus = sum([cell.pcpus + cell.vcpus + cell.emulator_pcpus
                    for cell in self._demands[key].cells])
        return self._counts[key] * cpus

    def _review(self) -> None:
        ordered = sorted(self._demands, key=self._cpus, reverse=True)
        for key in ordered[MAX_COUNTED:]:
            del self._demands[key], self._counts[key]
        chosen = set(ordered[:MAX_KINDS])
        kinds = tuple([demand for key, demand in self._demands.items()
                       if key in chosen])
        if [kind.key for kind in kinds] != [kind.key for kind in self.kinds]:
            self.kinds = kinds


#: The cost of far devices with which no room outweighs a near device.
NEAR_FIRST = math.inf


class Rating(typing.NamedTuple):
    """What a guest takes from a host.

    For example, on a host with room for 2 whole cells of guests, now and
    later, a small guest breaks one, and has one of its two devices far away:
    ``Rating((2.0,), (1.0,), 0.5, 0, (16.0, 65536))``.

    :ivar before: guests of each kind that the host takes, now and later
    :ivar fewer: the number of these that it no longer takes with the guest
    :ivar far: the fraction of the guest's devices that are on other host cells
        than its own, 0.0 if its affinity policy leaves no choice
    :ivar broken_sets: see :meth:`hpcvirt.fit.device_sets.HostSets.cost`
    :ivar left: the CPUs and the memory in MiB that are free without the guest
    """

    before: tuple[float, ...]
    fewer: tuple[float, ...]
    far: float
    broken_sets: int
    left: tuple[float, int]


def rate(counter: room.RoomCounter, demand: demands.Demand,
         supply: supplies.Supply, guests: int,
         placed: demands.CellAssignment,
         providers: devices.Providers = ()) -> Rating:
    """Rate a host.

    :param counter: counts the guests of the kinds that are requested
    :param guests: the number of guests on the host, without this one
    :param placed: where the guest will be placed
    :param providers: what Placement allocated to each PCI request
    :raises ValueError: if the record of the host has infinite numbers
    """
    before = after = (0.0,) * len(counter.kinds)
    left = 0.0, 0
    if demand.cells:
        if_empty = counter.count_if_empty(supply)
        before = counter.prospects(supply, if_empty, guests)
        after = counter.prospects(
            allocation.allocate(demand, supply, placed, providers), if_empty,
            guests + 1)
        left = (room.count_free_cpus(supply),
                sum([cell.memory_free_mib for cell in supply.cells]))
        # A single infinite value would make the sums over all hosts useless.
        if not math.isfinite(sum((*before, *after, *left))):
            raise ValueError('the room on the host is not finite')
    broken = 0
    if demand.requests and supply.pools:
        broken = device_sets.HostSets(supply.pools).cost(
            providers or placed.providers)
    return Rating(before, tuple(map(operator.sub, before, after)),
                  _find_far(demand, supply, placed, providers), broken, left)


def _find_far(demand: demands.Demand, supply: supplies.Supply,
              placed: demands.CellAssignment,
              providers: devices.Providers) -> float:
    """Return the fraction of the guest's devices that are far.

    All are, if none can be allocated.
    """
    if not demand.cells or all(
            request.affinity is shape_model.PCIAffinity.REQUIRED
            for request in demand.requests):
        return 0.0
    left = devices.Allocator(
        demand.requests, supply.pools or (),
        {cell.id: cell.socket for cell in supply.cells},
        providers or placed.providers).allocate(placed.cells)
    if left is None:
        return 1.0
    near = total = 0
    for pool, free in zip(supply.pools or (), left, strict=True):
        total += pool.free - free
        if pool.cell in placed.cells:
            near += pool.free - free
    return 1.0 - near / total if total else 0.0


def add_far_devices(losses: Sequence[float], far: Sequence[float],
                    cost: float) -> list[float]:
    """Add the cost of far devices to the losses of hosts.

    :param cost: the room that a guest may take from others to have its devices
        near, as a multiple of what it takes at least on any of the hosts
    """
    if cost == NEAR_FIRST:
        return list(far)
    least = min(losses, default=0.0)
    return [loss + cost * least * each
            for loss, each in zip(losses, far, strict=True)]


def describe(loss: float, rated: Rating) -> str:
    """Say what a guest takes from a host, in the order of the comparison.

    :param loss: of room, see :func:`losses`
    """
    taken = -100 * math.expm1(-loss)
    said = [f'it takes {taken:.2g} % of the room for what is requested']
    if rated.far:
        said.append(f'{100 * rated.far:.0f} % of its devices are far')
    if rated.broken_sets:
        said.append('it breaks whole sets of devices')
    said.append(f'{rated.left[0]:g} CPUs and {rated.left[1]} MiB are free')
    return ', '.join(said)


def rank(keys: Sequence[tuple[typing.Any, ...]]) -> list[float]:
    """Weigh hosts by their rank: 1 for the lowest key, then 1/2, 1/3...

    The best host is thus ahead of the next by half of the range, even if they
    hardly differ. Weighers with lower multipliers therefore decide only
    between equal hosts.
    """
    places = {key: place for place, key in enumerate(sorted(set(keys)), 1)}
    return [1 / places[key] for key in keys]
