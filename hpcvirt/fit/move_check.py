# SPDX-License-Identifier: Apache-2.0

"""Decide whether an existing instance can move to a host.

The claim of a new instance starts from its flavor, image and ports. The claim
of a move may differ: it ignores the affinity policy of the flavor, or starts
from the cells and page sizes that the instance had on its former host, or does
not know the limits that the filter has set. An instance can move to a host if
this claim accepts it, and if it then has everything that was requested.

After a failed build Nova sets the numbers of all guest cells to -1, and keeps
the page sizes that the claim on the first host chose. It then builds the
instance on an alternate host, without calling the filters again. The claim
there cannot distinguish the guest cells, and may accept an instance whose
cells differ without pinning all of its vCPUs.
"""

import dataclasses
import math
from collections.abc import Hashable
from collections.abc import Iterable

from hpcvirt.fit import cell as cells
from hpcvirt.fit import cell_search
from hpcvirt.fit import claim
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model

#: The number of every guest cell after a failed build.
RETRY_NUMBER = -1

#: For each guest cell the page size that it got from a claim.
Pages = tuple[int | None, ...]

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
    reasons.Defect.LOST_ALLOCATION:
        'a move ignores which devices Placement has allocated',
}


@dataclasses.dataclass(frozen=True)
class MoveClaim:
    """The demand of an instance as requested, and as claimed by a move.

    The PCI requests of both differ in their affinity policies only.

    :ivar wanted: the demand of flavor, image and ports
    :ivar claimed: the demand from which the claim starts
    :ivar defect: the reason why the two differ
    :ivar limited: whether the claim observes allocation ratios and networks
    :ivar page_kib: the page size that the guest must keep; None if it may
        change
    """

    wanted: demands.Demand
    claimed: demands.Demand
    defect: reasons.Defect
    limited: bool = True
    page_kib: int | None = None

    def reach(self, supply: supplies.Supply,
              ) -> tuple[demands.Demand, supplies.Supply]:
        """Return the demand of the claim, and the supply that it considers."""
        if self.limited:
            return self.claimed, supply
        return (dataclasses.replace(self.claimed, physnets=frozenset(),
                                    tunneled=False),
                dataclasses.replace(supply, cpu_ratio=math.inf,
                                    ram_ratio=math.inf))


def check(move: MoveClaim, supply: supplies.Supply,
          providers: devices.Providers = (),
          kept_providers: devices.Providers = ()) -> reasons.Misfit | None:
    """Say why an instance must not move to a host.

    :param providers: what Placement allocated to each PCI request, as far as
        the claim observes it
    :param kept_providers: what it allocated for the devices that the instance
        gets
    :returns: None if it can move there
    """
    return MoveCheck(move, supply).check(providers, kept_providers)


class MoveCheck:
    """A move of one instance to one host, whatever Placement allocates.

    As in :class:`hpcvirt.fit.claim.Claim`, which see, what does not depend on
    the allocation is determined once.
    """

    def __init__(self, move: MoveClaim, supply: supplies.Supply,
                 effort: cell_search.Effort | None = None) -> None:
        """Prepare to answer.

        :param effort: see :class:`hpcvirt.fit.claim.Claim`
        """
        self._move = move
        self._supply = supply
        effort = effort or cell_search.Effort()
        self._claimed = claim.Claim(*move.reach(supply), effort)
        self._wanted = claim.Claim(move.wanted, supply, effort)
        self._alike = devices.AlikeDevices(move.wanted.requests,
                                           supply.pools or ())
        self._answers: dict[Hashable, reasons.Misfit | None] = {}

    def check(self, providers: devices.Providers = (),
              kept_providers: devices.Providers = (),
              ) -> reasons.Misfit | None:
        """Do what :func:`check` does."""
        kind = self._alike.kind(providers), self._alike.kind(kept_providers)
        if kind not in self._answers:
            self._answers[kind] = self._check(providers, kept_providers)
        return self._answers[kind]

    def _check(self, providers: devices.Providers,
               kept_providers: devices.Providers) -> reasons.Misfit | None:
        move = self._move
        placed = self._claimed.predict(providers)
        if not move.claimed.cells:
            # Without cells there is no affinity to lose.
            return (placed if isinstance(placed, reasons.Misfit) else
                    self._wanted.check(kept_providers))
        if isinstance(placed, demands.CellAssignment):
            return self._find_loss(placed, kept_providers)
        if (move.claimed == move.wanted or
                self._wanted.check(kept_providers)):
            return placed
        return _misfit(move.defect, 'refuse it', placed)

    def _find_loss(self, placed: demands.CellAssignment,
                   providers: devices.Providers) -> reasons.Misfit | None:
        """Say which request the placement of the claim does not meet."""
        move, supply = self._move, self._supply
        if move.page_kib is not None and placed.pages_kib[0] != move.page_kib:
            return _misfit(
                reasons.Defect.PAGE_CLASS, f'choose {placed.pages_kib[0]} '
                f'KiB, but the guest has pages of {move.page_kib} KiB')
        by_id = {cell.id: cell for cell in supply.cells}
        for guest_cell, number, size in zip(
                move.claimed.cells, placed.cells, placed.pages_kib,
                strict=True):
            misfit = cells.obstacle(
                dataclasses.replace(guest_cell, page_kib=size), by_id[number],
                supply.cpu_ratio, supply.ram_ratio)
            if misfit is not None:
                return _misfit(reasons.Defect.LOST_LIMITS, 'exceed a limit',
                               misfit)
        affinity = cell_search.AffinityCheck(_kept(move), supply,
                                             providers or placed.providers)
        if affinity.met(placed.cells):
            return affinity.loss(placed.cells)
        defect = (move.defect if move.claimed.requests != move.wanted.requests
                  else reasons.Defect.LOST_LIMITS)
        return _misfit(
            defect, f'use {reasons.cells(placed.cells)}, without the affinity '
            'to PCI devices or networks that the guest requests')


def _kept(move: MoveClaim) -> demands.Demand:
    """Return the demand that the placement of the claim must meet.

    If the claim applies another policy, it takes devices of other cells that
    this policy allows, unless there are enough on the cells of the guest.
    """
    return dataclasses.replace(move.wanted, requests=tuple(
        wanted if wanted == claimed or wanted.affinity not in _STRICT
        else dataclasses.replace(
            wanted, affinity=shape_model.PCIAffinity.REQUIRED)
        for wanted, claimed in zip(move.wanted.requests,
                                   move.claimed.requests, strict=True)))


def refuse_set(kind: str) -> reasons.Misfit:
    """Refuse a move whose claim does not take a set of devices."""
    return _misfit(reasons.Defect.LOST_ALLOCATION,
                   f'take any devices, not a set {kind}')


def _misfit(defect: reasons.Defect, what: str,
            *causes: reasons.Misfit) -> reasons.Misfit:
    return reasons.Misfit(reasons.Code.CLAIM_OF_A_MOVE, {
        'why': _WHY[defect], 'defect': defect, 'what': what}, causes)


def needs_retry_check(demand: demands.Demand) -> bool:
    """Whether an earlier failed build can change the result.

    It cannot if all guest cells are equal.
    """
    return len(demand.cells) > 1 and not demand.immune


def predict_pages(demand: demands.Demand, supply: supplies.Supply,
                  providers: devices.Providers = ()) -> Pages | None:
    """Predict the page sizes that a guest has if its build fails here.

    :returns: None if the claim refuses the guest
    """
    placed = claim.predict(demand, supply, providers)
    return None if isinstance(placed, reasons.Misfit) else placed.pages_kib


def check_retry(demand: demands.Demand, supply: supplies.Supply,
                possible: Iterable[Pages], providers: devices.Providers = (),
                ) -> reasons.Misfit | None:
    """Say why a guest must not be built here after it failed elsewhere.

    :param possible: the page sizes that it may have got there
    :returns: None if the claim would refuse it, or place it soundly
    """
    for sizes in possible:
        misfit = claim.find_defect(dataclasses.replace(
            demand, numbers=(RETRY_NUMBER,) * len(demand.cells), cells=tuple(
                dataclasses.replace(cell, page_kib=size) for cell, size
                in zip(demand.cells, sizes, strict=True))),
            supply, providers)
        if misfit is not None:
            return reasons.Misfit(
                reasons.Code.UNSAFE_ALTERNATE,
                {'defect': reasons.Defect.FAILED_BUILD}, (misfit,))
    return None
