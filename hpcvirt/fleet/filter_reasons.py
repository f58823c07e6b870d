# SPDX-License-Identifier: Apache-2.0

"""Follow what nova-scheduler logs about a request before it gives up.

When a filter leaves no host, Nova names the filter at INFO level. Why it has
refused the hosts is in the lines of the same request before that, since the
line about the filter before it; filters write them at DEBUG level. Before the
line about Placement is what Placement has answered, if that is an error.
"""

import collections
import dataclasses
import re

from hpcvirt.fleet import log_line

#: The logger of the lines that name filters.
FILTERS = 'nova.filters'

#: The function that fits instances on cells, which several filters call.
HARDWARE = 'nova.virt.hardware'

#: The logger of what selects hosts for the filters, and the part of its lines
#: that says that it has found none; then the filters begin without hosts, or
#: do not run.
_HOSTS = 'nova.scheduler.host_manager'
NO_MATCH = 'matched due to not matching'
_NO_MATCH = re.compile(
    rf"No (?:hosts|nodes) {NO_MATCH} (?:'(force_hosts|force_nodes)')?")

#: What stands for the name of a filter if Placement answers with an error.
STEP_PLACEMENT = 'placement'

#: The logger of the client of Placement, and its line about an error. The
#: answer of Placement follows a line break, which ends the line in a file.
PLACEMENT = 'nova.scheduler.client.report'
_FAILED = 'Failed to retrieve allocation candidates from '
ANSWER = b'Got '
_STATUS = re.compile(r'[1-5]\d\d(?=: )')
_DETAIL = re.compile(r'"detail": "((?:[^"\\]|\\.){1,2000}+)"')

#: What begins a refusal of that function; it logs its steps as well.
_NO_FIT = re.compile(
    'Host does not |Not enough |Host cell has limitations |Failed to map '
    '|There are not enough |One or more requested physnets '
    '|The host declares NUMA affinity |Require both a host '
    r'|.{0,300}\b(?:Required|required): ')
#: What is in a refusal of a filter. Those of affinity say what they check, and
#: that of availability zones what a host has.
_REFUSES = re.compile(
    r"\b(?:fails|does not|doesn't|do not|not provided|no corresponding"
    r'|is disabled|not been heard from|not found|affinity: check if|has AZs)'
    r'\b')

#: The line about the last filter, and the summary at DEBUG level, with which
#: alone some logs are quoted.
_NONE_LEFT = re.compile(
    r'Filter (\w{1,99}) returned 0 hosts?\b'
    r"|Filtering removed all hosts for .*\('(\w{1,99})', None\)\]")
_EMPTY = 'Starting with 0 '
_OTHER_FILTER = re.compile(r'Filter \w{1,99} returned |Starting with \d')

_INSTANCE = re.compile(r'\[instance: [\w-]{1,64}\] ?')
#: What oslo.log and DevStack append at DEBUG level: the function and its file.
_PLACE = re.compile(
    r' (?:(?:from |\{\{)\(pid=\d{1,20}\) )?\w{1,99} '
    r'/[^ ]{1,255}\.py:\d{1,9}(?:\}\})?$')

#: The most requests that are followed at once, and the most reasons of one.
_MAX_REQUESTS = 1000
_MAX_REASONS = 100


@dataclasses.dataclass
class _Request:
    """What a request has logged since the last line about a filter.

    :ivar reasons: message -> how many lines have it, and the first line
    :ivar hardware: the messages of the function that fits instances
    :ivar left_none: the filter that has left no host, and its line
    :ivar begins_empty: whether the first filter got no host
    :ivar error: the line about an error of Placement, and what follows it
    """

    reasons: dict[str, tuple[int, bytes]] = dataclasses.field(
        default_factory=dict)
    hardware: set[str] = dataclasses.field(default_factory=set)
    left_none: tuple[str, bytes, log_line.LogLine] | None = None
    begins_empty: bool = False
    error: tuple[bytes, ...] = ()


@dataclasses.dataclass(frozen=True)
class FilterReason:
    """Why a filter has left no host.

    :ivar filter: its name, or STEP_PLACEMENT; None if no line names it
    :ivar message: the most frequent message, None without one
    :ivar others: the number of other messages
    :ivar texts: the lines that say so
    :ivar line: that about the filter, None without one
    :ivar line_text: the same, as the log has it
    :ivar begins_empty: whether the first filter got no host
    """

    filter: str | None = None
    message: str | None = None
    others: int = 0
    texts: tuple[bytes, ...] = ()
    line: log_line.LogLine | None = None
    line_text: bytes = b''
    begins_empty: bool = False


class Follower:
    """The requests of which a filter may leave no host."""

    def __init__(self) -> None:
        self._requests: collections.OrderedDict[str, _Request] = (
            collections.OrderedDict())
        # The request of which the next line may be the answer of Placement.
        self._asking: _Request | None = None

    def note_answer(self, text: bytes) -> None:
        """Note the line that follows one about an error of Placement."""
        if self._asking is not None and text.startswith(ANSWER):
            self._asking.error += text,
        self._asking = None

    def note(self, line: log_line.LogLine, text: bytes) -> FilterReason | None:
        """Note a line.

        :param text: the line as the log has it
        :returns: what was known of a request that is no longer followed,
            although a filter has left no host
        """
        is_hardware = line.logger == HARDWARE
        if line.logger == FILTERS:
            self._note_filter(line, text)
        elif line.logger == _HOSTS:
            no_match = _NO_MATCH.match(line.message)
            if no_match:
                self._note_reason(line, line.message, text)
            if no_match and no_match[1]:
                self._get(line).left_none = no_match[1], text, line
        elif line.logger == PLACEMENT:
            if line.message.startswith(_FAILED):
                self._asking = self._get(line)
                self._asking.error = text,
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
            name = left_none[1] or left_none[2]
            self._get(line).left_none = name, text, line
        elif line.message.startswith(_EMPTY):
            self._get(line).begins_empty = True
        elif _OTHER_FILTER.match(line.message):
            self._requests.pop(line.context, None)

    def _note_reason(self, line: log_line.LogLine, message: str,
                     text: bytes) -> None:
        request = self._get(line)
        number, first = request.reasons.get(message, (0, text))
        if number or len(request.reasons) < _MAX_REASONS:
            request.reasons[message] = number + 1, first
            if line.logger == HARDWARE:
                request.hardware.add(message)

    def _get(self, line: log_line.LogLine) -> _Request:
        return self._requests.setdefault(line.context, _Request())

    def end(self, context: str) -> FilterReason:
        """Tell why no host is left, and forget the request."""
        request = self._requests.pop(context, None)
        return FilterReason() if request is None else _conclude(request)

    def rest(self) -> list[FilterReason]:
        """List the requests of which the log ends before Nova's last line."""
        return [_conclude(request) for request in self._requests.values()
                if request.left_none]


def _describe(error: tuple[bytes, ...]) -> str:
    """Describe what Placement has answered."""
    text = b' '.join(error).decode(errors='replace')
    # A JSON object has the message with its line breaks escaped.
    answer = text.rpartition(ANSWER.decode())[2].replace('\\"', '"')
    status, detail = _STATUS.match(answer), _DETAIL.search(answer)
    found = 'Placement answers with an error'
    if status:
        found = f'Placement answers with the error {status[0]}'
    if status and detail:
        found += ': ' + ' '.join(re.sub(r'\\+n', ' ', detail[1]).split())
    return found.rstrip('.')


def _conclude(request: _Request) -> FilterReason:
    name, line_text, line = request.left_none or (None, b'', None)
    found = FilterReason(name, line=line, line_text=line_text,
                         begins_empty=request.begins_empty)
    if request.error and name is None:
        return dataclasses.replace(
            found, filter=STEP_PLACEMENT, texts=request.error,
            message=_describe(request.error))
    # A filter says only that the instance does not fit, the function why.
    messages = sorted(
        request.hardware or request.reasons,
        key=lambda message: -request.reasons[message][0])
    if not messages:
        return found
    return dataclasses.replace(
        found, message=messages[0], others=len(messages) - 1,
        texts=(request.reasons[messages[0]][1],))
