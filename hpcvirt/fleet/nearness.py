# SPDX-License-Identifier: Apache-2.0

"""Measure how much a host lacks for a guest, to show the nearest host first.

The measure orders hosts for people and decides nothing. It adds up the shares
of what is missing: of each total, of the CPUs of the cells, of the devices and
of the set that comes closest. A host that lacks one of eight GPUs is at 0.125,
one that lacks all of them and half of the CPUs at 1.5 or more.
"""

from hpcvirt.fit import device_sets
from hpcvirt.fit import devices
from hpcvirt.fit import guest as guests
from hpcvirt.fit import placement

#: More than a host can lack: what keeps the guest off is no amount.
CLOSED = 100.0


def measure(guest: guests.Guest, host: placement.HostState) -> float:
    """Return what a host lacks; 0 if only the arrangement is wrong."""
    if placement.explain_unfit(guest, host) is not None:
        return CLOSED
    total = 0.0
    for free, needed in zip(host.free, guest.sums, strict=True):
        if needed > free:
            total += (needed - max(free, 0)) / needed
    total += _measure_cells(guest, host)
    total += _measure_devices(guest, host)
    return round(total, 6)


def _measure_cells(guest: guests.Guest, host: placement.HostState) -> float:
    """Give the largest guest cells the cells with the most free PCPUs."""
    needed = sorted((cell.pcpus for cell in guest.demand.cells), reverse=True)
    free = sorted((len(cell.free) for cell in host.supply.cells),
                  reverse=True)
    free += [0] * (len(needed) - len(free))
    missing = sum(max(0, wanted - own)
                  for wanted, own in zip(needed, free, strict=False))
    return missing / max(1, sum(needed))


def _measure_devices(guest: guests.Guest, host: placement.HostState) -> float:
    pools = host.supply.pools or ()
    needed = sum(request.count for request in guest.demand.requests)
    if not needed:
        return 0.0
    kind = guest.demand.device_set
    if kind is not None:
        return _measure_sets(kind, host)
    missing = 0
    for request in guest.demand.requests:
        free = sum(devices.free_devices(request, pools))
        missing += max(0, request.count - free)
    return missing / needed


def _measure_sets(kind: str, host: placement.HostState) -> float:
    """Return what the set that comes closest lacks."""
    sets = device_sets.members(host.supply.pools or ())
    shares = []
    for each, pools in sets.items():
        if each.kind == kind:
            free = sum(pool.free > 0 for pool in pools)
            shares.append(max(0, each.pools - free) / each.pools)
    return min(shares, default=1.0)
