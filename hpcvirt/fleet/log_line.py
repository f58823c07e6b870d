# SPDX-License-Identifier: Apache-2.0

"""Find the line that oslo.log has written in a line of a log.

The line of oslo.log may have a prefix of rsyslog, journalctl, a container,
grep or a mail that quotes it, or be in a field of a JSON object, of
``journalctl --output json`` or of a container. DevStack and services that log
to journald leave out the time, which is then that of the prefix or of the
object. A monotonic time tells nothing without the time of the boot. The line
may also be a JSON object of the formatter of oslo.log.

What Loki or OpenSearch exports is not read: it begins with the newest line, so
that it cannot be told which lines a user may have forged.
"""

import dataclasses
import datetime
import json
import re
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

#: A color, also as rsyslog and "cat -v" write its first character.
_COLOR = re.compile(r'(?:\x1b|#033|\^\[)\[[\d;]{0,9}m')
#: A color without its first character, as pages show it.
_BARE_COLOR = re.compile(r'\[[\d;]{1,9}m')

#: Times of syslog, of ISO 8601 and "journalctl --output short-full", and of
#: its forms short-monotonic, short-delta and short-unix.
_TIME = (r'(?:[A-Z][a-z]{2} [ \d]\d [\d:.]{8,15}'
         r'|(?:[A-Z][a-z]{2} )?[\d-]{10}[T ][\d:.,]{8,18}'
         r'(?: ?[A-Z]{1,5}| ?[+-]\d\d(?::?\d\d)?)?'
         r'|\[[ \d.<>]{1,50}\]|\d{1,12}\.\d{1,9})')

#: The line of oslo.log, or a JSON object, and the prefixes that may precede
#: it, none of which can be part of a sentence.
_LINE = re.compile(
    r'\ufeff?(?:> ?){0,9}'  # editors of Windows, and mails
    r'(?:(?!\d{4}-\d\d-\d\dT)[\w./-]{1,255}:(?:\d{1,9}:)?)?'  # grep
    r'(?:\[[\w./-]{1,255}\] |[\w.-]{1,255} {0,99}\| )?'  # kubectl, compose
    r'(?:<\d{1,3}>(?:1 )?)?'  # rsyslog that forwards
    rf'(?:(?P<prefix>{_TIME}) '
    # host program[7]: with or without its host
    r'(?:(?:[\w.-]{1,255} )?[\w.@/-]{1,255}(?:\[\d{1,9}\])?: {1,2}'
    # host program 7 - -, as RFC 5424 has it
    r'|[\w.-]{1,255} [\w.@/-]{1,48} (?:\d{1,9}|-) [\w-]{1,32} '
    r'(?:-|(?:\[[^\]]{0,999}\]){1,9}) {1,2}\ufeff?'
    r'|std(?:out|err) [FP] )?)?'  # a container
    r'(?:(?:(?P<time>[\d-]{10}[ T][\d:.,]{8,15}) )?(?:\d{1,20} )?'
    r'(?P<level>[A-Z]{4,8}) (?P<logger>[\w.]{1,255}) '
    r'(?:\[(?P<context>[^\]]{0,2000}+)\](?: |$))?(?P<message>.*)'
    r'|(?P<object>\{.*))',
    re.ASCII | re.DOTALL)

#: The keys under which a JSON object without a logger may have a whole line.
_LINES = ('MESSAGE', 'log', 'message')

#: The keys under which it may have a time: microseconds, or ISO 8601.
_MICROSECONDS = ('__REALTIME_TIMESTAMP', '_SOURCE_REALTIME_TIMESTAMP')
_ISO_TIMES = ('time', '@timestamp', 'timestamp')

#: What precedes the objects of the forms json-sse and json-seq of journalctl.
_BEFORE_OBJECT = re.compile(r'(?:data: |\x1e)(?=\{)')

#: The most bytes of an object that the form json-pretty spreads over lines; it
#: may give each byte of a text with colors a line of its own.
_MAX_SPREAD = 256 * 1024

_MONTHS = ('Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep',
           'Oct', 'Nov', 'Dec')
_SYSLOG_TIME = re.compile(
    r'(?P<month>[A-Z][a-z]{2}) (?P<day>[ \d]\d) (?P<clock>[\d:.]{8,15})',
    re.ASCII)
_FULL_TIME = re.compile(
    r'(?:[A-Z][a-z]{2} )?(?P<time>[\d-]{10}[T ][\d:.,]{8,18}) ?'
    r'(?P<zone>[A-Z]{1,5}|[+-]\d\d(?::?\d\d)?)?', re.ASCII)

#: Names of zones that mean the same everywhere.
_UTC = ('UTC', 'GMT', 'Z')


@dataclasses.dataclass(frozen=True)
class LogLine:
    """A line of oslo.log.

    :ivar context: the ids of the request and its user
    :ivar level: empty if an object has none
    :ivar time: as oslo.log or a prefix has it; empty if none has
    :ivar is_escaped: whether line breaks in the message are escaped, as in a
        JSON object of oslo.log
    """

    logger: str
    message: str
    context: str = ''
    level: str = ''
    time: str = ''
    is_escaped: bool = False


def find(line: str) -> LogLine | None:
    """Find the line of oslo.log; None if the line has another form."""
    text = _BEFORE_OBJECT.sub('', _COLOR.sub('', line), count=1)
    # A name that a user has chosen may have such text, a level has not.
    match = _LINE.match(text) or _LINE.match(_BARE_COLOR.sub('', text))
    if match is None:
        return None
    if match['logger']:
        return LogLine(
            match['logger'], match['message'], match['context'] or '',
            match['level'], match['time'] or match['prefix'] or '')
    try:
        plain: Any = json.loads(match['object'])
    except (ValueError, RecursionError):
        return None
    if 'name' in plain:
        return _read_oslo(plain)
    for field in _LINES:
        inner = _text(plain.get(field))
        if inner is not None:
            # A container may wrap the JSON object of oslo.log.
            found = find(inner.rstrip())
            if found is None or found.time:
                return found
            return dataclasses.replace(
                found, time=_object_time(plain) or match['prefix'] or '')
    return None


def _read_oslo(plain: Mapping[str, Any]) -> LogLine | None:
    """Read an object of the JSON formatter of oslo.log."""
    name, message = plain['name'], plain.get('message')
    if not isinstance(name, str) or not isinstance(message, str):
        return None
    context, created = plain.get('context'), plain.get('created')
    if not isinstance(context, dict):
        context = {}
    ids = [str(context[key]) for key in ('global_request_id', 'request_id')
           if context.get(key)]
    return LogLine(name, message, ' '.join(ids),
                   str(plain.get('levelname') or ''),
                   f'{created:.6f}' if isinstance(created, float) else '',
                   is_escaped=True)


def _text(value: object) -> str | None:
    """Read a text, which journald writes as bytes if it has colors."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return None
    try:
        return bytes(value).decode(errors='replace')
    except (TypeError, ValueError):
        return None


def _object_time(plain: Mapping[str, Any]) -> str:
    """Return the time of a JSON object, empty if it has none."""
    for key in _MICROSECONDS:
        digits = plain.get(key)
        if isinstance(digits, str) and re.fullmatch('[0-9]{7,18}', digits):
            return f'{digits[:-6]}.{digits[-6:]}'
    for key in _ISO_TIMES:
        text = plain.get(key)
        if isinstance(text, str) and _FULL_TIME.fullmatch(text):
            return text
    return ''


def join_objects(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Join JSON objects that ``journalctl --output json-pretty`` spreads.

    Lines that do not make an object stay as they are.
    """
    spread: list[bytes] = []
    size = 0
    for line in lines:
        text = line.strip()
        if not spread:
            if text != b'{':
                yield line
                continue
            size = 0
        spread.append(line)
        size += len(line) + 1
        if text == b'}' and line.startswith(b'}'):
            yield from _join(spread)
            spread = []
        elif size > _MAX_SPREAD or (
                len(spread) > 1 and not line.startswith((b'\t', b' '))):
            yield from spread
            spread = []
    yield from spread


def _join(spread: list[bytes]) -> list[bytes]:
    whole = b' '.join(line.strip() for line in spread)
    try:
        json.loads(whole)
    except (ValueError, RecursionError):
        return spread
    return [whole]


def normalize_time(text: str) -> str:
    """Write a time in UTC; one without a zone is in that of this machine.

    :raises ValueError: if it is no time
    """
    return _in_utc(datetime.datetime.fromisoformat(text.replace(',', '.')))


def read_time(text: str, now: datetime.datetime) -> str:
    """Write the time of a line in UTC, as :func:`normalize_time` does.

    :param now: syslog leaves out the year: its times are of the year before
        this time
    :returns: empty if the line has none
    :raises ValueError: if it is no time
    """
    if not text or text.startswith('['):
        return ''
    if re.fullmatch(r'[0-9]+\.[0-9]+', text):
        try:
            return _in_utc(datetime.datetime.fromtimestamp(
                float(text), datetime.UTC))
        except (OverflowError, OSError) as exc:
            raise ValueError(str(exc)) from exc
    match = _SYSLOG_TIME.fullmatch(text)
    if match is not None:
        return _in_utc(_last(match, now))
    match = _FULL_TIME.fullmatch(text)
    if match is None:
        return normalize_time(text)
    zone = match['zone'] or ''
    if zone in _UTC:
        zone = '+00:00'
    elif zone.isalpha():
        # Names such as CST have several meanings.
        zone = ''
    return normalize_time(match['time'] + zone)


def _last(match: re.Match[str], now: datetime.datetime) -> datetime.datetime:
    """Return the last time that is not after now, or only by a day."""
    latest = now + datetime.timedelta(days=1)
    month = _MONTHS.index(match['month']) + 1
    # Only each fourth or eighth year has a 29th of February.
    for year in range(latest.year, latest.year - 9, -1):
        try:
            time = datetime.datetime.fromisoformat(
                f'{year}-{month:02}-{int(match["day"]):02}T{match["clock"]}'
            ).astimezone(datetime.UTC)
        except ValueError:
            continue
        if time <= latest:
            return time
    raise ValueError(f'{match[0]} is no time')


def _in_utc(time: datetime.datetime) -> str:
    try:
        return time.astimezone(datetime.UTC).isoformat(
            timespec='milliseconds')
    except OverflowError as exc:
        raise ValueError(str(exc)) from exc
