# SPDX-License-Identifier: Apache-2.0

"""Audit a host: apply all rules to its facts."""

import contextlib
import dataclasses
import functools
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import bibliography
from hpcvirt import exception
from hpcvirt import plug_ins
from hpcvirt.audit import costs
from hpcvirt.audit import fact
from hpcvirt.audit import finding
from hpcvirt.audit import rule as rules
from hpcvirt.audit.reading.host import HostFacts
from hpcvirt.audit.rules import cpu
from hpcvirt.audit.rules import devices
from hpcvirt.audit.rules import hardware
from hpcvirt.audit.rules import isolation
from hpcvirt.audit.rules import kernel
from hpcvirt.audit.rules import memory
from hpcvirt.audit.rules import nova
from hpcvirt.audit.rules import nova_cpus
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import warning

RULES: tuple[rules.Rule, ...] = (
    *kernel.RULES, *memory.RULES, *isolation.RULES,
    *nova_cpus.RULES, *nova.RULES, *cpu.RULES, *hardware.RULES,
    *devices.RULES)

#: The entry points of other packages: a rule, or a module with RULES.
GROUP = 'hpcvirt.audit.rules'

#: The code of the findings about facts that are not known.
UNKNOWN = 'unknown-fact'

#: What makes a fact known, by a word of the problem.
_CHANGES = {
    'ermission': '# run the audit as root',
    'when it was captured': '# capture the host as root',
    'was not captured': '# capture the host with hpcvirt host capture'}


@dataclasses.dataclass(frozen=True, slots=True)
class Audit:
    """The findings about a host, the worst and costliest first.

    :ivar checked: the codes of the rules that have an answer
    :ivar warnings: those of the plan, if a profile is given
    """

    host: str
    findings: tuple[finding.Finding, ...]
    checked: tuple[str, ...]
    warnings: tuple[warning.PlanWarning, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether all facts are known and none is a fault; notes may be."""
        return not any(item.severity in finding.FAULTS
                       for item in self.findings)


def audit(facts: HostFacts,
          profile: profiles.Profile | None = None) -> Audit:
    """Audit a host.

    :param profile: the profile for which the host should be configured; None
        to judge it by itself
    """
    plan = fact.fact(lambda: _plan(facts, profile))
    subject = rules.AuditSubject(
        facts, profile, plan.hosts[0] if isinstance(plan, plans.Plan)
        else plan)
    found: list[finding.Finding] = []
    percents: dict[tuple[finding.Severity, str], float] = {}
    silent: dict[fact.UnknownFact, list[str]] = {}
    checked = []
    for rule in all_rules():
        try:
            for item in _find_violations(rule, subject):
                cost = item.cost or costs.BY_RULE.get(rule.code)
                severity = item.severity or rule.severity
                percents[severity, rule.code] = max(
                    cost.percent if cost else 0,
                    percents.get((severity, rule.code), 0))
                found.append(finding.Finding(
                    rule.code, severity, item.found, item.expected, rule.why,
                    rule.sources, item.change,
                    '' if severity is finding.Severity.UNKNOWN
                    else str(cost or costs.NOT_MEASURED)))
            checked.append(rule.code)
        except fact.NotKnown as exc:  # what was found before still counts
            silent.setdefault(exc.unknown, []).append(rule.code)
    found += [_unknown(item, codes) for item, codes in silent.items()]
    found.sort(key=lambda item: (
        finding.ORDER.index(item.severity),
        -percents.get((item.severity, item.code), 0), item.code))
    return Audit(facts.name, tuple(found), tuple(checked),
                 plan.warnings if isinstance(plan, plans.Plan) else ())


@functools.cache
def all_rules() -> tuple[rules.Rule, ...]:
    """Return the rules of hpcvirt, and then those of other packages.

    :raises InvalidInput: if a rule of another package cannot be loaded, or
        has the code of another rule
    """
    found = list(RULES)
    codes = {rule.code for rule in RULES} | {UNKNOWN}
    for name in plug_ins.names(GROUP):
        added = plug_ins.find(GROUP, name)
        where = f'entry point {name} of {GROUP}'
        more = getattr(added, 'RULES', (added,))
        for rule in more:
            if not isinstance(rule, rules.Rule):
                raise exception.InvalidInput(
                    where, 'is neither a Rule nor a module with RULES')
            if rule.code in codes:
                raise exception.InvalidInput(
                    where, f'has the code {rule.code!r} of another rule')
            for key in rule.sources:
                # The report cites it.
                bibliography.get(key)
            codes.add(rule.code)
            found.append(rule)
    return tuple(found)


def _find_violations(rule: rules.Rule,
                     subject: rules.AuditSubject) -> Iterator[rules.Violation]:
    """Apply a rule; one of another package may fail in any way."""
    if rule in RULES:
        yield from rule.find(subject)
        return
    try:
        yield from rule.find(subject)
    except exception.HpcvirtError:
        raise
    except Exception as exc:
        raise fact.NotKnown(
            f'rule {rule.code}',
            f'failed ({type(exc).__name__}: {exc})') from exc


def counts(audit: Audit) -> Mapping[finding.Severity, int]:
    """Count the findings of each severity."""
    return {severity: sum(item.severity is severity
                          for item in audit.findings)
            for severity in finding.ORDER}


def _plan(facts: HostFacts,
          profile: profiles.Profile | None) -> plans.Plan | None:
    if profile is None:
        return None
    with contextlib.suppress(fact.NotKnown):
        if rules.AuditSubject(facts).parked:
            return None
    try:
        return planner.plan([facts.host], profile)
    except exception.InvalidInput as exc:
        raise fact.NotKnown('the plan of this host with the profile',
                            exc.what) from exc


def _unknown(item: fact.UnknownFact, codes: Sequence[str]) -> finding.Finding:
    return finding.Finding(
        UNKNOWN, finding.Severity.UNKNOWN, f'{item.where}: {item.problem}',
        f'an answer of {", ".join(codes)}',
        'an unknown state is not assumed to be good', (),
        tuple(change for word, change in _CHANGES.items()
              if word in item.problem))
