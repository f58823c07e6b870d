# SPDX-License-Identifier: Apache-2.0

"""The lines in which HPCTopologyFilter logs its decisions about a request.

A line is a sentence, a semicolon, and fields for programs: ``name=value``,
separated by spaces. A value is a number, a JSON string, or ``-`` if there is
none. A line never contains a line break.

There is one line for each kind of refusal. In shadow mode there is one line
for each request, and one for each kind of difference from Nova's filters.
``hpcvirt explain --scheduler-log`` reads the lines back.
"""

import collections
import dataclasses
import enum
import json
from collections.abc import Mapping

from hpcvirt import words
from hpcvirt.fit import demand as demands
from hpcvirt.fit import reasons
from hpcvirt.model import shape as shape_model

#: The most hosts that a line names.
EXAMPLES = 2

#: The most kinds of refusal or of difference that get a line.
MAX_KINDS = 8

#: The most characters of a string in a line. A line of ASCII characters then
#: has about 2,000 at most; syslog daemons cut a line after 8 KiB.
MAX_LENGTH = 300


class Disagreement(enum.StrEnum):
    """The filter that refuses a host that the other filter passes."""

    HPCVIRT_REFUSES = 'hpcvirt-refuses'
    NOVA_REFUSES = 'nova-refuses'
    #: Nova's filter fails with an error, which ends the whole request.
    NOVA_FAILS = 'nova-fails'


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoggedRequest:
    """The identity of a request.

    :ivar time: the time of the decision, in UTC and ISO 8601; the same in all
        lines about one decision
    :ivar hosts: the number of hosts that the line is about
    """

    time: str
    request_id: str | None = None
    global_request_id: str | None = None
    instance: str | None = None
    flavor: str
    hosts: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoggedHosts(LoggedRequest):
    """Hosts of a request for which the decision has the same code.

    :ivar examples: some of the hosts, separated by commas
    :ivar reason: the message about the first of them
    """

    examples: str
    reason: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class RefusedHosts(LoggedHosts):
    """Hosts refused for the same reason, for a request that no host can take.

    :ivar of: the number of hosts that the filter has examined
    :ivar root: the most frequent of the causes
    :ivar asked: what the instance needs
    """

    of: int
    code: reasons.Code
    root: reasons.Code
    asked: str

    @property
    def sentence(self) -> str:
        return (f'No host of {self.of} can take the guest: '
                f'{reasons.tally({self.root: self.hosts})}')


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShadowComparison(LoggedRequest):
    """The decisions of hpcvirt and of Nova about the hosts of a request.

    :ivar compared: the number of hosts about which both have decided
    :ivar passed: the number of these that HPCTopologyFilter would pass
    :ivar passed_by_nova: the number of these that Nova's filters pass
    :ivar differing: the number of these on which the decisions differ
    :ivar error: why the comparison ended early; None if it did not
    """

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
class ShadowDifference(LoggedHosts):
    """Hosts on which the two decisions differ in the same way.

    :ivar code: why hpcvirt refuses them; None if it passes them
    """

    direction: Disagreement
    code: reasons.Code | None

    @property
    def sentence(self) -> str:
        return f'Shadow mode, difference on {self.hosts} hosts'


Record = RefusedHosts | ShadowComparison | ShadowDifference

#: How the sentence of each record begins.
BEGINNINGS: Mapping[str, type[Record]] = {
    'No host of ': RefusedHosts,
    'Shadow mode: ': ShadowComparison,
    'Shadow mode, difference ': ShadowDifference,
}


def write(record: Record) -> str:
    """Write a record as a line."""
    return f'{record.sentence}; ' + ' '.join(
        f'{field.name}={_write(getattr(record, field.name))}'
        for field in dataclasses.fields(record))


def _write(value: object) -> str:
    if value is None:
        return '-'
    if isinstance(value, int):
        return str(value)
    text = str(value)
    return json.dumps(text if len(text) <= MAX_LENGTH
                      else text[:MAX_LENGTH - 3] + '...')


def describe_needs(vcpus: int, ram_mib: int, demand: demands.Demand | None,
                   instances: int = 1) -> str:
    """Describe the resources that an instance needs."""
    parts = [f'{words.count_noun(vcpus, "vCPU")} and {ram_mib} MiB']
    if demand is not None:
        cells = collections.Counter(map(_describe_cell, demand.cells))
        parts += [f'{words.count_noun(count, "guest cell")} of {cell}'
                  for cell, count in cells.items()]
        parts += [f'{words.count_noun(request.count, "device")} for '
                  f'{request.name} ({request.affinity.value})'
                  for request in demand.requests]
        if demand.device_set is not None:
            parts.append(f'all in one set {demand.device_set}')
    if instances > 1:
        parts.append(f'one of {instances} instances')
    return ', '.join(parts)


def _describe_cell(cell: demands.CellDemand) -> str:
    text = ' and '.join(
        [words.count_noun(number, noun) for number, noun in (
            (cell.pcpus, 'dedicated CPU'), (cell.vcpus, 'shared vCPU'))
            if number] + [f'{cell.memory_mib} MiB'])
    pages = cell.page_kib
    if pages is None:
        return text
    return f'{text} in ' + (
        f'{pages.name.lower()} pages' if isinstance(
            pages, shape_model.PageClass) else f'pages of {pages} KiB')
