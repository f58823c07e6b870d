# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Decide whether an instance that exists already can move to a host.

The claim of a new instance starts from its flavor, image and ports. The claim
of another move does not: it ignores the affinity policy of the flavor, or
starts from the cells and page sizes that the instance had on its former host,
or does not know the limits that the filter has set. The claim must accept the
guest as it starts, and where it puts the guest, the guest must have what was
requested.
"""

import dataclasses
import math

from hpcvirt.fit import affinity_check
from hpcvirt.fit import cell as cells
from hpcvirt.fit import claim
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import placement as placements
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model

#: Policies that a guest may not lose, see :func:`_kept`.
_STRICT = (shape_model.PCIAffinity.REQUIRED, shape_model.PCIAffinity.SOCKET)

_WHY = {
    reasons.Defect.LOST_AFFINITY:
        'a move ignores the affinity policy of the flavor',
    reasons.Defect.FORMER_HOST:
        'an unshelve starts from what the guest had on its former host',
    reasons.Defect.LOST_LIMITS:
        'a live migration ignores allocation ratios and networks',
    reasons.Defect.PAGE_CLASS:
        'a live migration keeps the page size of the guest',
}


@dataclasses.dataclass(frozen=True)
class Move:
    """An instance as it was requested, and as the claim starts from it.

    The PCI requests of both differ in their affinity policies only.

    :ivar wanted: what flavor, image and ports request
    :ivar claimed: from what the claim starts
    :ivar defect: why the two differ
    :ivar limited: the claim observes allocation ratios and networks
    :ivar page_kib: the page size that the guest must keep; None if it may
        change
    """

    wanted: demands.Demand
    claimed: demands.Demand
    defect: reasons.Defect
    limited: bool = True
    page_kib: int | None = None


def check(move: Move, supply: supplies.Supply, packing: bool = False,
          providers: devices.Providers = (),
          kept_providers: devices.Providers = ()) -> reasons.Misfit | None:
    """Say why an instance must not move to a host.

    :param packing: ``packing_host_numa_cells_allocation_strategy``
    :param providers: what Placement allocated to each PCI request, as far as
        the claim observes it
    :param kept_providers: the same, for the devices that the guest gets
    :returns: None if it can move there
    """
    claimed, reached = move.claimed, supply
    if not move.limited:
        claimed = dataclasses.replace(claimed, physnets=frozenset(),
                                      tunneled=False)
        reached = dataclasses.replace(supply, cpu_ratio=math.inf,
                                      ram_ratio=math.inf)
    placed = claim.predict(claimed, reached, packing, providers)
    if isinstance(placed, placements.Placement):
        return _lost(move, supply, placed, kept_providers)
    if (move.claimed == move.wanted or
            claim.check(move.wanted, supply, packing, kept_providers)):
        return placed
    return _misfit(move.defect, 'refuse it', placed)


def _lost(move: Move, supply: supplies.Supply, placed: placements.Placement,
          providers: devices.Providers) -> reasons.Misfit | None:
    """Say what the guest would not have where the claim puts it."""
    if move.page_kib is not None and placed.pages_kib[0] != move.page_kib:
        return _misfit(
            reasons.Defect.PAGE_CLASS, f'choose {placed.pages_kib[0]} KiB, '
            f'but the guest has pages of {move.page_kib} KiB')
    by_id = {cell.id: cell for cell in supply.cells}
    for guest_cell, number, size in zip(
            move.claimed.cells, placed.cells, placed.pages_kib, strict=True):
        misfit = cells.obstacle(
            dataclasses.replace(guest_cell, page_kib=size), by_id[number],
            supply.cpu_ratio, supply.ram_ratio)
        if misfit is not None:
            return _misfit(reasons.Defect.LOST_LIMITS, 'exceed a limit',
                           misfit)
    if affinity_check.AffinityCheck(_kept(move), supply,
                                    providers).met(placed.cells):
        return None
    defect = (move.defect if move.claimed.requests != move.wanted.requests
              else reasons.Defect.LOST_LIMITS)
    return _misfit(
        defect, f'use {reasons.cells(placed.cells)}, without the affinity to '
        'PCI devices or networks that the guest requests')


def _kept(move: Move) -> demands.Demand:
    """What must hold at the place where the claim puts the guest.

    If the claim applies another policy, it can take devices of any cell that
    this policy allows, unless there are enough on the cells of the guest.
    """
    return dataclasses.replace(move.wanted, requests=tuple(
        wanted if wanted == claimed or wanted.affinity not in _STRICT
        else dataclasses.replace(
            wanted, affinity=shape_model.PCIAffinity.REQUIRED)
        for wanted, claimed in zip(move.wanted.requests,
                                   move.claimed.requests, strict=True)))


def _misfit(defect: reasons.Defect, what: str,
            *causes: reasons.Misfit) -> reasons.Misfit:
    return reasons.Misfit(reasons.Code.CLAIM_OF_A_MOVE, {
        'why': _WHY[defect], 'defect': defect, 'what': what}, causes)
