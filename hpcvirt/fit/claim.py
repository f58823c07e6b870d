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

"""What Nova's claim on the compute host will do, defects included.

Only the claim chooses cells and CPUs. It tries arrangements of host cells
in a known order (:mod:`hpcvirt.fit.order`) and keeps in mind which guest
cell fits on which host cell, but under a number of the guest cell that the
trying itself overwrites. One guest cell then goes by what was found for
another: a guest that fits is refused, or gets CPUs and memory where it was
never fitted (defects A and B). A page size asked for by class is settled by
the first host cell tried (defect C). And where nothing fits, all the
arrangements are tried (defect D). So it is in Nova 32 to 34,
``nova.virt.hardware.numa_fit_instance_to_host``.

:func:`predict` answers with the placement that the claim will come to, and
refuses a host where there is none or where it is not sound. Most guests are
out of reach of the defects; for the others :mod:`hpcvirt.fit.claim_replay`
does as the claim does.
"""

from collections.abc import Sequence

from hpcvirt.fit import claim_replay
from hpcvirt.fit import conditions as rules
from hpcvirt.fit import demand as demands
from hpcvirt.fit import devices
from hpcvirt.fit import engine
from hpcvirt.fit import order
from hpcvirt.fit import placement as placements
from hpcvirt.fit import reasons
from hpcvirt.fit import scope_check
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model


def check(demand: demands.Demand, supply: supplies.Supply,
          packing: bool = False,
          providers: devices.Providers = ()) -> reasons.Misfit | None:
    """Say why a guest must not go to a host; None if it may.

    It may if it fits there and Nova's claim will find out where.
    """
    if demand.cells and _out_of_reach(demand) and not demand.selective:
        return engine.check(demand, supply, packing, providers)
    predicted = predict(demand, supply, packing, providers)
    return predicted if isinstance(predicted, reasons.Misfit) else None


def predict(demand: demands.Demand, supply: supplies.Supply,
            packing: bool = False, providers: devices.Providers = (),
            ) -> placements.Placement | reasons.Misfit:
    """Foretell the placement that Nova's claim will come to.

    :param packing: ``[compute]packing_host_numa_cells_allocation_strategy``
        of the compute host
    :param providers: what Placement allocated to each PCI request
    :returns: the placement, or why the guest must not go to this host
    """
    if not demand.cells:
        return placements.Placement(())
    ordered = order.claim_order(demand, supply, packing)
    conditions = rules.Conditions(demand, supply, providers)
    if _out_of_reach(demand):
        roomy = engine.first_with_room(demand, supply, ordered)
        if isinstance(roomy, reasons.Misfit):
            return roomy
        # The first cells with room have the devices too: each guest cell is
        # fitted just once, and stays there.
        if conditions.met(cell.id for cell in roomy):
            return scope_check.judge(demand, supply, placements.Placement(
                tuple(cell.id for cell in roomy),
                tuple(cell.page_kib for cell in demand.cells)))
    fitting = engine.arrange(demand, supply, ordered, conditions)
    if isinstance(fitting, reasons.Misfit):
        return fitting
    end = claim_replay.follow(demand, supply, ordered, conditions)
    if end.ranks is None or not end.sound:
        return _defect(demand, supply, ordered, conditions, end, fitting)
    return scope_check.judge(demand, supply, placements.Placement(
        tuple(ordered[rank].id for rank in end.ranks), end.pages_kib))


def _out_of_reach(demand: demands.Demand) -> bool:
    """No defect touches this guest as long as any cells with room will do."""
    first = demand.cells[0]
    return (demand.uniform and not demand.pages_by_class and
            (first.pcpus > 0 or
             first.policy is shape_model.CPUPolicy.SHARED) and
            not (first.emulator_pcpus and
                 first.threads is shape_model.ThreadPolicy.ISOLATE))


def _defect(demand: demands.Demand, supply: supplies.Supply,
            ordered: Sequence[supplies.CellSupply],
            conditions: rules.Conditions, end: claim_replay.Outcome,
            fitting: Sequence[int]) -> reasons.Misfit:
    """Say which of Nova's defects keeps a guest that fits off a host.

    :param end: how the claim ends
    :param fitting: the ranks where the guest fits
    """
    if end.given_up:
        return reasons.Misfit(reasons.Code.CLAIM_TOO_LONG, {
            'tried': claim_replay.MOST_TRIES, 'defect': 'D'})
    if end.raised is not None:
        return reasons.Misfit(reasons.Code.CLAIM_RAISES, {
            'cell': ordered[end.raised].id, 'defect': 'G'})
    if end.misaccounted is not None:
        return reasons.Misfit(reasons.Code.CLAIM_MISACCOUNTS, {
            'cell': ordered[end.misaccounted].id, 'defect': 'F'})
    defect = 'B' if demand.uniform else 'A'
    if demand.pages_by_class and claim_replay.follow(
            demand, supply, ordered, conditions, settle_pages=False).sound:
        defect = 'C'
    if end.ranks is None or end.misplaced is None:
        return reasons.Misfit(reasons.Code.CLAIM_REFUSES, {
            'cells': ', '.join(str(ordered[rank].id) for rank in fitting),
            'defect': defect})
    return reasons.Misfit(reasons.Code.CLAIM_MISPLACES, {
        'guest_cell': end.misplaced,
        'cell': ordered[end.ranks[end.misplaced]].id, 'defect': defect})
