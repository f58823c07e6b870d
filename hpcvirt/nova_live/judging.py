# SPDX-License-Identifier: Apache-2.0

"""Judge the hosts of a cloud for a request, with Nova's own filters.

The steps are those of nova-scheduler: the candidates of Placement pass through
the enabled filters, in their order, and are weighed by the enabled weighers.
The verdict about a host is that of the first step that refuses it. If
hpcvirt's filter is not enabled, the claim on the compute host is predicted.
"""

import copy
import typing
from collections.abc import Mapping
from collections.abc import Sequence

from nova import exception as nova_exception
from nova import weights as nova_weights

from hpcvirt import exception
from hpcvirt.fit import allocation
from hpcvirt.fit import reasons
from hpcvirt.fleet import verdict
from hpcvirt.nova import claim_input
from hpcvirt.nova import config
from hpcvirt.nova import decision
from hpcvirt.nova import filters
from hpcvirt.nova import weights as own_weights
from hpcvirt.nova_live import boot_request as boot_requests
from hpcvirt.nova_live import candidates
from hpcvirt.nova_live import masking
from hpcvirt.nova_live import view as views

#: Filters of Nova whose refusals hpcvirt can explain.
_EXPLAINED = ('NUMATopologyFilter', 'PciPassthroughFilter')


def judge(view: views.View,
          request: boot_requests.BootRequest) -> tuple[verdict.HostVerdict,
                                                       ...]:
    """Judge all hosts; those with broken records come last.

    :raises Unreachable: if Placement does not answer
    """
    judging = _Judging(view, request)
    judging.ask_placement()
    judging.filter()
    judging.weigh()
    broken = (verdict.make_broken(name, reason)
              for name, reason in view.fleet.broken.items())
    return (*(judging.verdicts[host.name] for host in view.fleet.hosts),
            *broken)


class _Judging:

    def __init__(self, view: views.View,
                 request: boot_requests.BootRequest) -> None:
        self._view = view
        self._request = request
        self._spec = request.spec
        self._manager = view.found.manager
        self.verdicts: dict[str, verdict.HostVerdict] = {}
        self._left: list[typing.Any] = []
        self._names = {id(state): name
                       for name, state in view.found.states.items()}
        self._judge = decision.FilterDecision(self._spec)

    def _refuse(self, host_state: typing.Any, step: verdict.SchedulingStep,
                code: verdict.AnyCode, reason: str) -> None:
        name = self._names[id(host_state)]
        self.verdicts[name] = verdict.HostVerdict(name, step, code, code,
                                                  reason)

    def _refuse_by(self, host_state: typing.Any, misfit: reasons.Misfit,
                   step: verdict.SchedulingStep | None = None) -> None:
        name = self._names[id(host_state)]
        self.verdicts[name] = verdict.refuse(name, misfit, step)

    def ask_placement(self) -> None:
        """Keep the hosts for which Placement has candidates."""
        view = self._view
        answer = candidates.ask(view.context, view.placement, self._manager,
                                self._spec)
        explanation: candidates.CandidateExplainer | None = None
        for host in view.fleet.hosts:
            state = view.found.states[host.name]
            state.allocation_candidates = copy.deepcopy(
                answer.by_host.get(state.uuid, []))
            closed = view.found.closed.get(host.name)
            if state.uuid in answer.hosts:
                if closed and state.cell_uuid in view.disabled_cells:
                    self._refuse(state, verdict.SchedulingStep.FILTER,
                                 reasons.Code.CLOSED, closed)
                else:
                    self._left.append(state)
                continue
            explanation = explanation or candidates.CandidateExplainer(
                view.placement, self._manager, self._request, answer,
                view.providers)
            refusal = explanation.explain(state.uuid)
            reason = refusal.reason
            if closed:
                reason = reason.replace('its nova-compute is disabled', closed)
            self._refuse(state, verdict.SchedulingStep.PLACEMENT, refusal.code,
                         reason)

    def filter(self) -> None:
        """Keep the hosts that pass the enabled filters."""
        enabled = self._manager.enabled_filters
        # Without filters, get_filtered_hosts only drops the hosts that the
        # request excludes.
        self._manager.enabled_filters = []
        try:
            wanted = list(self._manager.get_filtered_hosts(
                self._left, self._spec) or ())
        finally:
            self._manager.enabled_filters = enabled
        for state in self._left:
            if not any(state is other for other in wanted):
                self._refuse(
                    state, verdict.SchedulingStep.FILTER,
                    verdict.Barrier.NOT_WANTED,
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
            # As in filter_all, but with the reasons.
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
                self._refuse_by(state, misfit)
            else:
                self._refuse(state, verdict.SchedulingStep.FILTER,
                             verdict.Barrier.OTHER_FILTER,
                             self._of_other(name, state))

    def _of_other(self, name: str, state: typing.Any) -> str:
        closed = self._view.found.closed.get(self._names[id(state)])
        if name == 'ComputeFilter' and closed:
            return closed
        return f'{name} of nova.conf refuses the host'

    def _misfit(self, state: typing.Any) -> reasons.Misfit | None:
        """Ask hpcvirt's filter without changing the host state."""
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
                self._refuse_by(state, misfit, verdict.SchedulingStep.CLAIM)

    def weigh(self) -> None:
        """Weigh the remaining hosts, and predict their claims."""
        scores = _scores(self._manager, self._left, self._spec)
        for state in self._left:
            name = self._names[id(state)]
            cells, cpus = self._place(state)
            self.verdicts[name] = verdict.HostVerdict(
                name, None, cells=cells, cpus=cpus,
                scores=scores.get(id(state), {}),
                compared=own_weights.describe(state) if scores else '')

    def _place(self, state: typing.Any,
               ) -> tuple[tuple[int, ...], frozenset[int]]:
        """Predict the cells and CPUs that the claim will choose."""
        start = self._judge.start
        if start is None or not start.demand.cells:
            return (), frozenset()
        try:
            found = claim_input.predict(state, self._spec, start,
                                        config.read_packing())
        except exception.InvalidInput:
            return (), frozenset()
        if found is None:
            return (), frozenset()
        return found.placed.cells, allocation.pin_guest(
            found.demand, found.supply, found.placed.cells)


def _scores(manager: typing.Any, states: Sequence[typing.Any],
            spec: typing.Any) -> Mapping[int, Mapping[str, float]]:
    """Weigh hosts as Nova does, which does not weigh a single host.

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
                f'{masking.mask(exc)}') from None
        for state, weight in zip(states, weights, strict=True):
            score = weigher.weight_multiplier(state) * weight
            if score:
                scores[id(state)][type(weigher).__name__] = score
    return scores
