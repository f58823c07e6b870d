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

"""The findings of lint."""

import dataclasses
import enum
from collections.abc import Iterable

from hpcvirt.flavors import subjects


class Severity(enum.StrEnum):
    """The severity of a finding.

    ``error``: instances are refused, are placed incorrectly, or fit nowhere.
    ``warning``: instances perform worse than they could, or waste resources.
    ``note``: for information.
    """

    ERROR = 'error'
    WARNING = 'warning'
    NOTE = 'note'


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """A problem of a flavor.

    :ivar code: the kind of problem; it does not change between releases
    :ivar key: the extra spec at fault, or ``ram`` or ``vcpus``
    :ivar problem: one sentence without a full stop
    :ivar advice: how to correct it
    :ivar hosts: the hosts that have the problem; empty if it is one of the
        flavor alone
    """

    code: str
    severity: Severity
    flavor: str
    key: str
    problem: str
    advice: str
    hosts: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        if not self.hosts:
            return self.problem
        return f'{subjects.in_words(self.hosts, "hosts")}: {self.problem}'


def gather(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Merge equal findings about different hosts."""
    hosts: dict[Finding, list[str]] = {}
    for item in findings:
        hosts.setdefault(dataclasses.replace(item, hosts=()),
                         []).extend(item.hosts)
    return tuple(dataclasses.replace(item, hosts=tuple(names))
                 for item, names in hosts.items())
