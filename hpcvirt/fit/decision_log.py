# SPDX-License-Identifier: Apache-2.0

"""The lines in which HPCTopologyFilter logs its decisions about a request.

A line is a sentence, a semicolon, and fields for programs: ``name=value``,
separated by spaces. A value is a number, a string as JSON writes it, or ``-``
if there is none. There is no line break in it, whatever a name contains.

There is one line for each kind of refusal. In shadow mode there is one line
for each request, and one for each kind of difference from Nova's filters.
``hpcvirt explain --scheduler-log`` reads the lines back.
"""

import collections
import dataclasses
import enum
import json
import re
from collections.abc import Mapping

from hpcvirt import words
from hpcvirt.fit import demand as demands
from hpcvirt.fit import reasons
from hpcvirt.model import shape as shape_model

#: Hosts that a line names.
EXAMPLES = 2

#: Kinds of refusal or of difference that get a line.
MAX_KINDS = 8

#: A line has at most some 1,500 characters, if the names in it are ASCII.
#: syslog daemons cut a line after 8 KiB.
_MAX_NAME_LENGTH = 64
_MAX_LENGTH = 300

#: Guest cells, devices and networks that a line describes.
_MAX_NEEDS = 3

_FIELD = re.compile(r'(\w+)=(-|\d{1,9}|"(?:[^"\\]|\\.)*")(?: |$)')


class Disagreement(enum.StrEnum):
    """Whether hpcvirt or Nova refuses a host that the other one passes."""

    HPCVIRT_REFUSES = 'hpcvirt-refuses'
    NOVA_REFUSES = 'nova-refuses'
    #: Nova's filter fails with an error, which ends the whole request.
    NOVA_FAILS = 'nova-fails'


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoggedRequest:
    """The identity of a request.

    :ivar time: in UTC, as ISO 8601 has it
    """

    time: str
    request_id: str | None = None
    global_request_id: str | None = None
    instance: str | None = None
    flavor: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class RefusedHosts(LoggedRequest):
    """Hosts that refuse a request alike, where no host takes it.

    :ivar kind: the number of this line among those of the request, from 1
    :ivar kinds: the number of lines of the request
    :ivar of: all hosts that the filter has looked at
    :ivar root: the most frequent of the causes
    :ivar examples: some of the hosts, separated by commas
    :ivar reason: the message about the first of them
    """

    kind: int
    kinds: int
    hosts: int
    of: int
    code: reasons.Code
    root: reasons.Code
    examples: str
    asked: str
    reason: str

    @property
    def sentence(self) -> str:
        return (f'No host of {self.of} can take the guest: '
                f'{reasons.tally({self.root: self.hosts})}')


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShadowComparison(LoggedRequest):
    """The decisions of hpcvirt and of Nova about the hosts of a request.

    :ivar hosts: hosts that reached the filter
    :ivar compared: hosts on which both have decided
    :ivar passed: hosts that HPCTopologyFilter would pass, of those compared
    :ivar passed_by_nova: hosts that Nova's filters pass, of those compared
    :ivar differing: hosts on which the decisions differ
    :ivar error: why the comparison ended early
    """

    hosts: int
    compared: int
    passed: int
    passed_by_nova: int
    differing: int
    error: str | None = None

    @property
    def sentence(self) -> str:
        failed = '' if self.error is None else ', the comparison failed'
        return (f'Shadow mode: of {self.compared} hosts hpcvirt would pass '
                f'{self.passed} and Nova {self.passed_by_nova}, they disagree '
                f'on {self.differing}{failed}')


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShadowDifference(LoggedRequest):
    """Hosts on which the two decisions differ in the same way.

    :ivar code: why hpcvirt refuses them; None if it passes them
    :ivar examples: some of the hosts, separated by commas
    :ivar reason: about the first of them
    """

    direction: Disagreement
    code: reasons.Code | None
    hosts: int
    examples: str
    reason: str

    @property
    def sentence(self) -> str:
        return f'Shadow mode, difference on {self.hosts} hosts'


Record = RefusedHosts | ShadowComparison | ShadowDifference

#: How the sentence of each record begins, the longest first.
BEGINNINGS: Mapping[str, type[Record]] = {
    'No host of ': RefusedHosts,
    'Shadow mode, difference ': ShadowDifference,
    'Shadow mode: ': ShadowComparison,
}


def write(record: Record) -> str:
    """Write a record as a line."""
    return f'{record.sentence}; ' + ' '.join(
        f'{field.name}={_write(field.name, getattr(record, field.name))}'
        for field in dataclasses.fields(record))


def _write(name: str, value: object) -> str:
    if value is None:
        return '-'
    if isinstance(value, int):
        return str(value)
    return json.dumps(clip(str(value), _MAX_LENGTH if name in (
        'asked', 'error', 'examples', 'reason') else _MAX_NAME_LENGTH))


def read(line: str) -> tuple[type[Record], dict[str, object]] | None:
    """Read the fields of a line, None if it is another line.

    :raises ValueError: if the line is cut
    """
    for beginning, record in BEGINNINGS.items():
        if line.startswith(beginning):
            return record, _read(line.partition('; ')[2])
    return None


def _read(text: str) -> dict[str, object]:
    fields: dict[str, object] = {}
    end = 0
    while end < len(text):
        match = _FIELD.match(text, end)
        if match is None or match[1] in fields:
            raise ValueError('the line is cut')
        name, value = match.groups()
        fields[name] = None if value == '-' else json.loads(value)
        end = match.end()
    return fields


def clip(text: str, most: int = _MAX_NAME_LENGTH) -> str:
    """Cut a text that is too long."""
    return text if len(text) <= most else text[:most - 3] + '...'


def describe_needs(vcpus: int, ram_mib: int, demand: demands.Demand | None,
                   instances: int = 1) -> str:
    """Say what an instance needs, in a sentence of bounded length."""
    parts = [f'{words.count_noun(vcpus, "vCPU")} and {ram_mib} MiB']
    if demand is not None:
        parts += _describe_demand(demand)
    if instances > 1:
        parts.append(f'one of {instances} instances')
    return ', '.join(parts)


def _describe_demand(demand: demands.Demand) -> list[str]:
    cells = collections.Counter(map(_describe_cell, demand.cells))
    parts = [f'{words.count_noun(count, "guest cell")} of {cell}'
             for cell, count in list(cells.items())[:_MAX_NEEDS]]
    threads = demand.cells[0].threads if demand.cells else None
    if threads:
        parts.append(f'the thread policy {threads.value}')
    parts += [
        f'{words.count_noun(request.count, "device")} for '
        f'{clip(request.name)} ({request.affinity.value})'
        for request in demand.requests[:_MAX_NEEDS]]
    networks = [*map(clip, sorted(demand.physnets)[:_MAX_NEEDS]),
                *['tunnelled networks'] * demand.tunneled]
    if networks:
        parts.append(f'the networks {", ".join(networks)}')
    if demand.numa_scope is not shape_model.NUMAScope.HOST:
        parts.append(f'cells of one {demand.numa_scope.value}')
    if demand.exclusive_cells:
        parts.append('cells of its own')
    return parts


def _describe_cell(cell: demands.CellDemand) -> str:
    cpus = ' and '.join(
        words.count_noun(number, noun) for number, noun in (
            (cell.pcpus, 'dedicated CPU'), (cell.vcpus, 'shared vCPU'))
        if number)
    pages = cell.page_kib
    if pages is None:
        kind = ''
    elif isinstance(pages, shape_model.PageClass):
        kind = f' in {pages.name.lower()} pages'
    else:
        kind = f' in pages of {pages} KiB'
    return f'{cpus} and {cell.memory_mib} MiB{kind}'
