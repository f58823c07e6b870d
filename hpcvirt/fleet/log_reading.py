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
import json
import re
from collections.abc import Iterable
from typing import Any

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.fit import decision_log

#: Refusals that are kept, the last ones of the log.
MAX_REFUSALS = 1000

#: Differences that are counted each for itself; a log is not trusted to have
#: few flavors.
MAX_DIFFERENCES = 1000

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

#: The longest text in a line: JSON writes one character as two escapes of
#: five characters behind a backslash.
_LONGEST = 10 * decision_log.MAX_LENGTH
_FIELD = re.compile(r'\b(\w{1,20})='
                    rf'(-|\d{{1,9}}|"(?:[^"\\]|\\.){{0,{_LONGEST}}}+")(?: |$)')

#: Where a JSON object without the name of a logger may have a whole line.
_LINES = ('MESSAGE', 'log', 'message')
#: A container may wrap the JSON object of oslo.log in one of its own.
_MAX_LEVELS = 2


class Found:
    """What a log has.

    :ivar refused: the number of refusals
    :ivar refusals: the last ones, by the decision: hosts that fail alike
    :ivar shadow: the sums of shadow mode, by the names in the document
    :ivar error: why a comparison failed
    :ivar differences: requests and hosts of each kind of difference, by the
        direction, the code and the flavor, and the first record
    :ivar unreadable: lines that are cut or of another form
    :ivar others: lines about other requests than the wanted one
    """

    def __init__(self) -> None:
        self.refused = self.unreadable = self.others = 0
        self.refusals: dict[object, list[decision_log.RefusedHosts]] = {}
        self.shadow: collections.Counter[str] = collections.Counter()
        self.error: str | None = None
        self.differences: dict[object, tuple[
            collections.Counter[str], decision_log.ShadowDifference]] = {}

    def add(self, item: decision_log.Record) -> None:
        """Add what a line has."""
        if isinstance(item, decision_log.RefusedHosts):
            self._add_refused(item)
        elif isinstance(item, decision_log.ShadowComparison):
            self._add_comparison(item)
        else:
            key = item.direction, item.code, item.flavor
            if (key in self.differences
                    or len(self.differences) < MAX_DIFFERENCES):
                sums, _ = self.differences.setdefault(
                    key, (collections.Counter(), item))
                sums.update(requests=1, hosts=item.hosts)

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
        self.shadow.update({name: int(number) for name, number in (
            ('requests', 1), ('differing', item.differing > 0),
            ('hosts', item.hosts), ('compared', item.compared),
            ('errors', item.error is not None),
            ('only_nova_has_a_host', item.passed_by_nova > 0 == item.passed),
            ('only_hpcvirt_has_a_host',
             item.passed > 0 == item.passed_by_nova))})
        self.error = self.error or item.error


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
    pairs = _FIELD.findall(text)
    fields = {name: None if value == '-' else json.loads(value)
              for name, value in pairs}
    if len(fields) < len(pairs) or _FIELD.sub('', text):
        raise ValueError('the line is cut')
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
