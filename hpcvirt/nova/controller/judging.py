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

"""Judge the hosts of a cloud for a request, with Nova's own filters.

The steps are those of nova-scheduler, with its filters and weighers: what
Placement does not refuse goes through the enabled filters, in their order.
Each host is refused by the first step that does not let it pass. Where
hpcvirt's filter is not enabled, the claim on the compute host is predicted.
"""

import copy
import typing
from collections.abc import Mapping
from collections.abc import Sequence

import nova.conf
from nova import exception as nova_exception
from nova import weights as nova_weights

from hpcvirt import exception
from hpcvirt.fit import claim
from hpcvirt.fit import pins
from hpcvirt.fit import reasons
from hpcvirt.fleet import verdict
from hpcvirt.nova import claim_start
from hpcvirt.nova import filters
from hpcvirt.nova import picks
from hpcvirt.nova.controller import candidates
from hpcvirt.nova.controller import masking
from hpcvirt.nova.controller import request as requests
from hpcvirt.nova.controller import view as views

#: Filters of Nova whose refusals hpcvirt can explain.
_EXPLAINED = ('NUMATopologyFilter', 'PciPassthroughFilter')


def judge(view: views.View,
          request: requests.Request) -> tuple[verdict.Verdict, ...]:
    """Judge all hosts; those with broken records come last.

    :raises Unreachable: if Placement does not answer
    """
    judging = _Judging(view, request)
    judging.ask_placement()
    judging.filter()
    judging.weigh()
    broken = (verdict.broken(name, reason)
              for name, reason in view.fleet.broken.items())
    return (*(judging.verdicts[host.name] for host in view.fleet.hosts),
            *broken)


class _Judging:

    def __init__(self, view: views.View, request: requests.Request) -> None:
        self._view = view
        self._request = request
        self._spec = request.spec
        self._manager = view.found.manager
        self.verdicts: dict[str, verdict.Verdict] = {}
        self._left: list[typing.Any] = []
        self._names = {id(state): name
                       for name, state in view.found.states.items()}
        self._judge = filters.Request(self._spec)

    def _refuse(self, host_state: typing.Any, step: verdict.Step,
                code: verdict.AnyCode, reason: str,
                root: verdict.AnyCode | None = None) -> None:
        name = self._names[id(host_state)]
        self.verdicts[name] = verdict.Verdict(
            name, step, code, root or code, reason)

    def ask_placement(self) -> None:
        """Keep the hosts of which Placement has candidates."""
        view = self._view
        answer = candidates.ask(view.context, view.placement, self._manager,
                                self._spec)
        explanation: candidates.Explanation | None = None
        for host in view.fleet.hosts:
            state = view.found.states[host.name]
            state.allocation_candidates = copy.deepcopy(
                answer.by_host.get(state.uuid, []))
            closed = view.found.closed.get(host.name)
            if state.uuid in answer.hosts:
                if closed and state.cell_uuid in view.disabled_cells:
                    self._refuse(state, verdict.Step.FILTER,
                                 reasons.Code.CLOSED, closed)
                else:
                    self._left.append(state)
                continue
            explanation = explanation or candidates.Explanation(
                view.placement, self._manager, self._request, answer,
                view.providers)
            refusal = explanation.of(state.uuid)
            reason = refusal.reason
            if closed:
                reason = reason.replace('its nova-compute is disabled', closed)
            self._refuse(state, verdict.Step.PLACEMENT, refusal.code, reason)

    def filter(self) -> None:
        """Keep the hosts that pass the enabled filters."""
        enabled = self._manager.enabled_filters
        # Without filters, only the hosts that the request excludes are left
        # out.
        self._manager.enabled_filters = []
        try:
            wanted = list(self._manager.get_filtered_hosts(
                self._left, self._spec) or ())
        finally:
            self._manager.enabled_filters = enabled
        for state in self._left:
            if not any(state is other for other in wanted):
                self._refuse(
                    state, verdict.Step.FILTER, verdict.Barrier.NOT_WANTED,
                    'the request excludes the host, as a migration does the '
                    'host of the server')
        self._left = wanted
        hint = self._spec.scheduler_hints or {}
        if (self._spec.force_hosts or self._spec.force_nodes) and not hint.get(
                '_nova_check_type'):
            return
        for each in enabled:
            self._pass_through(each)
        if not any(map(filters.enforces, enabled)):
            self._claim()

    def _pass_through(self, each: typing.Any) -> None:
        name = type(each).__name__
        before = self._left
        if filters.enforces(each):
            # The same that filter_all does, with the reasons.
            misfits = {id(state): misfit for state, misfit
                       in self._judge.judge(list(before))}
            passed = {number for number, misfit in misfits.items()
                      if misfit is None}
        else:
            misfits = {id(state): self._misfit(state) for state in before
                       } if name in _EXPLAINED else {}
            passed = {id(state) for state in
                      each.filter_all(list(before), self._spec) or ()}
        self._left = []
        for state in before:
            misfit = misfits.get(id(state))
            if id(state) in passed:
                self._left.append(state)
            elif misfit is not None:
                self._refuse(state, _step(misfit), misfit.code,
                             misfit.message, misfit.root)
            else:
                self._refuse(state, verdict.Step.FILTER,
                             verdict.Barrier.OTHER_FILTER,
                             self._of_other(name, state))

    def _of_other(self, name: str, state: typing.Any) -> str:
        closed = self._view.found.closed.get(self._names[id(state)])
        if name == 'ComputeFilter' and closed:
            return closed
        return f'{name} of nova.conf refuses the host'

    def _misfit(self, state: typing.Any) -> reasons.Misfit | None:
        """Ask hpcvirt's filter, without changes to the host state."""
        kept = list(state.allocation_candidates)
        try:
            return self._judge.refuse(state)
        finally:
            state.allocation_candidates = kept

    def _claim(self) -> None:
        """Predict the claims that hpcvirt's filter would have prevented."""
        before, self._left = self._left, []
        for state in before:
            misfit = self._misfit(state)
            if misfit is None:
                self._left.append(state)
            else:
                self._refuse(state, verdict.Step.CLAIM, misfit.code,
                             misfit.message, misfit.root)

    def weigh(self) -> None:
        """Weigh the hosts that are left, and predict where the claim goes."""
        scores = _scores(self._manager, self._left, self._spec)
        for state in self._left:
            name = self._names[id(state)]
            cells, cpus = self._place(state)
            self.verdicts[name] = verdict.Verdict(
                name, None, cells=cells, cpus=cpus,
                scores=scores.get(id(state), {}))

    def _place(self, state: typing.Any,
               ) -> tuple[tuple[int, ...], frozenset[int]]:
        """Say which cells and CPUs the claim will choose."""
        start = self._judge.start
        if start is None or not start.demand.cells:
            return (), frozenset()
        try:
            supply = picks.what_is_left(state, self._spec, start.demand)[0]
            first = (state.allocation_candidates[0]['mappings']
                     if state.allocation_candidates else None)
            allocation = (claim_start.Allocation() if first is None
                          else start.allocation(state, first))
            demand = start.bound(allocation)
            placed = claim.predict(
                demand, supply, nova.conf.CONF.compute
                .packing_host_numa_cells_allocation_strategy,
                allocation.providers)
        except exception.InvalidInput:
            return (), frozenset()
        if isinstance(placed, reasons.Misfit):
            return (), frozenset()
        return placed.cells, pins.of_cells(demand, supply, placed.cells)


def _step(misfit: reasons.Misfit) -> verdict.Step:
    return (verdict.Step.CLAIM if misfit.code.startswith('claim-')
            else verdict.Step.FILTER)


def _scores(manager: typing.Any, states: Sequence[typing.Any],
            spec: typing.Any) -> Mapping[int, Mapping[str, float]]:
    """Weigh hosts as Nova does; it weighs no single host.

    :returns: id of a HostState -> weigher -> its part of the weight
    """
    if len(states) < 2:
        return {}
    weighed = [manager.weight_handler.object_class(state, 0.0)
               for state in states]
    scores: dict[int, dict[str, float]] = {id(state): {} for state in states}
    for weigher in manager.weighers:
        try:
            weights = list(nova_weights.normalize(
                weigher.weigh_objects(weighed, spec),
                minval=weigher.minval, maxval=weigher.maxval))
        except nova_exception.NovaException as exc:
            raise exception.Unreachable(
                f'{type(weigher).__name__} fails: '
                f'{masking.masked(exc)}') from None
        for state, weight in zip(states, weights, strict=True):
            score = weigher.weight_multiplier(state) * weight
            if score:
                scores[id(state)][type(weigher).__name__] = score
    return scores
