# SPDX-License-Identifier: Apache-2.0

"""Decide what Placement would allocate on a host.

Placement compares totals of a host: free amounts, the most of one instance
(``max_unit``), and traits. It knows no cells, and devices only by their
resource classes.
"""

import collections
import itertools

from hpcvirt.fit import devices
from hpcvirt.fit import guest as guests
from hpcvirt.fit import host_state as host_states
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies

_CLASSES = ('PCPU', 'VCPU', 'MEMORY_MB', 'DISK_GB')


def explain_closed(guest: guests.Guest,
                   host: host_states.HostState) -> str | None:
    """Say why a host takes no such instance, regardless of its resources.

    :returns: the reason; None if it may take one
    """
    if host.closed is not None or host.traits is None:
        return host.closed
    missing = sorted(guest.required - host.traits)
    if missing:
        return f'it lacks the trait {missing[0]}'
    unwanted = sorted(guest.forbidden & host.traits)
    return f'it has the trait {unwanted[0]}' if unwanted else None


def check(guest: guests.Guest,
          host: host_states.HostState) -> reasons.Misfit | None:
    """Say why Placement offers no allocation for a guest on a host."""
    why = explain_closed(guest, host)
    if why is not None:
        code = (reasons.Code.QUARANTINED if host.quarantined
                else reasons.Code.CLOSED)
        return reasons.Misfit(code, {'what': why})
    for name, free, most, needed in zip(
            _CLASSES, host.free, host.max_unit, guest.sums, strict=True):
        if needed > most:
            return reasons.Misfit(reasons.Code.RESOURCES, {
                'resource': f'{name} per instance', 'free': most,
                'needed': needed})
        if needed > free:
            return reasons.Misfit(reasons.Code.RESOURCES, {
                'resource': name, 'free': max(free, 0), 'needed': needed})
    for request in guest.demand.requests:
        if not request.one_pool:
            continue
        most = most_of_one_pool(request, host.supply)
        if request.count > most:
            return reasons.Misfit(reasons.Code.RESOURCES, {
                'resource': request.name, 'free': most,
                'needed': request.count})
    return None


def most_of_one_pool(request: devices.DeviceRequest,
                     supply: supplies.Supply) -> int:
    """Count the free devices of the largest pool for a request.

    Placement takes the resources of a class from one provider.
    """
    return max(devices.free_devices(request, supply.pools or ()), default=0)


def count(guest: guests.Guest, host: host_states.HostState) -> int:
    """Count the guests for which the totals of a host are enough."""
    if explain_closed(guest, host) is not None:
        return 0
    if not host.max_unit.times(guest.sums):
        return 0
    return min(host.free.times(guest.sums),
               _count_by_devices(guest, host.supply))


def _count_by_devices(guest: guests.Guest, supply: supplies.Supply) -> int:
    """Count the guests that get their devices, on whichever cells."""
    pools = supply.pools or ()
    # Requests that the same pools serve share their devices.
    wanted: collections.Counter[tuple[bool, tuple[bool, ...]]] = (
        collections.Counter())
    for request in guest.demand.requests:
        matching = tuple(request.accepts(pool)[0] for pool in pools)
        wanted[request.one_pool, matching] += request.count
    most = guests.UNKNOWN_DISK_GIB
    for (one_pool, matching), needed in wanted.items():
        if needed < 1:
            continue
        free = [pool.free for pool in itertools.compress(pools, matching)]
        if one_pool:
            most = min(most, sum(each // needed for each in free))
        else:
            most = min(most, sum(free) // needed)
    return most
