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

"""A request that the filter refused on all hosts, as its log has it.

HPCTopologyFilter writes it into one line of the log of nova-scheduler, and
``hpcvirt explain --log`` reads it back. The line has at most
:data:`MOST_CHARACTERS`, whatever the request and the hosts: hosts that fail
alike are one group, of which a few have names.
"""

import collections
import dataclasses
import json
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Annotated
from typing import Any

from hpcvirt import serialization
from hpcvirt.fit import demand as demands
from hpcvirt.fit import reasons
from hpcvirt.model import shape as shape_model

SCHEMA_VERSION = 1

#: What stands before the JSON document in the line.
MARK = 'hpcvirt.refusal='

#: syslog daemons cut lines after 8 KiB.
MOST_CHARACTERS = 6000

#: Hosts of a group that are named, if the line has room for them.
MOST_NAMES = 8
_MOST_GROUPS = 8
_MOST_KINDS = 4
_MOST_LETTERS = 300
_MOST_LETTERS_OF_A_NAME = 64


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cells:
    """Guest cells that are alike.

    :ivar pages_kib: a size, ``small``, ``large`` or ``any``; None for none
    """

    count: int
    pcpus: int
    vcpus: int
    memory_mib: int
    pages_kib: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Devices:
    """PCI devices of one request."""

    name: str
    count: int
    affinity: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Asked:
    """What an instance needs.

    :ivar cells: the kinds of its guest cells, at most four
    :ivar devices: at most four of its PCI requests
    :ivar networks: with NUMA affinity
    """

    vcpus: int
    ram_mib: int
    cpu_policy: str | None = None
    thread_policy: str | None = None
    cells: tuple[Cells, ...] = ()
    devices: tuple[Devices, ...] = ()
    networks: tuple[str, ...] = ()
    numa_scope: str | None = None
    exclusive_cells: bool = False
    instances: int = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Group:
    """Hosts that fail alike.

    :ivar root: the kind of most causes
    :ivar names: some of the hosts
    :ivar reason: the message about the first of them
    """

    code: reasons.Code
    root: reasons.Code
    hosts: Annotated[int, serialization.whole(1, 10 ** 6)]
    names: tuple[str, ...]
    reason: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Refusal:
    """A request for which no host was left.

    :ivar time: in UTC, as ISO 8601 has it
    :ivar hosts: hosts that the filter has looked at
    :ivar groups: the larger ones first
    :ivar other_hosts: hosts of groups that the line had no room for
    """

    schema_version: int = SCHEMA_VERSION
    time: str
    request_id: str | None
    global_request_id: str | None = None
    instance: str | None
    flavor: str
    asked: Asked
    hosts: int
    groups: tuple[Group, ...]
    other_hosts: int = 0


def asked(vcpus: int, ram_mib: int, demand: demands.Demand | None,
          instances: int = 1) -> Asked:
    """Describe the needs of an instance in a bounded space."""
    if demand is None:
        return Asked(vcpus=vcpus, ram_mib=ram_mib, instances=instances)
    first = demand.cells[0] if demand.cells else None
    kinds = collections.Counter(
        (cell.pcpus, cell.vcpus, cell.memory_mib, cell.page_kib)
        for cell in demand.cells)
    return Asked(
        vcpus=vcpus, ram_mib=ram_mib,
        cpu_policy=first.policy.value if first else None,
        thread_policy=first.threads.value
        if first and first.threads else None,
        cells=tuple(
            Cells(count=count, pcpus=pcpus, vcpus=own, memory_mib=memory_mib,
                  pages_kib=None if page_kib is None else _pages(page_kib))
            for (pcpus, own, memory_mib, page_kib), count
            in list(kinds.items())[:_MOST_KINDS]),
        devices=tuple(
            Devices(name=clipped(request.name), count=request.count,
                    affinity=request.affinity.value)
            for request in demand.requests[:_MOST_KINDS]),
        networks=tuple(map(clipped, [
            *sorted(demand.physnets)[:_MOST_KINDS],
            *['tunnelled networks'] * demand.tunneled])),
        numa_scope=None if demand.numa_scope is shape_model.NUMAScope.HOST
        else demand.numa_scope.value,
        exclusive_cells=demand.exclusive_cells, instances=instances)


def text(refusal: Refusal) -> str:
    """Write the mark and the document in one line of bounded length."""
    for names, groups, letters in ((MOST_NAMES, _MOST_GROUPS, _MOST_LETTERS),
                                   (2, _MOST_GROUPS, _MOST_LETTERS),
                                   (1, 2, 80)):
        line = MARK + json.dumps(
            _document(_shortened(refusal, names, groups, letters)),
            separators=(',', ':'))
        if len(line) <= MOST_CHARACTERS:
            break
    return line


def clipped(words: str, most: int = _MOST_LETTERS_OF_A_NAME) -> str:
    """Cut words that are too long."""
    return words if len(words) <= most else words[:most - 3] + '...'


def read(plain: Any, where: str) -> Refusal:
    """Read a document that :func:`text` has written.

    :raises InvalidInput: if it is of another form
    """
    serialization.require_version(plain, SCHEMA_VERSION, where)
    return serialization.from_plain(Refusal, plain, where)


def _document(refusal: Refusal) -> dict[str, Any]:
    """Leave out what says nothing."""
    plain: dict[str, Any] = serialization.to_plain(refusal)
    plain['asked'] = _without_defaults(plain['asked'])
    return plain


def _without_defaults(plain: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in plain.items()
            if value is not None and value is not False and value != []
            and (key, value) != ('instances', 1)}


def _shortened(refusal: Refusal, names: int, groups: int,
               letters: int) -> Refusal:
    kept = sorted(refusal.groups, key=lambda group: -group.hosts)[:groups]
    return dataclasses.replace(
        refusal, flavor=clipped(refusal.flavor, 255 if letters > 80 else 80),
        groups=tuple(
            dataclasses.replace(
                group, reason=clipped(group.reason, letters),
                names=tuple(map(clipped, group.names[:names])))
            for group in kept),
        other_hosts=refusal.hosts - sum(group.hosts for group in kept))


def _pages(page_kib: int) -> str:
    if isinstance(page_kib, shape_model.PageClass):
        return page_kib.name.lower()
    return str(page_kib)


def total(groups: Sequence[Group]) -> Mapping[reasons.Code, int]:
    """Count the hosts of groups by the kind of most causes."""
    counts: collections.Counter[reasons.Code] = collections.Counter()
    for group in groups:
        counts[group.root] += group.hosts
    return counts
