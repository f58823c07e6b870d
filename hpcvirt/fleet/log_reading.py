# SPDX-License-Identifier: Apache-2.0

"""Collect from a log what HPCTopologyFilter has written about requests.

A line counts if oslo.log has written it for the logger of the filter. The
name of the logger stands behind the level, and before that may stand what
oslo.log, syslog or a container writes at the beginning of a line. The line may
also be a JSON object: of the formatter of oslo.log, of ``journalctl --output
json`` or of a container, which have the line in one of their fields. Text
that another logger quotes does not count, because a user of the cloud may have
chosen it.
"""

import collections
import dataclasses
import json
import re
from collections.abc import Iterable
from typing import Any

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.fit import decision_log
from hpcvirt.fit import reasons

#: Refusals that are kept, the last ones of the log.
MAX_REFUSALS = 1000

#: Different flavors and reasons that are counted each for itself; a log is
#: not trusted to have few.
_MAX_KINDS = 1000
_MAX_EXAMPLES = 3

#: The loggers of the filter.
_LOGGERS = ('hpcvirt.nova.no_valid_host_log', 'hpcvirt.nova.shadow')
_COLOR = re.compile(r'\x1b\[[\d;]*m')
_TEXT = re.compile(
    r'[\w .,:+/@()\[\]-]{0,200}?\b(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) '
    r'(?P<logger>[\w.]+) (?:\[[^\]]*\] )?(?P<message>.*)', re.DOTALL)

#: Where a JSON object without the name of a logger may have a whole line.
_LINES = ('MESSAGE', 'log', 'message')
#: A container may wrap the JSON object of oslo.log in one of its own.
_MAX_LEVELS = 2


@dataclasses.dataclass
class DifferenceCounts:
    """Differences in shadow mode of one kind.

    :ivar examples: requests
    """

    requests: int = 0
    hosts: int = 0
    examples: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class FlavorCounts:
    """What shadow mode says about one flavor."""

    requests: int = 0
    differing: int = 0
    hosts: int = 0


@dataclasses.dataclass
class Shadow:
    """The comparisons of shadow mode.

    :ivar only_nova: requests for which only Nova's filters leave a host
    :ivar only_hpcvirt: requests for which only hpcvirt's filter does
    :ivar by_reason: direction and code -> the differences
    :ivar errors: requests whose comparison failed
    """

    requests: int = 0
    differing: int = 0
    hosts: int = 0
    compared: int = 0
    only_nova: int = 0
    only_hpcvirt: int = 0
    errors: int = 0
    error: str | None = None
    by_reason: dict[tuple[decision_log.Disagreement, reasons.Code | None],
                    DifferenceCounts] = (
        dataclasses.field(default_factory=dict))
    by_flavor: dict[str,
                    FlavorCounts] = dataclasses.field(default_factory=dict)

    def add(self, item: decision_log.ShadowComparison) -> None:
        """Add the comparison of a request."""
        self.requests += 1
        self.hosts += item.hosts
        self.compared += item.compared
        self.differing += bool(item.differing)
        self.only_nova += bool(item.passed_by_nova and not item.passed)
        self.only_hpcvirt += bool(item.passed and not item.passed_by_nova)
        if item.error is not None:
            self.errors += 1
            self.error = self.error or item.error
        if item.flavor in self.by_flavor or len(self.by_flavor) < _MAX_KINDS:
            flavor = self.by_flavor.setdefault(item.flavor, FlavorCounts())
            flavor.requests += 1
            flavor.differing += bool(item.differing)
            flavor.hosts += item.differing

    def add_difference(self, item: decision_log.ShadowDifference) -> None:
        """Add a difference in the comparison of a request."""
        kind = self.by_reason.setdefault((item.direction, item.code),
                                         DifferenceCounts())
        kind.requests += 1
        kind.hosts += item.hosts
        if len(kind.examples) < _MAX_EXAMPLES:
            kind.examples.append(item.request_id or item.instance or '-')


@dataclasses.dataclass
class Refusal:
    """A request for which no host was left.

    :ivar groups: hosts that fail alike, the larger groups first
    """

    groups: list[decision_log.RefusedHosts]

    @property
    def first(self) -> decision_log.RefusedHosts:
        """The line that has what is the same in all lines."""
        return self.groups[0]

    @property
    def other_hosts(self) -> int:
        """Hosts of groups that have no line."""
        return self.first.of - sum(group.hosts for group in self.groups)

    def count_roots(self) -> dict[reasons.Code, int]:
        """Count the hosts by the most frequent cause."""
        counts: collections.Counter[reasons.Code] = collections.Counter()
        for group in self.groups:
            counts[group.root] += group.hosts
        return counts


@dataclasses.dataclass
class Found:
    """What a log has.

    :ivar refused: the number of refusals
    :ivar refusals: the last ones
    :ivar unreadable: lines that are cut or of another form
    :ivar others: lines about other requests than the wanted one
    """

    refused: int = 0
    refusals: collections.deque[Refusal] = dataclasses.field(
        default_factory=lambda: collections.deque(maxlen=MAX_REFUSALS))
    unreadable: int = 0
    shadow: Shadow = dataclasses.field(default_factory=Shadow)
    others: int = 0

    def add(self, record: decision_log.Record) -> None:
        """Add what a line has."""
        if isinstance(record, decision_log.ShadowComparison):
            self.shadow.add(record)
        elif isinstance(record, decision_log.ShadowDifference):
            self.shadow.add_difference(record)
        elif record.kind == 1:
            self.refused += 1
            self.refusals.append(Refusal([record]))
        else:
            # Lines of other requests may stand between those of this one.
            for refusal in reversed(self.refusals):
                if (refusal.first.time, refusal.first.instance) == (
                        record.time, record.instance):
                    refusal.groups.append(record)
                    break
            else:
                self.unreadable += 1


def read(lines: Iterable[bytes], request: str | None) -> Found:
    """Read a log.

    :param request: only read of the request with this id, or of this
        instance; the others are counted
    """
    found = Found()
    for line in lines:
        if not any(logger.encode() in line for logger in _LOGGERS):
            continue
        message = _find_message(line.decode(errors='replace').strip())
        try:
            record = None if message is None else _read(message)
        except (ValueError, exception.InvalidInput):
            found.unreadable += 1
            continue
        if record is None:
            continue
        if request is not None and request not in (
                record.request_id, record.global_request_id,
                record.instance):
            found.others += not isinstance(
                record, decision_log.ShadowDifference) and getattr(
                    record, 'kind', 1) == 1
            continue
        found.add(record)
    return found


def _read(message: str) -> decision_log.Record | None:
    fields = decision_log.read(message)
    if fields is None:
        return None
    return serialization.load(fields[0], fields[1], 'log')


def _find_message(line: str, level: int = 0) -> str | None:
    """Return the message of a line, None if another logger has written it."""
    line = _COLOR.sub('', line)
    match = _TEXT.match(line)
    if match:
        return match['message'] if match['logger'] in _LOGGERS else None
    brace = line.find('{')
    if brace < 0 or level >= _MAX_LEVELS or not re.fullmatch(
            r'[\w .,:+/@()\[\]-]{0,200}', line[:brace]):
        return None
    try:
        plain: Any = json.loads(line[brace:])
    except (ValueError, RecursionError):
        return None
    if 'name' in plain:
        message = plain.get('message') if plain['name'] in _LOGGERS else None
        return message if isinstance(message, str) else None
    for field in _LINES:
        if isinstance(plain.get(field), str):
            return _find_message(plain[field].strip(), level + 1)
    return None
