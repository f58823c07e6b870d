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

"""What a rule of an audit is, and what it looks at."""

import dataclasses
import functools
from collections.abc import Callable
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt.audit import fact
from hpcvirt.audit import facts as facts_module
from hpcvirt.audit import finding
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import cpuset
from hpcvirt.model import host as host_model


@dataclasses.dataclass(frozen=True)
class Subject:
    """A host and, if the operator gives a profile, what it needs.

    :ivar profile: None if the operator gives none
    :ivar planned: the plan of this host with the profile; Unknown if the host
        cannot be planned
    """

    facts: facts_module.Facts
    profile: profiles.Profile | None = None
    planned: plans.PlannedHost | fact.Unknown | None = None

    @property
    def host(self) -> host_model.Host:
        """The topology."""
        return fact.known(self.facts.host)

    @property
    def plan(self) -> plans.PlannedHost | None:
        """What the host needs for the flavors of the profile."""
        return fact.known(self.planned)

    @property
    def nova(self) -> facts_module.NovaFacts | None:
        """The options of nova-compute."""
        return fact.known(self.facts.nova)

    @functools.cached_property
    def dedicated(self) -> frozenset[int]:
        """The CPUs that guests have for themselves, as far as they exist.

        They are those of nova-compute; before it is configured, those of the
        plan.
        """
        cpus = self.option_cpus('cpu_dedicated_set')
        if cpus is None:
            cpus = self.plan.settings.dedicated if self.plan else frozenset()
        return cpus & self.host.cpus

    @functools.cached_property
    def shared(self) -> frozenset[int]:
        """The CPUs of emulator threads and shared guests, likewise."""
        if self.option_cpus('cpu_dedicated_set') is None and self.plan:
            return self.plan.settings.shared & self.host.cpus
        return (self.option_cpus('cpu_shared_set')
                or frozenset()) & self.host.cpus

    @functools.cached_property
    def guests(self) -> frozenset[int]:
        """The dedicated CPUs, and their SMT siblings that are not shared."""
        cores = (core for cell in self.host.cells for core in cell.siblings
                 if core & self.dedicated)
        return frozenset().union(*cores) - self.shared | self.dedicated

    @property
    def others(self) -> frozenset[int]:
        """The CPUs that nothing keeps the host off."""
        return self.host.cpus - self.guests

    def option_cpus(self, name: str) -> frozenset[int] | None:
        """Return the CPUs of an option of ``[compute]``; None if not set."""
        if isinstance(self.facts.nova, fact.Unknown) and self.planned:
            return None
        text = self.nova.get('compute', name) if self.nova else ''
        if not text:
            return None
        try:
            return cpuset.parse(text, name)
        except exception.InvalidInput as exc:
            raise fact.NotKnown(fact.Unknown(
                f'[compute]{name}', exc.what)) from exc


@dataclasses.dataclass(frozen=True, slots=True)
class Violation:
    """What a rule finds; the fields are those of a finding.

    :ivar severity: None for that of the rule
    """

    found: str
    expected: str
    change: tuple[str, ...] = ()
    severity: finding.Severity | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """A rule.

    :ivar code: names its findings; it does not change between releases
    :ivar severity: the usual severity of its findings
    :ivar checks: what is checked, for the documentation
    :ivar why: the reason, one sentence without a full stop
    :ivar sources: keys of documents of the bibliography
    :ivar find: yields what is not as it should be; may raise NotKnown
    """

    code: str
    severity: finding.Severity
    checks: str
    why: str
    sources: tuple[str, ...]
    find: Callable[[Subject], Iterator[Violation]]


def cpu_words(cpus: frozenset[int]) -> str:
    """``CPU 3`` or ``CPUs 2-7``."""
    return f'CPU{"s" if len(cpus) != 1 else ""} {cpuset.render(cpus)}'
