# SPDX-License-Identifier: Apache-2.0

"""Follow what Nova's own filters log at DEBUG level about a request.

When a filter leaves no host, Nova names the filter at INFO level. Why it has
refused the hosts is in the lines of the same request before that, since the
line about the filter before it.
"""

import collections
import dataclasses
import re

from hpcvirt.fleet import log_line

#: The logger of the lines that name filters.
FILTERS = 'nova.filters'

#: The function that fits instances on cells, which several filters call.
HARDWARE = 'nova.virt.hardware'

#: What begins a refusal of that function; it logs its steps as well.
_NO_FIT = re.compile(
    'Host does not |Not enough |Host cell has limitations |Failed to map '
    '|There are not enough |One or more requested physnets '
    '|The host declares NUMA affinity |Require both a host '
    r'|.{0,300}\b(?:Required|required): ')
#: What is in a refusal of a filter.
_REFUSES = re.compile(
    r"\b(?:fails|does not|doesn't|do not|not provided|no corresponding"
    r'|is disabled|not been heard from|not found)\b')

_NONE_LEFT = re.compile(r'Filter (\w{1,99}) returned 0 hosts?\b')
_OTHER_FILTER = re.compile(r'Filter \w{1,99} returned |Starting with \d')

_INSTANCE = re.compile(r'\[instance: [\w-]{1,64}\] ?')
#: What oslo.log and DevStack append at DEBUG level: the function and its file.
_PLACE = re.compile(
    r' (?:\{\{\(pid=\d{1,20}\) )?\w{1,99} /[^ ]{1,255}\.py:\d{1,9}(?:\}\})?$')

#: The most requests that are followed at once, and the most reasons of one.
_MAX_REQUESTS = 1000
_MAX_REASONS = 100


@dataclasses.dataclass
class _Request:
    """What a request has logged since the last line about a filter.

    :ivar reasons: message -> how many lines have it, and the first line
    :ivar hardware: the messages of the function that fits instances
    :ivar left_none: the filter that has left no host, and its line
    """

    reasons: dict[str, tuple[int, bytes]] = dataclasses.field(
        default_factory=dict)
    hardware: set[str] = dataclasses.field(default_factory=set)
    left_none: tuple[str, bytes, log_line.LogLine] | None = None


@dataclasses.dataclass(frozen=True)
class FilterReason:
    """Why a filter has left no host.

    :ivar filter: its name; None if no line names it
    :ivar message: the most frequent message, None without one
    :ivar others: the number of other messages
    :ivar text: the line that says so
    :ivar line: that about the filter, None without one
    :ivar line_text: the same, as the log has it
    """

    filter: str | None = None
    message: str | None = None
    others: int = 0
    text: bytes | None = None
    line: log_line.LogLine | None = None
    line_text: bytes = b''


class Follower:
    """The requests of which a filter may leave no host."""

    def __init__(self) -> None:
        self._requests: collections.OrderedDict[str, _Request] = (
            collections.OrderedDict())

    def note(self, line: log_line.LogLine, text: bytes) -> FilterReason | None:
        """Note a line.

        :param text: the line as the log has it
        :returns: what was known of a request that is no longer followed,
            although a filter has left no host
        """
        is_hardware = line.logger == HARDWARE
        if line.logger == FILTERS:
            self._note_filter(line, text)
        elif is_hardware or '.scheduler.filters.' in line.logger:
            message = _PLACE.sub('', _INSTANCE.sub('', line.message, 1))
            says_why = (_NO_FIT.match(message) if is_hardware
                        else _REFUSES.search(message))
            if says_why:
                self._note_reason(line, message.strip().rstrip('.'), text)
        if len(self._requests) > _MAX_REQUESTS:
            _, oldest = self._requests.popitem(last=False)
            return _conclude(oldest) if oldest.left_none else None
        return None

    def _note_filter(self, line: log_line.LogLine, text: bytes) -> None:
        left_none = _NONE_LEFT.match(line.message)
        if left_none:
            self._get(line).left_none = left_none[1], text, line
        elif _OTHER_FILTER.match(line.message):
            self._requests.pop(line.context or '', None)

    def _note_reason(self, line: log_line.LogLine, message: str,
                     text: bytes) -> None:
        request = self._get(line)
        number, first = request.reasons.get(message, (0, text))
        if number or len(request.reasons) < _MAX_REASONS:
            request.reasons[message] = number + 1, first
            if line.logger == HARDWARE:
                request.hardware.add(message)

    def _get(self, line: log_line.LogLine) -> _Request:
        return self._requests.setdefault(line.context or '', _Request())

    def end(self, context: str | None) -> FilterReason:
        """Tell why a filter has left no host, and forget the request."""
        request = self._requests.pop(context or '', None)
        return FilterReason() if request is None else _conclude(request)

    def rest(self) -> list[FilterReason]:
        """List the requests of which the log ends before Nova's last line."""
        return [_conclude(request) for request in self._requests.values()
                if request.left_none]


def _conclude(request: _Request) -> FilterReason:
    # A filter says only that the instance does not fit, the function why.
    messages = sorted(
        request.hardware or request.reasons,
        key=lambda message: -request.reasons[message][0])
    name, line_text, line = request.left_none or (None, b'', None)
    if not messages:
        return FilterReason(name, line=line, line_text=line_text)
    return FilterReason(
        name, messages[0], len(messages) - 1, request.reasons[messages[0]][1],
        line, line_text)
