# SPDX-License-Identifier: Apache-2.0

"""Collect from a log what HPCTopologyFilter has written about requests.

A line counts if oslo.log has written it for a logger of the filter. The name
of the logger stands behind the level, and before that stands only what
oslo.log, syslog, journalctl, a container or grep writes at the beginning of a
line. The line may also be a JSON object: of the formatter of oslo.log, of
``journalctl --output json`` or of a container, which have the line in one of
their fields. Text that another logger quotes does not count, because a user
of the cloud may have chosen it.

In a file of plain text, a line break in such text begins a line as well. Nova
quotes text of users in the lines of filters at DEBUG level, so behind one no
line counts but those of the same request, until that request has a line
elsewhere. A user cannot write such a line: nova-api makes the id of a request
after it has received all that the user can choose.
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

#: Refusals that are kept, the last ones of the log.
MAX_REFUSALS = 1000

#: Differences that are counted each for itself; a log is not trusted to have
#: few flavors.
MAX_DIFFERENCES = 1000

#: The loggers of the filter.
_LOGGERS = ('hpcvirt.nova.no_valid_host_log', 'hpcvirt.nova.shadow')
#: What the names of loggers have in common that quote text of users.
_QUOTING = '.filters.'
#: The lines after which a quotation has ended, if its request was killed.
_LONGEST_QUOTATION = 10_000
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
    r'(?P<level>[A-Z]{4,8}) (?P<logger>[\w.]{1,255}) '
    r'(?:\[(?P<context>[^\]]{0,2000}+)\](?: |$))?(?P<message>.*)'
    r'|(?P<object>\{.*))',
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
    :ivar unreadable: lines that are cut or of another form, or that a user
        may have written
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


@dataclasses.dataclass(frozen=True)
class _Line:
    """What oslo.log has written for a logger.

    :ivar context: the ids of the request and its user; None in a JSON object,
        in which no line break begins a line
    :ivar quotes: whether it may quote text of users
    """

    logger: str
    message: str
    context: str | None
    quotes: bool


def read(lines: Iterable[bytes], request: str | None) -> Found:
    """Read a log.

    :param lines: of bounded length
    :param request: only read of the request with this id, or of this
        instance; the others are counted
    """
    found = Found()
    # The contexts of lines that may quote line breaks, and the number of the
    # last such line of each.
    quoting: dict[str, int] = {}
    known = tuple(name.encode() for name in (*_LOGGERS, _QUOTING))
    for number, text in enumerate(lines):
        if not quoting and not any(name in text for name in known):
            continue
        line = _find_line(text.decode(errors='replace').rstrip())
        _follow(quoting, line, number)
        if line is None or line.logger not in _LOGGERS:
            continue
        try:
            record = read_message(line.message)
            if record is not None and quoting:
                _require_own_line(record, line.context, quoting)
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


def _follow(quoting: dict[str, int], line: _Line | None,
            number: int) -> None:
    """Note in which contexts a quotation may go on after a line."""
    for context, last in tuple(quoting.items()):
        if last + _LONGEST_QUOTATION < number:
            del quoting[context]
    if (line is not None and line.logger not in _LOGGERS
            and line.context is not None):
        quoting.pop(line.context, None)
        if line.quotes:
            quoting[line.context] = number


def _require_own_line(record: decision_log.Record, context: str | None,
                      quoting: Iterable[str]) -> None:
    if (not record.request_id or any(other != context for other in quoting)
            or record.request_id not in (context or '')):
        raise ValueError('another request may quote the line')


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


def _find_line(line: str, level: int = 0) -> _Line | None:
    """Return what oslo.log has written, None if the line has another form."""
    match = _LINE.match(_COLOR.sub('', line))
    if match is None:
        return None
    if match['logger']:
        return _Line(
            match['logger'], match['message'], match['context'] or '',
            match['level'] == 'DEBUG' and _QUOTING in match['logger'])
    if level == _MAX_LEVELS:
        return None
    try:
        plain: Any = json.loads(match['object'])
    except (ValueError, RecursionError):
        return None
    if 'name' in plain:
        name, message = plain['name'], plain.get('message')
        return (_Line(name, message, None, False)
                if name in _LOGGERS and isinstance(message, str) else None)
    for field in _LINES:
        if isinstance(plain.get(field), str):
            return _find_line(plain[field].rstrip(), level + 1)
    return None
