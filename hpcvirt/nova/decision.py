# SPDX-License-Identifier: Apache-2.0

"""Decide about each host of a request, for HPCTopologyFilter.

The decision changes the HostState: a host that passes gets the limits of its
claim, and loses the allocation candidates on which the instance does not fit.
If its devices belong to sets, the candidates that are left are sorted: those
first that break the fewest whole sets. Nova claims the first one and, if
another scheduler has taken its devices, does not try the next one. Candidates
of equal cost are therefore shuffled.

The fit engine decides. Most hosts of a full cloud are refused before, because
too few of their cells have the free CPUs and pages of a guest cell
(:func:`make_shortage_test`): this reads Nova's NUMACells without making a
Supply. :func:`hpcvirt.fit.cell.obstacle` checks the same and more, so that the
engine would refuse such a host as well.
"""

import collections
import copy
import itertools
import random
import typing
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence

import nova.conf
from nova import objects
from oslo_log import log as logging

from hpcvirt import exception
from hpcvirt.fit import demand as demands
from hpcvirt.fit import move_check
from hpcvirt.fit import reasons
from hpcvirt.fit import supply as supplies
from hpcvirt.model import shape as shape_model
from hpcvirt.nova import adapter
from hpcvirt.nova import claim_input
from hpcvirt.nova import config
from hpcvirt.nova import host_record
from hpcvirt.nova import no_valid_host_log
from hpcvirt.nova import port_interface
from hpcvirt.nova import quarantine

#: Whether too few cells of a NUMATopology have what a guest cell needs. It
#: raises what reading malformed data raises.
ShortageTest = Callable[[typing.Any], bool]


def make_shortage_test(demand: demands.Demand) -> ShortageTest | None:
    """Make a test that counts the cells with room for a guest cell.

    A host that is short is one that the fit engine refuses. The engine decides
    about the others.

    :returns: None for an instance without guest cells or with unequal ones
    """
    if not demand.cells or not demand.uniform:
        return None
    guest, size = demand.cells[0], len(demand.cells)
    pcpus = 0
    if guest.policy is not shape_model.CPUPolicy.SHARED:
        pcpus = guest.pcpus + guest.emulator_pcpus
    page_kib = max(guest.page_kib or 0, 0)
    pages = -(-guest.memory_mib * 1024 // page_kib) if page_kib else 0
    on_siblings = pcpus and guest.threads is shape_model.ThreadPolicy.REQUIRE

    def is_short(topology: typing.Any) -> bool:
        cells = topology._obj_cells
        found, spare = 0, len(cells) - size
        for cell in cells:
            # Nova pins no other CPUs than those of its pcpuset.
            if (len(cell._obj_pcpuset) - len(cell._obj_pinned_cpus) >= pcpus
                    and _has_pages(cell, page_kib, pages)
                    and (not on_siblings or _has_siblings(cell, guest.pcpus))):
                found += 1
                if found == size:
                    return False
            else:
                spare -= 1
                if spare < 0:
                    return True
        return True

    return is_short


def _has_pages(cell: typing.Any, page_kib: int, needed: int) -> bool:
    """Whether a NUMACell has free pages of a size; 0 for any size."""
    if not page_kib:
        return True
    for pages in cell._obj_mempages:
        if pages._obj_size_kb == page_kib:
            free = (pages._obj_total - pages._obj_used
                    - getattr(pages, '_obj_reserved', 0))
            return bool(free >= needed)
    return False


def _has_siblings(cell: typing.Any, needed: int) -> bool:
    """Whether a NUMACell has free threads on cores with several threads."""
    free = cell._obj_pcpuset - cell._obj_pinned_cpus
    for core in cell._obj_siblings:
        threads = len(core)
        if threads > 2:
            return True
        if threads == 2 and core <= free:
            needed -= 2
            if needed <= 0:
                return True
    return False


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
        self._is_short: ShortageTest | None = None
        if self.start is not None and self.start.move is None:
            self._is_short = make_shortage_test(self.start.demand)
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
                left = claim_input.find_supplies(host_state, self._spec,
                                                 start, self._packing)
                allocation = start.first_allocation(host_state)
                demand = start.bound(allocation)
                found = {move_check.predict_pages(demand, supply,
                                                  allocation.providers)
                         for supply in left}
            except Exception as exc:  # noqa: BLE001
                unsafe[id(host_state)] = host_record.make_misfit(host_state,
                                                                 exc)
            else:
                claims.append((host_state, left, demand, allocation.providers,
                               {pages for pages in found if pages is not None}
                               ))
        counts = collections.Counter(itertools.chain.from_iterable(
            own for *_, own in claims))
        for host_state, left, demand, providers, own in claims:
            possible = {pages for pages, count in counts.items()
                        if several or count > (pages in own)}
            try:
                misfit = next(filter(None, (
                    move_check.check_retry(demand, supply, possible, providers)
                    for supply in left)), None)
            except Exception as exc:  # noqa: BLE001
                misfit = host_record.make_misfit(host_state, exc)
            if misfit is not None:
                unsafe[id(host_state)] = misfit
        return unsafe

    def _judge(self, host_state: typing.Any) -> reasons.Misfit | None:
        try:
            held = self._quarantine.misfit(host_state)
        except Exception as exc:  # noqa: BLE001
            return host_record.make_misfit(host_state, exc)
        return held or self.refuse(host_state)

    def refuse(self, host_state: typing.Any) -> reasons.Misfit | None:
        """Return why a host is refused, or set the limits of its claim.

        An exception refuses the host and does not fail the request.
        """
        start = self.start
        if self._malformed is not None or start is None:
            return self._malformed
        # Nova's record of a host that was picked before is not reliable.
        if self._is_short is not None and not hasattr(
                host_state, claim_input.ACCOUNT):
            try:
                is_short = self._is_short(host_state.numa_topology)
            except host_record.BROKEN:
                is_short = False
            if is_short:
                candidates = host_state.allocation_candidates
                host_state.allocation_candidates = []
                return reasons.LateMisfit(self._explain, start, host_state,
                                          candidates)
            if self._learns:
                port_interface.learn_new(host_state)
        try:
            return self._refuse(start, host_state)
        except Exception as exc:  # noqa: BLE001
            return host_record.make_misfit(host_state, exc)

    def _refuse(self, start: claim_input.ClaimInput,
                host_state: typing.Any) -> reasons.Misfit | None:
        left = claim_input.find_supplies(host_state, self._spec,
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
            misfit = check.find_misfit(claim_input.NO_DEVICES)
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
            return host_record.make_misfit(host_state, exc)
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
