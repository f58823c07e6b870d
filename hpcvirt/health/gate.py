# SPDX-License-Identifier: Apache-2.0

"""Decide which hosts take instances only after the quick gate.

A compute host that appears without instances is new, and one that somebody
takes out of quarantine may have been repaired. Such a host is held until its
gate passes; the hold begins while the others still hold it, so that it is
never free in between. A host that fails stays held until it was in the
quarantine of an operator, or its nova-compute was down, which is taken for a
repair. One about which nothing could be decided is tested again after an hour.

Hosts that are there at the first start, or that have instances when they
appear, count as passed: a gate takes no capacity from a cloud in service.
"""

import dataclasses
import enum
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping

from hpcvirt.model import quarantine

#: The most hosts that are tested at a time.
BATCH = 4

#: When a host about which nothing could be decided is tested again.
RETRY_S = 3600.0

#: Holders after whose quarantine a host is tested. An acceptance has a gate of
#: its own, and an experiment changes nothing that lasts.
_REPAIRING = frozenset((quarantine.OPERATOR, quarantine.WATCH,
                        quarantine.DRAIN))


class GateState(enum.StrEnum):
    """What is known of a host; each value is part of the state file."""

    PASSED = 'passed'
    WAITING = 'waiting'
    FAILED = 'failed'
    UNDECIDED = 'undecided'


@dataclasses.dataclass(frozen=True, kw_only=True)
class GatedHost:
    """What is remembered of a host.

    :ivar reason: why it is held, or what its gate found
    :ivar since: when it got into this state, in seconds since 1970
    :ivar repairing: whether somebody may be repairing it
    """

    state: GateState
    reason: str = ''
    since: float = 0.0
    repairing: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class GatedCompute:
    """What the cloud says of a compute host.

    :ivar holds: those of the holders that have it in quarantine
    :ivar is_up: whether its nova-compute reports
    """

    holds: tuple[quarantine.Hold, ...] = ()
    is_up: bool = True

    @property
    def holders(self) -> frozenset[str]:
        """Who has it in quarantine."""
        return frozenset(hold.holder for hold in self.holds)

    @property
    def hold(self) -> quarantine.Hold | None:
        """The hold of the gate."""
        for hold in self.holds:
            if hold.holder == quarantine.GATE:
                return hold
        return None


def follow(known: Mapping[str, GatedHost] | None,
           computes: Mapping[str, GatedCompute],
           count: Callable[[str], int], now: float) -> dict[str, GatedHost]:
    """Take into account what the cloud says.

    :param known: None at the first start
    :param count: counts the instances of a host
    """
    hosts = {}
    for name, compute in computes.items():
        before = (known or {}).get(name)
        if before is not None:
            hosts[name] = _follow_host(before, compute, now)
        elif quarantine.GATE in compute.holders:
            hosts[name] = _wait('was held before', now)
        elif known is None or count(name):
            hosts[name] = GatedHost(state=GateState.PASSED, since=now)
        else:
            hosts[name] = _wait('is new', now)
    return hosts


def _wait(reason: str, now: float) -> GatedHost:
    return GatedHost(state=GateState.WAITING, reason=reason, since=now)


def _follow_host(before: GatedHost, compute: GatedCompute,
                 now: float) -> GatedHost:
    is_repaired = bool(compute.holders & _REPAIRING)
    if before.state is GateState.PASSED:
        return _wait('was in quarantine', now) if is_repaired else before
    if before.state is GateState.WAITING:
        return before
    is_repaired = is_repaired or not compute.is_up
    if is_repaired:
        return dataclasses.replace(before, repairing=True)
    if before.repairing:
        return _wait('may have been repaired', now)
    if before.state is GateState.UNDECIDED and now - before.since >= RETRY_S:
        return _wait('was not decided', now)
    return before


def decide(before: GatedHost, result: str, reason: str,
           now: float) -> GatedHost:
    """Take the end of a gate into account.

    :param result: PASS, FAIL, or anything else
    """
    state = {'PASS': GateState.PASSED, 'FAIL': GateState.FAILED}.get(
        result, GateState.UNDECIDED)
    return dataclasses.replace(
        before, state=state, since=now,
        reason='' if state is GateState.PASSED
        else f'the gate says {result}: {reason}')


def list_changes(hosts: Mapping[str, GatedHost],
                 computes: Mapping[str, GatedCompute],
                 ) -> tuple[list[str], list[str]]:
    """List the hosts that are to be held, and those to be released.

    A host that is held for another reason by now is to be held again, because
    operators read the reason in its quarantine.
    """
    held = []
    released = []
    for name, host in hosts.items():
        hold = computes[name].hold
        if host.state is GateState.PASSED:
            if hold is not None:
                released.append(name)
        elif hold is None or not quarantine.says(hold, host.reason):
            held.append(name)
    return held, released


def list_ready(hosts: Mapping[str, GatedHost],
               computes: Mapping[str, GatedCompute],
               running: Iterable[str]) -> list[str]:
    """List the hosts that can be tested, those that wait longest first.

    A host is tested only while nobody else holds it.
    """
    busy = set(running)
    ready = []
    for name, host in hosts.items():
        compute = computes[name]
        if (host.state is GateState.WAITING and name not in busy
                and compute.is_up
                and compute.holders == {quarantine.GATE}):
            ready.append(name)
    ready.sort(key=lambda name: (hosts[name].since, name))
    return ready
