# SPDX-License-Identifier: Apache-2.0

"""Compare the decisions of HPCTopologyFilter with those of Nova's filters.

Shadow mode must not change the outcome of a request. Filters set limits and
remove allocation candidates, so both sides decide about copies of the
HostStates. An error ends the comparison, but not the request. Nova's filters
change only a copy of the request.
"""

import copy
import math
import time
import typing
from collections.abc import Iterator
from collections.abc import Sequence

import nova.conf
from nova.scheduler.filters import numa_topology_filter
from nova.scheduler.filters import pci_passthrough_filter
from oslo_log import log as logging

from hpcvirt.fit import decision_log
from hpcvirt.fit import demand as demands
from hpcvirt.fit import reasons
from hpcvirt.nova import claim_input
from hpcvirt.nova import decision
from hpcvirt.nova import no_valid_host_log

LOG = logging.getLogger(__name__)

#: The time for Nova's filters per request, exceeded by at most one host.
MAX_SECONDS = 2.0

#: The most arrangements of guest cells on host cells that Nova may try before
#: it refuses a host: about 10 us each, 2 ms with devices or networks.
MAX_ARRANGEMENTS = 5000
_MAX_ARRANGEMENTS_WITH_DEVICES = 60

#: How Nova's filters disagree, and a sentence about it; None if they pass.
_Answer = tuple[decision_log.Disagreement, str] | None
_Key = tuple[decision_log.Disagreement, reasons.Code | None]


def check_configuration() -> None:
    """Warn if Nova's filter is not enabled behind HPCTopologyFilter."""
    enabled = nova.conf.CONF.filter_scheduler.enabled_filters
    if 'NUMATopologyFilter' not in enabled[
            enabled.index('HPCTopologyFilter')
            if 'HPCTopologyFilter' in enabled else 0:]:
        LOG.warning('[hpcvirt]filter_mode is shadow, but enabled_filters does '
                    'not have NUMATopologyFilter behind HPCTopologyFilter: '
                    'instances may be sent to hosts on which they do not fit')


def watch(spec: typing.Any, hosts: Sequence[typing.Any]) -> None:
    """Compare the decisions about hosts, and log how they differ.

    :param spec: a RequestSpec
    """
    # No error of the comparison may fail the request.
    try:
        if hosts and not no_valid_host_log.is_for_alternates(spec, hosts[0]):
            _watch(spec, hosts)
    except Exception:
        LOG.warning('The comparison with the filters of Nova has failed',
                    exc_info=True)


def _watch(spec: typing.Any, hosts: Sequence[typing.Any]) -> None:
    sums: dict[str, typing.Any] = dict.fromkeys(
        ('compared', 'passed', 'passed_by_nova'), 0)
    differences: list[tuple[_Key, typing.Any, str]] = []
    error = None
    try:
        request = decision.FilterDecision(spec)
        if not request.may_refuse(hosts):
            return
        for host_state, misfit, nova in _compare(request, spec, hosts):
            sums['compared'] += 1
            sums['passed'] += misfit is None
            sums['passed_by_nova'] += nova is None
            if nova is None and misfit is not None:
                difference = (decision_log.Disagreement.HPCVIRT_REFUSES,
                              str(misfit))
            elif nova is not None and (misfit is None or nova[0] is
                                       decision_log.Disagreement.NOVA_FAILS):
                difference = nova
            else:
                continue
            key = difference[0], misfit.root if misfit else None
            differences.append((key, host_state, difference[1]))
    except Exception as exc:  # noqa: BLE001
        error = _describe_error(exc)
    identity = no_valid_host_log.identify(spec)
    LOG.log(logging.INFO if error is None else logging.WARNING, '%s',
            decision_log.write(decision_log.ShadowComparison(
                **identity, **sums, hosts=len(hosts),
                differing=len(differences), error=error)))
    for (direction, code), group in no_valid_host_log.group(differences):
        LOG.info('%s', decision_log.write(decision_log.ShadowDifference(
            **identity, **group, direction=direction, code=code)))


def _compare(request: decision.FilterDecision, spec: typing.Any,
             hosts: Sequence[typing.Any],
             ) -> Iterator[tuple[typing.Any, reasons.Misfit | None, _Answer]]:
    """Yield each host with both decisions about it."""
    twins = [_twin(host_state) for host_state in hosts]
    verdicts = {id(twin): misfit for twin, misfit in request.judge(twins)}
    novas = _novas_filters()
    end = time.monotonic() + MAX_SECONDS
    for host_state, twin in zip(hosts, twins, strict=True):
        # Keep what earlier picks of the request have taken from the host.
        account = vars(twin).get(claim_input.ACCOUNT)
        if account is not None:
            setattr(host_state, claim_input.ACCOUNT, account)
        misfit = verdicts[id(twin)]
        if time.monotonic() <= end and (misfit is None or not _takes_long(
                request.demand, host_state)):
            yield host_state, misfit, _ask_nova(novas, _twin(host_state), spec)


def _twin(host_state: typing.Any) -> typing.Any:
    """Copy a HostState as far as filters change it."""
    twin = copy.copy(host_state)
    twin.limits = dict(host_state.limits)
    return twin


def _novas_filters() -> list[typing.Any]:
    """Make the filters that HPCTopologyFilter replaces."""
    filters: list[typing.Any] = [numa_topology_filter.NUMATopologyFilter()]
    enabled = nova.conf.CONF.filter_scheduler.enabled_filters
    if 'PciPassthroughFilter' in enabled:
        filters.append(pci_passthrough_filter.PciPassthroughFilter())
    return filters


def _ask_nova(novas: Sequence[typing.Any], twin: typing.Any,
              spec: typing.Any) -> _Answer:
    """Call Nova's filters for a host until one refuses it or fails."""
    for novas_filter in novas:
        name = type(novas_filter).__name__
        try:
            if not novas_filter.host_passes(twin, spec):
                return (decision_log.Disagreement.NOVA_REFUSES,
                        f'{name} refuses a host on which the guest fits')
        except Exception as exc:  # noqa: BLE001
            return (decision_log.Disagreement.NOVA_FAILS,
                    f'{name} fails: {_describe_error(exc)}')
    return None


def _takes_long(demand: demands.Demand | None,
                host_state: typing.Any) -> bool:
    """Whether Nova would search for long before it refuses a host."""
    if demand is None or not host_state.numa_topology:
        return False
    most = MAX_ARRANGEMENTS
    if demand.requests or demand.physnets or demand.tunneled:
        most = _MAX_ARRANGEMENTS_WITH_DEVICES
    return math.perm(len(host_state.numa_topology.cells),
                     len(demand.cells)) > most


def _describe_error(exc: Exception) -> str:
    return f'{type(exc).__name__}: {exc}'
