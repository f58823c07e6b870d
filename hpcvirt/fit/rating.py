# SPDX-License-Identifier: Apache-2.0

"""Rate a host on which a guest fits, by what the guest takes from others.

Hosts are compared by the room that the guest takes from the mix of requests
(:mod:`hpcvirt.fit.scarcity`), then by the devices of the guest that are far
from its cells, then by the whole sets of devices that it breaks. Of hosts that
are equal in these, the one with the fewest free CPUs is best, then the one
with the least free memory.

A far device can also count as room: see :func:`add_far_devices`.
"""

import math
import operator
import typing
from collections.abc import Sequence

from hpcvirt.fit import allocation
from hpcvirt.fit import cell_assignment as cell_assignments
from hpcvirt.fit import demand as demands
from hpcvirt.fit import device_sets
from hpcvirt.fit import devices
from hpcvirt.fit import room
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model

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
         supply: supplies.Supply, placed: cell_assignments.CellAssignment,
         providers: devices.Providers = ()) -> Rating:
    """Rate a host.

    :param counter: counts the guests of the kinds that are requested
    :param placed: where the guest will be placed
    :param providers: what Placement allocated to each PCI request
    :raises ValueError: if the record of the host has infinite numbers
    """
    before = after = (0.0,) * len(counter.kinds)
    left = 0.0, 0
    if demand.cells:
        if_empty = counter.count_if_empty(supply)
        before = counter.prospects(supply, if_empty)
        after = counter.prospects(allocation.allocate(
            demand, supply, placed, providers), if_empty)
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
              placed: cell_assignments.CellAssignment,
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
    return 1.0 - near / total if total else 1.0


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

    :param loss: of room, see :func:`hpcvirt.fit.scarcity.losses`
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
