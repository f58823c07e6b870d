# SPDX-License-Identifier: Apache-2.0

"""The acceptance of a host: the instances that fill it, and the decision.

A host that passes gets traits, which flavors may require:

``CUSTOM_HPCVIRT_OVERHEAD_LE_3``, ``_5`` and ``_10``
    if programs in guests take at most 3, 5 or 10 % longer than natively. The
    upper end of the interval of the worst judged figure decides. A host has
    all of these traits that hold, so that a flavor need require only one. A
    host that was compared with its class has none of them.

``CUSTOM_HPCVIRT_AUDITED``
    if its audit was given and found no fault.
"""

import dataclasses
import math
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.audit import finding
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import outcome
from hpcvirt.flavors import plan_document

#: Overhead in percent to the trait of hosts with at most that overhead.
OVERHEAD = {percent: f'CUSTOM_HPCVIRT_OVERHEAD_LE_{percent}'
            for percent in (3, 5, 10)}
AUDITED = 'CUSTOM_HPCVIRT_AUDITED'
#: All traits that an acceptance sets or removes.
TRAITS = (*OVERHEAD.values(), AUDITED)

SCHEMA_VERSION = 1


@dataclasses.dataclass(frozen=True, slots=True)
class AcceptancePart:
    """One measurement: instances of one flavor that fill the host.

    :ivar result: id of its result in the store, empty if it is not finished
    """

    flavor: str
    instances: int
    result: str = ''


@dataclasses.dataclass(frozen=True, slots=True)
class GateCheck:
    """What was checked of the hardware.

    :ivar passed: None if the host does not report it
    :ivar found: what was found, and where
    """

    name: str
    passed: bool | None
    found: str
    expected: str


@dataclasses.dataclass(frozen=True)
class Gate:
    """What the quick gate of a host found.

    :ivar target: where it was measured
    :ivar results: ids of the results in the store
    :ivar unable: what could not be measured, and why
    """

    target: str
    result: judgement.VerdictResult
    reason: str | None
    checks: tuple[GateCheck, ...]
    verdict: judgement.Verdict | None
    results: tuple[str, ...] = ()
    unable: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Acceptance:
    """The acceptance of one host.

    :ivar request: digest of the request; the same request continues an
        acceptance that was interrupted
    :ivar native: the native target, empty if the host is compared with its
        class
    :ivar command: the command that repeats the acceptance
    :ivar repaired: what was repaired on the host; attempts before the repair
        no longer count
    :ivar parts: none if only the quick gate was asked for
    :ivar machine: name to value: what the firmware says about the machine
    :ivar gate: the quick gate, None if none was taken
    :ivar audit: the findings of the audit, None if none was given
    :ivar result: PASS, FAIL or INCONCLUSIVE; None before the end
    :ivar reason: why the result is not PASS
    :ivar overhead: upper limit of the overhead of programs in guests (0.05 is
        5 %); None if the host was not compared with native
    :ivar traits: the traits that the host got
    """

    host: str
    request: str
    began_at: str
    command: str
    native: str
    benchmarks: tuple[str, ...]
    parts: tuple[AcceptancePart, ...]
    repaired: str = ''
    machine: Mapping[str, str] = dataclasses.field(default_factory=dict)
    audit: tuple[finding.Finding, ...] | None = None
    gate: Gate | None = None
    result: judgement.VerdictResult | None = None
    reason: str | None = None
    verdict: judgement.Verdict | None = None
    overhead: float | None = None
    traits: tuple[str, ...] = ()
    ended_at: str = ''
    schema_version: int = SCHEMA_VERSION

    @property
    def against(self) -> str:
        """What the host is compared with."""
        return self.native or 'its class'

    @property
    def is_stopped(self) -> bool:
        """Whether the gate has ended the acceptance."""
        return (self.gate is not None
                and self.gate.result is judgement.VerdictResult.FAIL)


def find_parts(plan: plan_document.PlanDocument, host: str,
               names: Sequence[str],
               where: str) -> tuple[AcceptancePart, ...]:
    """Return the measurements of an acceptance.

    :param names: flavors that fill the host, one after the other
    :param where: the file of the plan, for errors
    :raises InvalidInput: if the plan is not for this host and these flavors
    """
    parts = []
    for name in dict.fromkeys(names):
        flavor = plan.flavor(name)
        if flavor is None:
            raise exception.InvalidInput(
                where, f'has no flavor {name[:64]!r}; it has '
                + ', '.join([item.name for item in plan.flavors][:20]))
        count = flavor.per_host.get(host)
        if count is None:
            raise exception.InvalidInput(
                where, f'is not for the host {host}, but for '
                f'{", ".join(list(flavor.per_host)[:20])}: plan it with '
                f'"hpcvirt flavor plan --format json {host}=TOPOLOGY"')
        if not count:
            raise exception.InvalidInput(
                where, f'has no room for an instance of {name} on the host '
                f'{host}; choose another flavor')
        parts.append(AcceptancePart(name, count))
    return tuple(parts)


def decide_gate(target: str, checks: Sequence[GateCheck],
                verdict: judgement.Verdict | None, results: Sequence[str],
                unable: Sequence[str]) -> Gate:
    """Decide on what the gate of a host found.

    It fails if a check or a figure does. It passes if all figures do, and all
    checks of what the host reports.
    """
    word = judgement.VerdictResult.INCONCLUSIVE
    reason = next(iter(unable), None)
    if verdict is not None and (
            not unable or verdict.result is judgement.VerdictResult.FAIL):
        reason = verdict.reason
        if verdict.result is not judgement.VerdictResult.INVALID:
            word = verdict.result
    for check in checks:
        if check.passed is False:
            word = judgement.VerdictResult.FAIL
            reason = (f'{check.name}: {check.found}; '
                      f'expected {check.expected}')
            break
    return Gate(target, word, reason, tuple(checks), verdict, tuple(results),
                tuple(unable))


def decide(begun: Acceptance, verdict: judgement.Verdict | None,
           missing: str, ended_at: str) -> Acceptance:
    """Decide on a host.

    :param verdict: None if nothing was measured
    :param missing: why a measurement is missing, so that the host cannot
        pass; empty if none is
    """
    word = judgement.VerdictResult.INCONCLUSIVE
    if verdict is not None and (
            verdict.result is judgement.VerdictResult.FAIL
            or (verdict.result is judgement.VerdictResult.PASS
                and not missing)):
        word = verdict.result
    reason = verdict.reason if verdict else None
    if missing and word is not judgement.VerdictResult.FAIL:
        reason = missing
    if begun.gate is not None and (begun.is_stopped or not begun.parts):
        word, reason = begun.gate.result, begun.gate.reason
    found = dataclasses.replace(
        begun, result=word, reason=reason, verdict=verdict,
        overhead=overhead(verdict) if verdict and begun.native else None,
        ended_at=ended_at)
    return dataclasses.replace(found, traits=traits(found))


def overhead(verdict: judgement.Verdict) -> float | None:
    """Return the upper limit of the overhead in guests, as a fraction.

    :returns: the worse end of the worst interval; None if a judged figure
        has no interval
    """
    ends = []
    for figure in verdict.judgements:
        if figure.interval is None:
            return None
        is_rate = figure.direction is outcome.Direction.UP
        ends.append(stats.loss_of_ratio(
            figure.interval.low if is_rate else figure.interval.high,
            figure.direction))
    return max(0.0, math.expm1(min(max(ends), stats.EXTREME))) if ends else (
        None)


def traits(found: Acceptance) -> tuple[str, ...]:
    """Return the traits of a host; none unless it passes as a whole."""
    if found.result is not judgement.VerdictResult.PASS or not found.parts:
        return ()
    earned = [] if found.overhead is None else [
        name for percent, name in OVERHEAD.items()
        if found.overhead <= percent / 100 + stats.EQUAL]
    if found.audit is not None and is_sound(found.audit):
        earned.append(AUDITED)
    return tuple(earned)


def is_sound(findings: Iterable[finding.Finding]) -> bool:
    """Whether an audit has found no fault."""
    return not any(each.severity in finding.FAULTS for each in findings)
