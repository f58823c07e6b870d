# SPDX-License-Identifier: Apache-2.0

"""Collect from a log what HPCTopologyFilter has written about requests.

A line counts if oslo.log has written it for a logger of the filter. The name
of the logger stands behind the level, and before that stands only what
oslo.log, syslog, journalctl, a container or grep writes at the beginning of a
line. The line may also be a JSON object: of the formatter of oslo.log, of
``journalctl --output json`` or of a container, which have the line in one of
their fields. Text that another logger quotes does not count, because a user
of the cloud may have chosen it. Only a line break in such text, in a file of
plain text, cannot be told from the end of a line.
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

#: Flavors that are counted each for itself; a log is not trusted to have few.
_MAX_FLAVORS = 1000
_MAX_EXAMPLES = 3

#: The loggers of the filter.
_LOGGERS = ('hpcvirt.nova.no_valid_host_log', 'hpcvirt.nova.shadow')
_COLOR = re.compile(r'\x1b\[[\d;]{0,9}m')

#: Times as syslog, ISO 8601 and journalctl write them.
_TIME = (r'(?:[A-Z][a-z]{2} [ \d]\d [\d:.]{8,15}'
         r'|(?:[A-Z][a-z]{2} )?[\d-]{10}[T ][\d:.,]{8,18}'
         r'(?: ?[A-Z]{1,5}|[+-]\d\d:?\d\d)?'
         r'|\[[ \d.]{1,20}\]|\d{1,12}\.\d{1,9})')

#: The line of oslo.log, or a JSON object, and what may stand before it:
#: nothing that can be part of a sentence.
_LINE = re.compile(
    r'(?:[\w./-]{1,255}:(?:\d{1,9}:)?)?'  # grep
    r'(?:\[[\w./-]{1,255}\] |[\w.-]{1,255} {0,99}\| )?'  # kubectl, compose
    rf'(?:{_TIME} '
    r'(?:[\w.-]{1,255} [\w.@/-]{1,255}(?:\[\d{1,9}\])?: '  # host program[7]:
    r'|std(?:out|err) [FP] )?)?'  # a container
    r'(?:(?:[\d-]{10} [\d:.,]{8,15} )?(?:\d{1,20} )?'
    r'[A-Z]{4,8} (?P<logger>[\w.]{1,255}) '
    r'(?:\[[^\]]*+\] )?(?P<message>.*)|(?P<object>\{.*))',
    re.ASCII | re.DOTALL)

_FIELD = re.compile(r'(\w+)=(-|\d{1,9}|"(?:[^"\\]|\\.)*+")(?: |$)')

#: Where a JSON object without the name of a logger may have a whole line.
_LINES = ('MESSAGE', 'log', 'message')
#: A container may wrap the JSON object of oslo.log in one of its own.
_MAX_LEVELS = 2

#: What hpcvirt and Nova disagree on: the direction, and why hpcvirt refuses.
DifferenceKey = tuple[decision_log.Disagreement, reasons.Code | None]


@dataclasses.dataclass
class Found:
    """What a log has.

    :ivar refused: the number of refusals
    :ivar refusals: the last ones, by the decision: hosts that fail alike
    :ivar shadow: the sums of shadow mode, by the names in the document
    :ivar error: why a comparison failed
    :ivar differences: requests and hosts of each kind of difference
    :ivar examples: some requests of each kind of difference
    :ivar flavors: requests, differing ones and hosts of each flavor
    :ivar unreadable: lines that are cut or of another form
    :ivar others: lines about other requests than the wanted one
    """

    refused: int = 0
    refusals: dict[object, list[decision_log.RefusedHosts]] = (
        dataclasses.field(default_factory=dict))
    shadow: collections.Counter[str] = (
        dataclasses.field(default_factory=collections.Counter))
    error: str | None = None
    differences: dict[DifferenceKey, collections.Counter[str]] = (
        dataclasses.field(default_factory=dict))
    examples: dict[DifferenceKey, list[str]] = (
        dataclasses.field(default_factory=dict))
    flavors: dict[str, collections.Counter[str]] = (
        dataclasses.field(default_factory=dict))
    unreadable: int = 0
    others: int = 0

    def add(self, item: decision_log.Record) -> None:
        """Add what a line has."""
        if isinstance(item, decision_log.RefusedHosts):
            self._add_refused(item)
        elif isinstance(item, decision_log.ShadowComparison):
            self._add_comparison(item)
        else:
            key = item.direction, item.code
            self.differences.setdefault(key, collections.Counter()).update(
                requests=1, hosts=item.hosts)
            examples = self.examples.setdefault(key, [])
            if len(examples) < _MAX_EXAMPLES:
                examples.append(item.request_id or item.instance or '-')

    def _add_refused(self, item: decision_log.RefusedHosts) -> None:
        # Lines of other requests may stand between those of this one.
        key = item.time, item.request_id, item.instance
        if key not in self.refusals:
            self.refused += 1
            if len(self.refusals) == MAX_REFUSALS:
                del self.refusals[next(iter(self.refusals))]
        groups = self.refusals.setdefault(key, [])
        if len(groups) < decision_log.MAX_KINDS:
            groups.append(item)
        else:
            self.unreadable += 1

    def _add_comparison(self, item: decision_log.ShadowComparison) -> None:
        differing = int(item.differing > 0)
        self.shadow.update({
            'requests': 1, 'differing': differing, 'hosts': item.hosts,
            'compared': item.compared, 'errors': int(item.error is not None),
            'only_nova_has_a_host': int(item.passed_by_nova > 0
                                        == item.passed),
            'only_hpcvirt_has_a_host': int(item.passed > 0
                                           == item.passed_by_nova)})
        self.error = self.error or item.error
        if item.flavor in self.flavors or len(self.flavors) < _MAX_FLAVORS:
            self.flavors.setdefault(
                item.flavor, collections.Counter()).update(
                    requests=1, differing=differing, hosts=item.differing)


def read(lines: Iterable[bytes], request: str | None) -> Found:
    """Read a log.

    :param lines: of bounded length
    :param request: only read of the request with this id, or of this
        instance; the others are counted
    """
    found = Found()
    for line in lines:
        if not any(logger.encode() in line for logger in _LOGGERS):
            continue
        message = _find_message(line.decode(errors='replace').rstrip())
        try:
            record = None if message is None else read_message(message)
        except (ValueError, exception.InvalidInput):
            found.unreadable += 1
            continue
        if record is None:
            continue
        if request is None or request in (
                record.request_id, record.global_request_id, record.instance):
            found.add(record)
        else:
            found.others += 1
    return found


def read_message(message: str) -> decision_log.Record | None:
    """Read what the filter has logged, None if it is another message.

    :raises ValueError: if it is cut
    :raises InvalidInput: if a field is missing, or is of another form
    """
    for beginning, kind in decision_log.BEGINNINGS.items():
        if message.startswith(beginning):
            fields = _read_fields(message.partition('; ')[2])
            return serialization.load(kind, fields, 'log')
    return None


def _read_fields(text: str) -> dict[str, object]:
    fields: dict[str, object] = {}
    end = 0
    while end < len(text):
        match = _FIELD.match(text, end)
        if match is None or match[1] in fields:
            raise ValueError('the line is cut')
        value = None if match[2] == '-' else json.loads(match[2])
        if isinstance(value, str) and len(value) > decision_log.MAX_LENGTH:
            raise ValueError('the filter has not written it')
        fields[match[1]] = value
        end = match.end()
    return fields


def _find_message(line: str, level: int = 0) -> str | None:
    """Return the message of a line, None if another logger has written it."""
    match = _LINE.match(_COLOR.sub('', line))
    if match is None:
        return None
    if match['logger']:
        return match['message'] if match['logger'] in _LOGGERS else None
    if level == _MAX_LEVELS:
        return None
    try:
        plain: Any = json.loads(match['object'])
    except (ValueError, RecursionError):
        return None
    if 'name' in plain:
        message = plain.get('message') if plain['name'] in _LOGGERS else None
        return message if isinstance(message, str) else None
    for field in _LINES:
        if isinstance(plain.get(field), str):
            return _find_message(plain[field].rstrip(), level + 1)
    return None
