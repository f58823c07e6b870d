# SPDX-License-Identifier: Apache-2.0

"""Predict the result of Nova's claim on the compute host, with its defects.

Only the claim chooses cells and CPUs. It tries arrangements of host cells in a
known order (:func:`hpcvirt.fit.engine.claim_order`) and remembers which guest
cell fits on which host cell. The key of this memory is a number of the guest
cell that the attempts themselves overwrite, so that the result for one guest
cell is used for another. A guest that fits is then refused, or gets CPUs and
memory on a cell on which it was never fitted (defects A and B). The first host
cell that is tried fixes a page size that is requested by class (defect C). If
no arrangement succeeds, the claim tries all of them (defect D). This is the
behavior of ``nova.virt.hardware.numa_fit_instance_to_host`` in Nova 32 to 34.
The claim then searches for PCI devices once more, regardless of cells; for a
guest without NUMA topology, it does nothing else. Finally, nova-compute takes
the devices, which can be fewer than the claim has found (defects L and M).

:func:`predict` returns the placement that the claim will choose, and refuses a
host if there is none or if the placement is not sound. Most guests cannot be
affected by the defects; for the others :mod:`hpcvirt.fit.claim_replay` repeats
the steps of the claim.
"""

import functools
import math
from collections.abc import Hashable
from collections.abc import Sequence

from hpcvirt.fit import affinity_check
from hpcvirt.fit import alike_devices
from hpcvirt.fit import cell_assignment as cell_assignments
from hpcvirt.fit import cell_search
from hpcvirt.fit import claim_replay
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import engine
from hpcvirt.fit import late_misfit
from hpcvirt.fit import reasons
from hpcvirt.fit import scope_check
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model


def check(demand: demands.Demand, supply: supplies.Supply,
          providers: devices.Providers = ()) -> reasons.Misfit | None:
    """Say why a guest must not be sent to a host.

    :returns: None if the guest fits and Nova's claim will place it soundly
    """
    return Claim(demand, supply).check(providers)


def counts_cells(demand: demands.Demand, supply: supplies.Supply) -> bool:
    """Whether a guest fits if enough host cells have room for a guest cell.

    For such a guest neither devices, networks nor defects matter, and more
    room never makes it fit less.
    """
    return (bool(demand.cells) and is_immune(demand)
            and not demand.selective
            and math.perm(len(supply.cells), len(demand.cells))
            <= claim_replay.MAX_ARRANGEMENTS)


def predict(demand: demands.Demand, supply: supplies.Supply,
            providers: devices.Providers = (),
            ) -> cell_assignments.CellAssignment | reasons.Misfit:
    """Predict the placement that Nova's claim will choose.

    :param providers: what Placement allocated to each PCI request
    :returns: the placement, or why the guest must not be sent to this host
    """
    return Claim(demand, supply).predict(providers)


def find_defect(demand: demands.Demand, supply: supplies.Supply,
                providers: devices.Providers = (),
                ) -> reasons.Misfit | None:
    """Say what is wrong with the placement that the claim would choose.

    :returns: None if the placement is sound, or if the claim refuses the guest
    """
    return Claim(demand, supply).find_defect(providers)


class Claim:
    """The claim of one guest on one host, whatever Placement allocates.

    Placement can offer a guest hundreds of allocations on a host with 16
    devices. Which host cells have room, in which order the claim takes them
    and what it attempts does not depend on the allocation, and is determined
    once. Allocations of devices that are alike have one answer. All
    allocations share one limit of effort, so that a host takes a bounded time.

    For example, a host has two GPUs on each of two cells. Of the six
    allocations of two GPUs, one takes both GPUs of cell 0, one both of cell 1,
    and four take one of each: there are three answers.
    """

    def __init__(self, demand: demands.Demand, supply: supplies.Supply,
                 effort: cell_search.Effort | None = None) -> None:
        """Prepare to answer.

        :param effort: what has been spent on this guest and host; None for
            nothing so far
        """
        self._demand = demand
        self._supply = supply
        self._effort = effort or cell_search.Effort()
        self._alike = alike_devices.AlikeDevices(demand.requests,
                                                 supply.pools or ())
        self._answers: dict[Hashable, cell_assignments.CellAssignment
                            | reasons.Misfit] = {}

    def check(self, providers: devices.Providers = (),
              ) -> reasons.Misfit | None:
        """Do what :func:`check` does."""
        if counts_cells(self._demand, self._supply):
            return engine.check(self._demand, self._supply, providers)
        predicted = self.predict(providers)
        return predicted if isinstance(predicted, reasons.Misfit) else None

    def predict(self, providers: devices.Providers = (),
                ) -> cell_assignments.CellAssignment | reasons.Misfit:
        """Do what :func:`predict` does."""
        kind = self._alike.kind(providers)
        answer = self._answers.get(kind)
        if answer is None:
            affinity = self._follow(providers)
            answer = self._place(affinity)
            if isinstance(answer, cell_assignments.CellAssignment):
                answer = affinity.loss(answer.cells) or answer
            self._answers[kind] = answer
        return answer

    def find_defect(self, providers: devices.Providers = (),
                    ) -> reasons.Misfit | None:
        """Do what :func:`find_defect` does."""
        if len(self._supply.cells) < len(self._demand.cells):
            return None
        affinity = self._follow(providers)
        outcome = self._replay.run(affinity, self._effort)
        if outcome.ranks is None and not outcome.given_up:
            return self._effort.misfit() if outcome.undecided else None
        if not outcome.sound:
            return self._defect(affinity, outcome)
        placed = self._accept(outcome.ranks or (), outcome.pages_kib)
        return (placed if isinstance(placed, reasons.Misfit)
                else affinity.loss(placed.cells))

    def _follow(self, providers: devices.Providers,
                ) -> affinity_check.AffinityCheck:
        return (self._affinity.following(providers) if any(providers)
                else self._affinity)

    @functools.cached_property
    def _affinity(self) -> affinity_check.AffinityCheck:
        return affinity_check.AffinityCheck(self._demand, self._supply)

    @functools.cached_property
    def _ordered(self) -> Sequence[supplies.CellSupply]:
        return engine.claim_order(self._demand, self._supply)

    @functools.cached_property
    def _roomy(self) -> list[supplies.CellSupply] | reasons.Misfit:
        """The first host cells with room for a guest of equal cells."""
        return engine.first_with_room(self._demand, self._supply,
                                      self._ordered)

    @functools.cached_property
    def _search(self) -> cell_search.CellSearch | reasons.Misfit:
        return engine.make_search(self._demand, self._supply, self._ordered,
                                  self._effort)

    @functools.cached_property
    def _replay(self) -> claim_replay.ClaimReplay:
        return claim_replay.ClaimReplay(self._demand, self._supply,
                                        self._ordered)

    @functools.cached_property
    def _replay_by_class(self) -> claim_replay.ClaimReplay:
        """The replay of a claim without defect C."""
        return claim_replay.ClaimReplay(self._demand, self._supply,
                                        self._ordered, settle_pages=False)

    def _place(self, affinity: affinity_check.AffinityCheck,
               ) -> cell_assignments.CellAssignment | reasons.Misfit:
        misfit = affinity.second_look()
        if misfit is not None:
            return misfit
        if not self._demand.cells:
            return cell_assignments.CellAssignment(())
        if is_immune(self._demand):
            roomy = self._roomy
            if isinstance(roomy, reasons.Misfit):
                return roomy
            # If the first cells with room have the devices as well, the claim
            # fits each guest cell only once.
            ids = [cell.id for cell in roomy]
            if affinity.met(ids):
                return self._accept(
                    [rank for rank, cell in enumerate(self._ordered)
                     if cell.id in ids],
                    tuple(cell.page_kib for cell in self._demand.cells))
        search = self._search
        if isinstance(search, reasons.Misfit):
            return search
        misfit = search.find_misfit(affinity)
        if misfit is not None:
            return misfit
        outcome = self._replay.run(affinity, self._effort)
        if outcome.undecided:
            return self._effort.misfit()
        if outcome.ranks is None or not outcome.sound:
            return self._defect(affinity, outcome)
        return self._accept(outcome.ranks, outcome.pages_kib)

    def _accept(self, ranks: Sequence[int], pages_kib: tuple[int | None, ...],
                ) -> cell_assignments.CellAssignment | reasons.Misfit:
        """Accept the placement of the claim, if the claim finds it in time."""
        if (claim_replay.arrangements_before(ranks, len(self._ordered)) >=
                claim_replay.MAX_ARRANGEMENTS):
            return reasons.Misfit(reasons.Code.CLAIM_TOO_LONG, {
                'tried': claim_replay.MAX_ARRANGEMENTS,
                'defect': reasons.Defect.TOO_MANY_ATTEMPTS})
        return scope_check.enforce(
            self._demand, self._supply, cell_assignments.CellAssignment(
                tuple(self._ordered[rank].id for rank in ranks), pages_kib))

    def _defect(self, affinity: affinity_check.AffinityCheck,
                outcome: claim_replay.ClaimOutcome) -> reasons.Misfit:
        """Say which defect of Nova keeps a guest that fits off a host."""
        if outcome.given_up:
            return reasons.Misfit(reasons.Code.CLAIM_TOO_LONG, {
                'tried': claim_replay.MAX_TRIES,
                'defect': reasons.Defect.TOO_MANY_ATTEMPTS})
        if outcome.raised is not None:
            return reasons.Misfit(reasons.Code.CLAIM_RAISES, {
                'cell': self._ordered[outcome.raised].id,
                'defect': reasons.Defect.NO_CORES})
        if outcome.misaccounted is not None:
            return reasons.Misfit(reasons.Code.CLAIM_MISACCOUNTS, {
                'cell': self._ordered[outcome.misaccounted].id,
                'defect': reasons.Defect.EMULATOR_THREADS})
        defect = (reasons.Defect.DISTANT_DEVICES if self._demand.uniform
                  else reasons.Defect.UNEQUAL_CELLS)
        if (self._demand.pages_by_class
                and self._replay_by_class.run(affinity, self._effort).sound):
            defect = reasons.Defect.PAGE_CLASS
        if outcome.ranks is None or outcome.misplaced is None:
            # Of the refusals of many allocations, only one is read.
            return late_misfit.LateMisfit(self._explain_refusal, affinity,
                                          defect)
        return reasons.Misfit(reasons.Code.CLAIM_MISPLACES, {
            'guest_cell': outcome.misplaced,
            'cell': self._ordered[outcome.ranks[outcome.misplaced]].id,
            'defect': defect})

    def _explain_refusal(self, affinity: affinity_check.AffinityCheck,
                         defect: reasons.Defect) -> reasons.Misfit:
        """Say on which host cells a guest fits that the claim refuses."""
        fitting = engine.arrange(self._demand, self._supply, self._ordered,
                                 affinity)
        if isinstance(fitting, reasons.Misfit):
            return fitting
        return reasons.Misfit(reasons.Code.CLAIM_REFUSES, {
            'cells': reasons.cells(self._ordered[rank].id for rank in fitting),
            'defect': defect})


def depends_on_start(demand: demands.Demand) -> bool:
    """Whether the result of a claim can depend on the demand it starts from.

    A move starts from another demand than a new instance. For guests without
    devices and networks whose cells are equal, have dedicated CPUs, and name
    their page size, that does not matter: every claim takes the first cells
    with room.
    """
    return bool(demand.cells) and (
        demand.selective or not is_immune(demand) or
        demand.cells[0].policy is not shape_model.CPUPolicy.DEDICATED)


def is_immune(demand: demands.Demand) -> bool:
    """Whether no defect matters if the guest may use any cells with room."""
    first = demand.cells[0]
    return (demand.uniform and not demand.pages_by_class and
            (first.pcpus > 0 or
             first.policy is shape_model.CPUPolicy.SHARED) and
            not (first.emulator_pcpus and
                 first.threads is shape_model.ThreadPolicy.ISOLATE))
