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

import math
from collections.abc import Sequence

from hpcvirt.fit import affinity_check
from hpcvirt.fit import cell_assignment as cell_assignments
from hpcvirt.fit import claim_replay
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import engine
from hpcvirt.fit import reasons
from hpcvirt.fit import scope_check
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model


def check(demand: demands.Demand, supply: supplies.Supply,
          providers: devices.Providers = ()) -> reasons.Misfit | None:
    """Say why a guest must not be sent to a host.

    :returns: None if the guest fits and Nova's claim will place it soundly
    """
    if counts_cells(demand, supply):
        return engine.check(demand, supply, providers)
    predicted = predict(demand, supply, providers)
    return predicted if isinstance(predicted, reasons.Misfit) else None


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
    affinity = affinity_check.AffinityCheck(demand, supply, providers)
    placed = _place(demand, supply, affinity)
    if isinstance(placed, reasons.Misfit):
        return placed
    return affinity.loss(placed.cells) or placed


def _place(demand: demands.Demand, supply: supplies.Supply,
           affinity: affinity_check.AffinityCheck,
           ) -> cell_assignments.CellAssignment | reasons.Misfit:
    misfit = affinity.second_look()
    if misfit is not None:
        return misfit
    if not demand.cells:
        return cell_assignments.CellAssignment(())
    ordered = engine.claim_order(demand, supply)
    if is_immune(demand):
        roomy = engine.first_with_room(demand, supply, ordered)
        if isinstance(roomy, reasons.Misfit):
            return roomy
        # If the first cells with room have the devices as well, the claim
        # fits each guest cell only once.
        if affinity.met(cell.id for cell in roomy):
            ids = [cell.id for cell in roomy]
            ranks = [rank for rank, cell in enumerate(ordered)
                     if cell.id in ids]
            return _accept(demand, supply, ordered, ranks,
                           tuple(cell.page_kib for cell in demand.cells))
    fitting = engine.arrange(demand, supply, ordered, affinity)
    if isinstance(fitting, reasons.Misfit):
        return fitting
    outcome = claim_replay.replay(demand, supply, ordered, affinity)
    if outcome.ranks is None or not outcome.sound:
        return _defect(demand, supply, ordered, affinity, outcome, fitting)
    return _accept(demand, supply, ordered, outcome.ranks, outcome.pages_kib)


def _accept(demand: demands.Demand, supply: supplies.Supply,
            ordered: Sequence[supplies.CellSupply], ranks: Sequence[int],
            pages_kib: tuple[int | None, ...],
            ) -> cell_assignments.CellAssignment | reasons.Misfit:
    """Accept the placement of the claim, if the claim finds it in time."""
    if (claim_replay.arrangements_before(ranks, len(ordered)) >=
            claim_replay.MAX_ARRANGEMENTS):
        return reasons.Misfit(reasons.Code.CLAIM_TOO_LONG, {
            'tried': claim_replay.MAX_ARRANGEMENTS,
            'defect': reasons.Defect.TOO_MANY_ATTEMPTS})
    return scope_check.enforce(demand, supply, cell_assignments.CellAssignment(
        tuple(ordered[rank].id for rank in ranks), pages_kib))


def find_defect(demand: demands.Demand, supply: supplies.Supply,
                providers: devices.Providers = (),
                ) -> reasons.Misfit | None:
    """Say what is wrong with the placement that the claim would choose.

    :returns: None if the placement is sound, or if the claim refuses the guest
    """
    if len(supply.cells) < len(demand.cells):
        return None
    ordered = engine.claim_order(demand, supply)
    affinity = affinity_check.AffinityCheck(demand, supply, providers)
    outcome = claim_replay.replay(demand, supply, ordered, affinity)
    if outcome.ranks is None:
        return (_defect(demand, supply, ordered, affinity, outcome, ())
                if outcome.given_up else None)
    if not outcome.sound:
        return _defect(demand, supply, ordered, affinity, outcome, ())
    placed = _accept(demand, supply, ordered, outcome.ranks,
                     outcome.pages_kib)
    return (placed if isinstance(placed, reasons.Misfit)
            else affinity.loss(placed.cells))


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


def _defect(demand: demands.Demand, supply: supplies.Supply,
            ordered: Sequence[supplies.CellSupply],
            affinity: affinity_check.AffinityCheck,
            outcome: claim_replay.ClaimOutcome,
            fitting: Sequence[int]) -> reasons.Misfit:
    """Say which defect of Nova keeps a guest that fits off a host.

    :param fitting: the ranks of host cells on which the guest fits
    """
    if outcome.given_up:
        return reasons.Misfit(reasons.Code.CLAIM_TOO_LONG, {
            'tried': claim_replay.MAX_TRIES,
            'defect': reasons.Defect.TOO_MANY_ATTEMPTS})
    if outcome.raised is not None:
        return reasons.Misfit(reasons.Code.CLAIM_RAISES, {
            'cell': ordered[outcome.raised].id,
            'defect': reasons.Defect.NO_CORES})
    if outcome.misaccounted is not None:
        return reasons.Misfit(reasons.Code.CLAIM_MISACCOUNTS, {
            'cell': ordered[outcome.misaccounted].id,
            'defect': reasons.Defect.EMULATOR_THREADS})
    defect = (reasons.Defect.DISTANT_DEVICES if demand.uniform
              else reasons.Defect.UNEQUAL_CELLS)
    if demand.pages_by_class and claim_replay.replay(
            demand, supply, ordered, affinity, settle_pages=False).sound:
        defect = reasons.Defect.PAGE_CLASS
    if outcome.ranks is None or outcome.misplaced is None:
        return reasons.Misfit(reasons.Code.CLAIM_REFUSES, {
            'cells': reasons.cells(ordered[rank].id for rank in fitting),
            'defect': defect})
    return reasons.Misfit(reasons.Code.CLAIM_MISPLACES, {
        'guest_cell': outcome.misplaced,
        'cell': ordered[outcome.ranks[outcome.misplaced]].id,
        'defect': defect})
