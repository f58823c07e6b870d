# SPDX-License-Identifier: Apache-2.0

"""Decide about each host of a request, for HPCTopologyFilter.

The decision changes the HostState: a host that passes gets the limits of its
claim, and loses the allocation candidates on which the instance does not fit.
If its devices belong to sets, the candidates that are left are sorted: those
first that break the fewest whole sets. Nova claims the first one and, if
another scheduler has taken its devices, does not try the next one. Candidates
of equal cost are therefore shuffled.
"""

import collections
import copy
import random
import typing
from collections.abc import Iterator
from collections.abc import Sequence

import nova.conf
from nova import objects
from oslo_log import log as logging

from hpcvirt import exception
from hpcvirt.fit import demand as demands
from hpcvirt.fit import late_misfit
from hpcvirt.fit import move_check
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.nova import adapter
from hpcvirt.nova import charged_supply
from hpcvirt.nova import claim_input
from hpcvirt.nova import config
from hpcvirt.nova import lazy_sequence
from hpcvirt.nova import malformed_host
from hpcvirt.nova import no_valid_host_log
from hpcvirt.nova import port_interface
from hpcvirt.nova import quarantine
from hpcvirt.nova import quick_verdict

LOG = logging.getLogger(__name__)

#: The attribute of a RequestSpec about whose candidates a line was logged.
_NOTED = 'hpcvirt_noted_limit'

#: With these scheduler hints, Nova does not limit the answer of Placement.
_UNLIMITED = frozenset(('group', 'same_host', 'different_host'))

#: A HostState, and why it is refused.
Verdict = tuple[typing.Any, reasons.Misfit | None]


class FilterDecision:
    """The decisions of the filter about one request.

    :ivar start: what the claim starts from; None for an instance that needs
        nothing which the filter checks, and for a malformed request
    :ivar misallocated: the hosts that pass although Placement will hold other
        devices than the instance
    """

    def __init__(self, spec: typing.Any) -> None:
        self._spec = spec
        self.uuid = no_valid_host_log.read_instance(spec)
        self.start: claim_input.ClaimInput | None = None
        self.misallocated: list[str] = []
        self._malformed: reasons.Misfit | None = None
        self._quarantine = quarantine.QuarantinedHosts()
        try:
            demand = adapter.demand(spec)
            if demand is not None:
                self.start = claim_input.read(spec, demand)
        except exception.InvalidInput as exc:
            self._malformed = reasons.Misfit(
                reasons.Code.EXTRA_SPEC, {'key': exc.where, 'what': exc.what})
        self._packing = config.read_packing()
        self._learns = False
        self._fits: quick_verdict.HostTest | None = None
        if self.start is not None and self.start.move is None:
            # For the next of several instances, the fit engine must compute
            # what a host has left.
            self._fits = quick_verdict.make_test(
                self.start.demand, self._packing,
                no_valid_host_log.count_instances(spec) > 1)
        self._limits: dict[tuple[float, float],
                           objects.NUMATopologyLimits] = {}

    @property
    def demand(self) -> demands.Demand | None:
        """What the instance needs; None if ``start`` is None."""
        return self.start.demand if self.start is not None else None

    def may_refuse(self, host_states: Sequence[typing.Any]) -> bool:
        """Return whether any of these hosts could be refused."""
        return (self.start is not None or self._malformed is not None
                or any(map(self._quarantine.misfit, host_states)))

    def judge(self, host_states: Sequence[typing.Any],
              ) -> Iterator[Verdict]:
        """Yield each host with why it is refused, None if it passes.

        A host in quarantine is refused for every instance.
        """
        verdicts = ((host_state, self._judge(host_state)
                     if host_state.aggregates else self.refuse(host_state))
                    for host_state in host_states)
        start = self.start
        if start is not None:
            self._note_limit(start, host_states)
            self._learns = port_interface.learn(start.requests, host_states)
        if (start is None or start.move is not None or
                not move_check.needs_retry_check(start.demand) or
                nova.conf.CONF.scheduler.max_attempts < 2):
            return verdicts
        return self._sift(list(verdicts), start)

    def _note_limit(self, start: claim_input.ClaimInput,
                    host_states: Sequence[typing.Any]) -> None:
        """Log once per request that Placement may have cut off its answer.

        Nova asks for all candidates if the host depends on other instances.
        """
        limit = nova.conf.CONF.scheduler.max_placement_results
        count = sum(len(host_state.allocation_candidates)
                    for host_state in host_states)
        hints = ('scheduler_hints' in self._spec
                 and self._spec.scheduler_hints) or ()
        if (count < limit or hasattr(self._spec, _NOTED)
                or not any(map(adapter.is_of_flavor, start.requests))
                or not _UNLIMITED.isdisjoint(hints)):
            return
        setattr(self._spec, _NOTED, True)
        LOG.info('Placement has returned %(count)d allocation candidates, and '
                 '[scheduler]max_placement_results is %(limit)d: candidates '
                 'of these and of other hosts may be missing',
                 {'count': count, 'limit': limit}, instance_uuid=self.uuid)

    def _sift(self, verdicts: Sequence[Verdict],
              start: claim_input.ClaimInput) -> Iterator[Verdict]:
        """Refuse the hosts that must not become alternates.

        nova-scheduler selects one of the hosts that pass, and up to
        ``[scheduler]max_attempts`` - 1 others as alternates, on which the
        instance is built if the first build fails. The filter cannot see which
        host will be an alternate. If all hosts would be refused, the first one
        passes, because it is selected and has no alternates. This exception
        does not hold if several instances are created.
        """
        several = 'num_instances' in self._spec and (
            self._spec.num_instances > 1)
        passed = [host_state for host_state, misfit in verdicts
                  if misfit is None]
        unsafe = (self._find_unsafe(passed, start, several)
                  if len(passed) > 1 or several else {})
        if len(unsafe) == len(passed) and unsafe and not several:
            del unsafe[id(passed[0])]
        for host_state, misfit in verdicts:
            yield host_state, misfit or unsafe.get(id(host_state))

    def _find_unsafe(self, hosts: Sequence[typing.Any],
                     start: claim_input.ClaimInput,
                     several: bool) -> dict[int, reasons.Misfit]:
        """Return what would be wrong with each host as an alternate.

        The claim on a host follows the first of its allocation candidates.
        """
        unsafe: dict[int, reasons.Misfit] = {}
        claims = []
        for host_state in hosts:
            try:
                left = charged_supply.find_supplies(host_state, self._spec,
                                                    start, self._packing)
                allocation = start.first_allocation(host_state)
                demand = start.bound(allocation)
                found = {move_check.predict_pages(demand, supply,
                                                  allocation.providers)
                         for supply in left}
            except Exception as exc:  # noqa: BLE001
                unsafe[id(host_state)] = malformed_host.misfit(host_state, exc)
            else:
                claims.append((host_state, left, demand, allocation.providers,
                               {pages for pages in found if pages is not None}
                               ))
        counts = collections.Counter(
            pages for *_, own in claims for pages in own)
        for host_state, left, demand, providers, own in claims:
            possible = {pages for pages, count in counts.items()
                        if several or count > (pages in own)}
            try:
                misfit = next(filter(None, (
                    move_check.check_retry(demand, supply, possible, providers)
                    for supply in left)), None)
            except Exception as exc:  # noqa: BLE001
                misfit = malformed_host.misfit(host_state, exc)
            if misfit is not None:
                unsafe[id(host_state)] = misfit
        return unsafe

    def _judge(self, host_state: typing.Any) -> reasons.Misfit | None:
        try:
            held = self._quarantine.misfit(host_state)
        except Exception as exc:  # noqa: BLE001
            return malformed_host.misfit(host_state, exc)
        return held or self.refuse(host_state)

    def refuse(self, host_state: typing.Any) -> reasons.Misfit | None:
        """Return why a host is refused, or set the limits of its claim.

        An exception refuses the host and does not fail the request.
        """
        start = self.start
        # Nova's record of a host that was picked before is not reliable.
        if self._fits is not None and start is not None and not hasattr(
                host_state, charged_supply.ACCOUNT):
            try:
                fits = self._fits(host_state)
            except (*lazy_sequence.BROKEN, exception.InvalidInput):
                fits = None
            if fits is False:
                candidates = host_state.allocation_candidates
                host_state.allocation_candidates = []
                return late_misfit.LateMisfit(self._explain, start, host_state,
                                              candidates)
            if self._learns:
                port_interface.learn_new(host_state)
            if fits and host_state.allocation_candidates:
                host_state.limits['numa_topology'] = self._limits_of(
                    host_state)
                return None
        if self._malformed is not None or start is None:
            return self._malformed
        try:
            return self._refuse(start, host_state)
        except Exception as exc:  # noqa: BLE001
            return malformed_host.misfit(host_state, exc)

    def _refuse(self, start: claim_input.ClaimInput,
                host_state: typing.Any) -> reasons.Misfit | None:
        left = charged_supply.find_supplies(host_state, self._spec,
                                            start, self._packing)
        if not start.demand.cells:
            return self._narrow(start, left, host_state)
        if not left[0].cells:
            return reasons.Misfit(reasons.Code.NO_TOPOLOGY)
        misfit = self._narrow(start, left, host_state)
        if misfit is None:
            host_state.limits['numa_topology'] = self._limits_of(host_state)
        return misfit

    def _narrow(self, start: claim_input.ClaimInput,
                left: Sequence[supplies.Supply],
                host_state: typing.Any) -> reasons.Misfit | None:
        """Remove the candidates on which the instance does not fit.

        Candidates with devices of no common set are removed before any cells
        are looked at.
        """
        check = claim_input.HostCheck(start, left)
        if not start.requests and host_state.allocation_candidates:
            # The candidates do not differ for this instance.
            misfit = check.find_misfit(claim_input.Allocation())
            if misfit is not None:
                host_state.allocation_candidates = []
            return misfit
        sets = start.find_sets(left[0])
        found = [(start.allocation(host_state, candidate['mappings']),
                  candidate) for candidate in host_state.allocation_candidates]
        misfits: dict[claim_input.Allocation, reasons.Misfit | None] = {}
        in_no_set = first_misfit = None
        for allocation, _ in found:
            if allocation in misfits:
                continue
            misfit = start.check_set(sets, allocation)
            if misfit is not None:
                in_no_set = in_no_set or misfit
            else:
                misfit = check.find_misfit(allocation)
                first_misfit = first_misfit or misfit
            misfits[allocation] = misfit
        remaining = [pair for pair in found if misfits[pair[0]] is None]
        if sets.known:
            random.shuffle(remaining)
            remaining.sort(key=lambda pair: sets.cost(pair[0].providers))
        # That the search was given up says more than why other candidates are
        # refused, and what the sets with the devices lack says more than that
        # other candidates are in no set.
        first_misfit = check.undecided or first_misfit or in_no_set
        host_state.allocation_candidates = [
            candidate for _, candidate in remaining]
        if remaining:
            if not start.prefer_claimed_devices(left[0], host_state):
                self.misallocated.append(host_state.host)
            if first_misfit is not None:
                LOG.debug('%(host)s, %(node)s: removed allocation candidates, '
                          '%(remaining)d remain: %(misfit)s',
                          {'host': host_state.host,
                           'node': host_state.nodename,
                           'remaining': len(remaining),
                           'misfit': first_misfit},
                          instance_uuid=self.uuid)
            return None
        return first_misfit or reasons.Misfit(reasons.Code.NO_CANDIDATES)

    def _explain(self, start: claim_input.ClaimInput, host_state: typing.Any,
                 candidates: Sequence[typing.Any]) -> reasons.Misfit:
        """Return why an instance does not fit on a host.

        :param candidates: the allocation candidates that the host had
        """
        twin = copy.copy(host_state)
        twin.allocation_candidates = candidates
        try:
            misfit = self._refuse(start, twin)
            if misfit is None:
                raise exception.InvalidInput(
                    'the NUMA topology',
                    'CPUs are pinned that are not dedicated')
        except Exception as exc:  # noqa: BLE001
            return malformed_host.misfit(host_state, exc)
        return misfit

    def _limits_of(self, host_state: typing.Any) -> typing.Any:
        """Return the limits that the claim will apply.

        Hosts with equal allocation ratios share an object, which is never
        changed.
        """
        ratios = (host_state.cpu_allocation_ratio,
                  host_state.ram_allocation_ratio)
        limits = self._limits.get(ratios)
        if limits is None:
            limits = objects.NUMATopologyLimits(
                cpu_allocation_ratio=ratios[0],
                ram_allocation_ratio=ratios[1])
            network = adapter.network(self._spec)
            if network:
                limits.network_metadata = network
            self._limits[ratios] = limits
        return limits
