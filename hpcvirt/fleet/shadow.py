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

"""What shadow mode found out about a request, as the log has it.

In shadow mode HPCTopologyFilter passes every host, and writes one line for
each request: on which hosts it would have decided otherwise than Nova's
filters. ``hpcvirt explain --log`` sums the lines up.
"""

import dataclasses
import enum
import json
from typing import Any

from hpcvirt import serialization
from hpcvirt.fit import reasons
from hpcvirt.fleet import refusal

SCHEMA_VERSION = 1

#: What stands before the JSON document in the line.
MARK = 'hpcvirt.shadow='


class Direction(enum.StrEnum):
    """Who refuses a host that the other one passes."""

    HPCVIRT_REFUSES = 'hpcvirt-refuses'
    NOVA_REFUSES = 'nova-refuses'
    #: Nova's filter fails with an error, which ends the whole request.
    NOVA_FAILS = 'nova-fails'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Difference:
    """Hosts on which the decisions differ in the same way.

    :ivar code: why hpcvirt refuses them; None if it passes them
    :ivar names: some of the hosts
    :ivar reason: about the first of them
    """

    direction: Direction
    code: reasons.Code | None
    hosts: int
    names: tuple[str, ...]
    reason: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparison:
    """The decisions about the hosts of a request.

    :ivar hosts: hosts that reached the filter
    :ivar compared: hosts on which both have decided
    :ivar passed: hosts that HPCTopologyFilter would pass, of those compared
    :ivar passed_by_nova: hosts that Nova's filters pass, of those compared
    :ivar error: why the comparison ended early
    """

    schema_version: int = SCHEMA_VERSION
    time: str
    request_id: str | None
    global_request_id: str | None = None
    instance: str | None
    flavor: str
    hosts: int
    compared: int
    passed: int
    passed_by_nova: int
    differences: tuple[Difference, ...] = ()
    error: str | None = None

    @property
    def differing(self) -> int:
        """Hosts on which the decisions differ."""
        return sum(item.hosts for item in self.differences)


def text(comparison: Comparison) -> str:
    """Write the mark and the document in one line of bounded length."""
    for names, kinds, letters in ((refusal.MOST_NAMES, 8, 300), (2, 8, 300),
                                  (1, 2, 80)):
        line = MARK + json.dumps(serialization.to_plain(
            _shortened(comparison, names, kinds, letters)),
            separators=(',', ':'))
        if len(line) <= refusal.MOST_CHARACTERS:
            break
    return line


def read(plain: Any, where: str) -> Comparison:
    """Read a document that :func:`text` has written.

    :raises InvalidInput: if it is of another form
    """
    serialization.require_version(plain, SCHEMA_VERSION, where)
    return serialization.from_plain(Comparison, plain, where)


def _shortened(comparison: Comparison, names: int, kinds: int,
               letters: int) -> Comparison:
    return dataclasses.replace(
        comparison, flavor=refusal.clipped(
            comparison.flavor, 255 if letters > 80 else 80),
        error=comparison.error and refusal.clipped(comparison.error, letters),
        differences=tuple(
            dataclasses.replace(
                item, reason=refusal.clipped(item.reason, letters),
                names=tuple(map(refusal.clipped, item.names[:names])))
            for item in sorted(comparison.differences,
                               key=lambda item: -item.hosts)[:kinds]))
