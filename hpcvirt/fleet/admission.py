# SPDX-License-Identifier: Apache-2.0

"""Decide whether a host takes a guest, in the steps of Nova.

Placement compares the totals of the host; then the filter compares cells, as
the claim on the compute host will.
"""

import dataclasses
import sys
from collections.abc import Callable

from hpcvirt.fit import allocation
from hpcvirt.fit import cell_assignment as cell_assignments
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import new_guest
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import state

_CLASSES = ('PCPU', 'VCPU', 'MEMORY_MB', 'DISK_GB')


_Predict = Callable[[demands.Demand, supplies.Supply],
                    cell_assignments.CellAssignment | reasons.Misfit]


def admit(guest: guests.Guest, host: state.FleetHostState,
          predict: _Predict = new_guest.predict,
          ) -> cell_assignments.CellAssignment | reasons.Misfit:
    """Place an instance on a host, or say why it does not fit.

    :param predict: predicts the claim, by default that of a new instance
    """
    why = explain_closed(guest, host)
    if why is not None:
        return reasons.Misfit(
            reasons.Code.QUARANTINED if host.quarantined
            else reasons.Code.CLOSED, {'what': why})
    misfit = _placement(guest, host)
    if misfit is not None:
        return misfit
    return predict(guest.demand, host.supply)


def explain_closed(guest: guests.Guest,
                   host: state.FleetHostState) -> str | None:
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


def take(guest: guests.Guest, host: state.FleetHostState,
         placement: cell_assignments.CellAssignment) -> state.FleetHostState:
    """Compute what a host has left with a guest on it."""
    return dataclasses.replace(
        host,
        supply=allocation.allocate(guest.demand, host.supply, placement),
        free=host.free.minus(guest.sums))


def place_guests(guest: guests.Guest, host: state.FleetHostState,
                 most: int) -> list[cell_assignments.CellAssignment]:
    """Place up to ``most`` guests on a host, one after another."""
    placements: list[cell_assignments.CellAssignment] = []
    while len(placements) < most:
        placed = admit(guest, host)
        if isinstance(placed, reasons.Misfit):
            break
        placements.append(placed)
        host = take(guest, host, placed)
    return placements


def most_of_one_pool(request: devices.DeviceRequest,
                     host: supplies.Supply) -> int:
    """Count the free devices of the largest pool for a request."""
    return max(devices.free_devices(request, host.pools or ()), default=0)


def most_of_one_guest(host: supplies.Supply) -> guests.Resources:
    """Return the most that one instance may take of a host.

    nova-compute reports all resources of a class, without the allocation
    ratio, as ``max_unit``. For a host without cells, they are unknown.
    """
    if not host.cells:
        return guests.Resources(*[sys.maxsize] * len(_CLASSES))
    return guests.Resources(
        sum(len(cell.dedicated) for cell in host.cells),
        sum(len(cell.shared) for cell in host.cells),
        sum(cell.memory_mib for cell in host.cells), sys.maxsize)


def _placement(guest: guests.Guest,
               host: state.FleetHostState) -> reasons.Misfit | None:
    for name, free, most, needed in zip(
            _CLASSES, host.free, most_of_one_guest(host.supply), guest.sums,
            strict=True):
        if needed > most:
            return reasons.Misfit(reasons.Code.RESOURCES, {
                'resource': f'{name} per instance', 'free': most,
                'needed': needed})
        if needed > free:
            return reasons.Misfit(reasons.Code.RESOURCES, {
                'resource': name, 'free': max(free, 0), 'needed': needed})
    for request in guest.demand.requests:
        if request.one_pool:
            free = most_of_one_pool(request, host.supply)
            if request.count > free:
                return reasons.Misfit(reasons.Code.RESOURCES, {
                    'resource': request.name, 'free': free,
                    'needed': request.count})
    return None
