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

"""The findings of an audit."""

import dataclasses
import enum


class Severity(enum.StrEnum):
    """The severity of a finding, the worst first.

    ``error``: guests do not start, are refused, or endanger each other.
    ``unknown``: the fact cannot be read, so nothing vouches for it.
    ``warning``: guests perform worse than they could.
    ``note``: worth knowing; a choice that can be right.
    """

    ERROR = 'error'
    UNKNOWN = 'unknown'
    WARNING = 'warning'
    NOTE = 'note'


#: The worst first.
ORDER = tuple(Severity)

#: With one of these, a host is not as it should be.
FAULTS = frozenset({Severity.ERROR, Severity.UNKNOWN, Severity.WARNING})


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """A fact of a host that is not as it should be, or is not known.

    :ivar code: the rule; it does not change between releases
    :ivar found: what the host has, one clause without a full stop
    :ivar expected: what it should have, likewise
    :ivar why: the reason, one sentence without a full stop
    :ivar sources: keys of documents of the bibliography
    :ivar change: commands and lines of files, in order; a line that begins
        with ``#`` is an explanation
    """

    code: str
    severity: Severity
    found: str
    expected: str
    why: str
    sources: tuple[str, ...]
    change: tuple[str, ...] = ()
