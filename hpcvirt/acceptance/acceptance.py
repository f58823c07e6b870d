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

"""The acceptance of a host: what was measured, and what was decided."""

import dataclasses
from collections.abc import Mapping

from hpcvirt.audit import finding
from hpcvirt.bench.model import judgement

SCHEMA_VERSION = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """What is measured at once: guests of one flavor that fill the host.

    :ivar result: its id in the store, empty if it is not finished
    """

    flavor: str
    instances: int
    result: str = ''


@dataclasses.dataclass(frozen=True)
class Acceptance:
    """The acceptance of one host.

    :ivar request: digest of what was asked for; an acceptance that was
        interrupted is continued by the same request
    :ivar native: the native target, empty if the host is compared with its
        class
    :ivar command: repeats it
    :ivar repaired: what was changed on the host since it was measured before;
        the attempts before that do not count any more
    :ivar machine: name to value: what its firmware says of the machine
    :ivar audit: the findings of its audit, None if there was none
    :ivar word: PASS, FAIL or INCONCLUSIVE; None before the end
    :ivar reason: why it is not PASS
    :ivar overhead: how much longer than native programs may take in guests,
        at most (0.05: 5 %); None if it was not compared with native
    :ivar traits: those that the host got
    """

    host: str
    request: str
    began_at: str
    command: str
    native: str
    benchmarks: tuple[str, ...]
    parts: tuple[Part, ...]
    repaired: str = ''
    machine: Mapping[str, str] = dataclasses.field(default_factory=dict)
    audit: tuple[finding.Finding, ...] | None = None
    word: judgement.Word | None = None
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
