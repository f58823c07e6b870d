# SPDX-License-Identifier: Apache-2.0

"""Decide whether a host takes a guest, in the steps of Nova.

Placement compares the totals of the host (:mod:`hpcvirt.fit.placement`); then
the filter compares cells, as the claim on the compute host will
(:mod:`hpcvirt.fit.claim`). All commands ask here. nova-scheduler loads only
the second step, because Placement has answered the first.
"""

import dataclasses
from collections.abc import Callable

from hpcvirt.fit import allocation
from hpcvirt.fit import demand as demands
from hpcvirt.fit import guest as guests
from hpcvirt.fit import new_guest
from hpcvirt.fit import placement
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies

_Predict = Callable[[demands.Demand, supplies.Supply],
                    demands.CellAssignment | reasons.Misfit]


def predict(guest: guests.Guest, host: placement.HostState,
            predict_claim: _Predict = new_guest.predict,
            ) -> demands.CellAssignment | reasons.Misfit:
    """Predict on which cells of a host an instance will be.

    :param predict_claim: predicts the claim, by default that of a new instance
    :returns: the cells, or why the host does not take the instance
    """
    misfit = placement.check(guest, host)
    if misfit is not None:
        return misfit
    return predict_claim(guest.demand, host.supply)


def take(guest: guests.Guest, host: placement.HostState,
         placed: demands.CellAssignment) -> placement.HostState:
    """Compute what a host has left with a guest on it."""
    return dataclasses.replace(
        host,
        supply=allocation.allocate(guest.demand, host.supply, placed),
        free=host.free.minus(guest.sums))


def place_guests(guest: guests.Guest, host: placement.HostState,
                 most: int) -> list[demands.CellAssignment]:
    """Place up to ``most`` guests on a host, one after another."""
    found: list[demands.CellAssignment] = []
    while len(found) < most:
        placed = predict(guest, host)
        if isinstance(placed, reasons.Misfit):
            break
        found.append(placed)
        host = take(guest, host, placed)
    return found
