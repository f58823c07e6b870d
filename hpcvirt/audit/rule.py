# SPDX-License-Identifier: Apache-2.0

"""The rules of an audit, and the subject that they look at."""

import dataclasses
import functools
from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.audit import costs
from hpcvirt.audit import fact
from hpcvirt.audit import finding
from hpcvirt.audit.reading.host import HostFacts
from hpcvirt.audit.reading.nova import NovaFacts
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model


@dataclasses.dataclass(frozen=True)
class AuditSubject:
    """A host and, if the operator gives a profile, its plan.

    :ivar profile: None if the operator gives none
    :ivar planned: the plan of this host with the profile; Unknown if the host
        cannot be planned, None while CPUs of it are parked
    """

    facts: HostFacts
    profile: profiles.Profile | None = None
    planned: plans.PlannedHost | fact.UnknownFact | None = None

    @property
    def host(self) -> host_model.Host:
        """The topology."""
        return self.facts.host

    @property
    def plan(self) -> plans.PlannedHost | None:
        """The plan of the host for the flavors of the profile."""
        return fact.unwrap(self.planned)

    @property
    def nova(self) -> NovaFacts | None:
        """The options of nova-compute."""
        return self.facts.nova

    @functools.cached_property
    def dedicated(self) -> frozenset[int]:
        """The CPUs dedicated to guests, as far as they exist.

        They are those of the plan if there is one: changes must not follow
        an option of nova-compute that has to be changed too.
        """
        cpus = (self.plan.settings.dedicated if self.plan
                else self.option_cpus('cpu_dedicated_set') or frozenset())
        return cpus & self.host.cpus

    @functools.cached_property
    def shared(self) -> frozenset[int]:
        """The CPUs of emulator threads and shared guests, likewise."""
        cpus = (self.plan.settings.shared if self.plan
                else self.option_cpus('cpu_shared_set') or frozenset())
        return cpus & self.host.cpus

    @property
    def parks_cpus(self) -> bool:
        """Whether Nova takes dedicated CPUs offline that no guest has."""
        nova = self.nova
        return bool(
            nova and nova.is_true('libvirt', 'cpu_power_management')
            and nova.get('libvirt', 'cpu_power_management_strategy',
                         'cpu_state') == 'cpu_state')

    @property
    def parked(self) -> frozenset[int]:
        """The dedicated CPUs that Nova has taken offline."""
        if not self.parks_cpus:
            return frozenset()
        return (self.option_cpus('cpu_dedicated_set')
                or frozenset()) - self.host.cpus

    @functools.cached_property
    def guests(self) -> frozenset[int]:
        """The dedicated CPUs, and their SMT siblings that are not shared."""
        cpus: set[int] = set()
        for cell in self.host.cells:
            for core in cell.siblings:
                if core & self.dedicated:
                    cpus |= core
        return frozenset(cpus) - self.shared | self.dedicated

    @property
    def others(self) -> frozenset[int]:
        """The CPUs that the host may use."""
        return self.host.cpus - self.guests

    def option_cpus(self, name: str) -> frozenset[int] | None:
        """Return the CPUs of an option of ``[compute]``; None if not set."""
        if self.planned and isinstance(
                fact.fact(lambda: self.nova), fact.UnknownFact):
            return None
        text = self.nova.get('compute', name) if self.nova else ''
        if not text:
            return None
        try:
            return cpuset.parse(text, name)
        except exception.InvalidInput as exc:
            raise fact.NotKnown(f'[compute]{name}', exc.what) from exc


@dataclasses.dataclass(frozen=True, slots=True)
class Violation:
    """A violation of a rule; the fields are those of a finding.

    :ivar severity: None for that of the rule
    :ivar cost: None for that of the rule
    """

    found: str
    expected: str
    change: tuple[str, ...] = ()
    severity: finding.Severity | None = None
    cost: costs.Cost | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """A rule.

    :ivar code: names its findings; it does not change between releases
    :ivar severity: the usual severity of its findings
    :ivar checks: what is checked, for the documentation
    :ivar why: the reason, one sentence without a full stop
    :ivar sources: keys of documents of the bibliography
    :ivar find: yields violations; may raise NotKnown
    """

    code: str
    severity: finding.Severity
    checks: str
    why: str
    sources: tuple[str, ...]
    find: Callable[[AuditSubject], Iterator[Violation]]


def join_first(names: Sequence[str]) -> str:
    """``a, b, c and 2 more``."""
    more = f' and {len(names) - 3} more' if len(names) > 3 else ''
    return ', '.join(names[:3]) + more


def cpu_words(cpus: frozenset[int]) -> str:
    """``CPU 3`` or ``CPUs 2-7``."""
    return f'CPU{"s" if len(cpus) != 1 else ""} {cpuset.render(cpus)}'
