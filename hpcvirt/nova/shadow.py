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

"""Compare the decisions of HPCTopologyFilter with those of Nova's filters.

In shadow mode nothing may change for a request: both sides decide about
copies of the HostStates, because they set limits and remove allocation
candidates, and an error ends the comparison, not the request. Nova's filters
also change the request, but copy it themselves.
"""

import copy
import math
import time
import typing
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence

import nova.conf
from nova.scheduler.filters import numa_topology_filter
from nova.scheduler.filters import pci_passthrough_filter
from oslo_log import log as logging

from hpcvirt.fit import demand as demands
from hpcvirt.fit import reasons
from hpcvirt.fleet import refusal
from hpcvirt.fleet import shadow
from hpcvirt.nova import alternates
from hpcvirt.nova import picks
from hpcvirt.nova import refused

LOG = logging.getLogger(__name__)

#: Nova's filters get so much time for one request, and then one host more.
MOST_SECONDS = 2.0

#: Arrangements of guest cells on host cells that Nova may try to find that
#: nothing fits, which takes some 10 us for each; with devices or networks it
#: takes 2 ms.
MOST_ARRANGEMENTS = 5000
_MOST_ARRANGEMENTS_WITH_DEVICES = 60

_Key = tuple[shadow.Direction, reasons.Code | None, str]


class Request(typing.Protocol):
    """What the filter knows of a request."""

    @property
    def demand(self) -> demands.Demand | None: ...

    def may_refuse(self, host_states: Sequence[typing.Any]) -> bool: ...

    def judge(self, host_states: Sequence[typing.Any],
              ) -> Iterator[alternates.Verdict]: ...


def check_configuration() -> None:
    """Warn if Nova's filter is not enabled behind HPCTopologyFilter."""
    enabled = nova.conf.CONF.filter_scheduler.enabled_filters
    if 'NUMATopologyFilter' not in enabled[
            enabled.index('HPCTopologyFilter')
            if 'HPCTopologyFilter' in enabled else 0:]:
        LOG.warning('[hpcvirt]filter_mode is shadow, but enabled_filters does '
                    'not have NUMATopologyFilter behind HPCTopologyFilter: '
                    'instances may be sent to hosts on which they do not fit')


def watch(spec: typing.Any, hosts: Sequence[typing.Any],
          read: Callable[[typing.Any], Request]) -> None:
    """Compare the decisions about hosts, and log how they differ.

    :param spec: a RequestSpec
    :param read: reads it, as HPCTopologyFilter does
    """
    # Whatever goes wrong here, the request goes on.
    try:
        if hosts and not refused.is_for_alternates(spec, hosts[0]):
            _watch(spec, hosts, read)
    except Exception:
        LOG.warning('The comparison with the filters of Nova has failed',
                    exc_info=True)


def _watch(spec: typing.Any, hosts: Sequence[typing.Any],
           read: Callable[[typing.Any], Request]) -> None:
    comparison = _Comparison(spec, hosts)
    try:
        request = read(spec)
        if not request.may_refuse(hosts):
            return
        comparison.run(request)
    except Exception as exc:  # noqa: BLE001
        comparison.error = _in_words(exc)
    comparison.log()


class _Comparison:
    """The decisions about the hosts of a request."""

    def __init__(self, spec: typing.Any, hosts: Sequence[typing.Any]) -> None:
        self._spec = spec
        self._hosts = hosts
        self._passed = self._passed_by_nova = self._compared = 0
        self._found: dict[_Key, shadow.Difference] = {}
        self.error: str | None = None

    def run(self, request: Request) -> None:
        """Compare the decisions about one host after the other."""
        twins = [_twin(host_state) for host_state in self._hosts]
        verdicts = {id(twin): misfit for twin, misfit
                    in request.judge(twins)}
        novas = _novas_filters()
        end = time.monotonic() + MOST_SECONDS
        for host_state, twin in zip(self._hosts, twins, strict=True):
            # What earlier picks of the request have taken from the host.
            account = vars(twin).get(picks.ACCOUNT)
            if account is not None:
                setattr(host_state, picks.ACCOUNT, account)
            misfit = verdicts[id(twin)]
            if time.monotonic() > end or (
                    misfit is not None and
                    _takes_long(request.demand, host_state)):
                continue
            self._compare(host_state, misfit, novas)

    def _compare(self, host_state: typing.Any, misfit: reasons.Misfit | None,
                 novas: Sequence[typing.Any]) -> None:
        twin = _twin(host_state)
        self._compared += 1
        self._passed += misfit is None
        for novas_filter in novas:
            name = type(novas_filter).__name__
            try:
                passes = novas_filter.host_passes(twin, self._spec)
            except Exception as exc:  # noqa: BLE001
                self._add(shadow.Direction.NOVA_FAILS, host_state, misfit,
                          name, f'{name} fails: {_in_words(exc)}')
                return
            if not passes:
                if misfit is None:
                    self._add(
                        shadow.Direction.NOVA_REFUSES, host_state, None,
                        name, f'{name} refuses a host on which the guest '
                        'fits')
                return
        self._passed_by_nova += 1
        if misfit is not None:
            self._add(shadow.Direction.HPCVIRT_REFUSES, host_state, misfit,
                      '', misfit.message)

    def _add(self, direction: shadow.Direction, host_state: typing.Any,
             misfit: reasons.Misfit | None, name: str, reason: str) -> None:
        code = misfit.root if misfit else None
        key = direction, code, name
        known = self._found.get(key)
        names = known.names if known else ()
        if len(names) < refusal.MOST_NAMES:
            names += host_state.host,
        self._found[key] = shadow.Difference(
            direction=direction, code=code, names=names,
            hosts=known.hosts + 1 if known else 1,
            reason=known.reason if known else reason)

    def log(self) -> None:
        """Write one line."""
        item = shadow.Comparison(
            **refused.identity(self._spec), hosts=len(self._hosts),
            compared=self._compared, passed=self._passed,
            passed_by_nova=self._passed_by_nova, error=self.error,
            differences=tuple(self._found.values()))
        LOG.log(
            logging.INFO if item.error is None else logging.WARNING,
            'Shadow mode: of %(compared)d hosts hpcvirt would pass %(passed)d '
            'and Nova %(novas)d, they disagree on %(differing)d%(error)s'
            '; instance %(instance)s; %(document)s', {
                'compared': item.compared, 'passed': item.passed,
                'novas': item.passed_by_nova, 'differing': item.differing,
                'error': '' if item.error is None else
                f'; the comparison failed ({item.error})',
                'instance': item.instance, 'document': shadow.text(item)})


def _twin(host_state: typing.Any) -> typing.Any:
    """Copy what a filter changes of a HostState."""
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


def _takes_long(demand: demands.Demand | None,
                host_state: typing.Any) -> bool:
    """Whether Nova would look for long before it refuses a host."""
    if demand is None or not host_state.numa_topology:
        return False
    most = MOST_ARRANGEMENTS
    if demand.requests or demand.physnets or demand.tunneled:
        most = _MOST_ARRANGEMENTS_WITH_DEVICES
    return math.perm(len(host_state.numa_topology.cells),
                     len(demand.cells)) > most


def _in_words(exc: Exception) -> str:
    return f'{type(exc).__name__}: {exc}'
