# SPDX-License-Identifier: Apache-2.0

"""Read the decisions of HPCTopologyFilter, and failures of Nova, from a log.

Nova itself says that Placement or one of its filters leaves no host, and why a
build has failed, such as after the claim, but not of which flavor. At DEBUG
level, its filters say why (:mod:`hpcvirt.fleet.filter_reasons`).

A line counts if oslo.log has written it for a logger of the filter. The name
of the logger follows the level, which only a prefix of oslo.log, syslog,
journalctl, a container or grep may precede (:mod:`hpcvirt.fleet.log_line`).
The line may also be a JSON object: of the formatter of oslo.log, or of
``journalctl --output json`` or of a container, which have the line in one of
their fields. Text that another logger quotes does not count, because a user of
the cloud may have chosen it.

In a file of plain text, a line break in quoted text begins a line as well.
Nova quotes text of users in the lines of filters at DEBUG level. After such a
line, only lines of the same request count, until that request has a line of
another logger. A user cannot write a line of a request: nova-api makes its id
after it has received all that the user can choose.
"""

import collections
import dataclasses
import datetime
import json
import re
from collections.abc import Iterable
from collections.abc import Iterator

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt import words
from hpcvirt.fit import decision_log
from hpcvirt.fleet import filter_reasons
from hpcvirt.fleet import log_line
from hpcvirt.fleet import verdict

#: The most refusals that are kept: the last of the log.
MAX_REFUSALS = 1000

#: The most kinds of differences that are counted: a log may name any number of
#: flavors.
MAX_DIFFERENCES = 1000

#: Logger -> the step of Nova, and the messages about a failure.
_FAILURES = {
    'nova.scheduler.manager': (filter_reasons.STEP_PLACEMENT, re.compile(
        'Got no allocation candidates from the [Pp]lacement API')),
    'nova.filters': ('filter', re.compile(
        # Before Mitaka, with the id of the reservation.
        r"Filtering removed all hosts for the request with "
        r"(?:reservation ID '[\w-]{0,64}' and )?instance ID '"
        # HPCTopologyFilter says more about its refusals in lines of its own.
        r"(?P<instance>[\w-]{1,64})'\. Filter results: .*"
        r"'(?P<kind>(?!HPCTopologyFilter:)\w{1,99}): "
        r"\(start: (?P<hosts>\d{1,9}), end: 0\)'\]")),
    'nova.scheduler.utils': ('build', re.compile(
        r'\[instance: (?P<instance>[\w-]{1,64})\] Error from last host: '
        r'(?P<examples>[^ ]{1,255}) \(node [^ ]*\): (?P<reason>\[.*\])',
        re.DOTALL)),
}
_OWN_FILTER = 'HPCTopologyFilter'
_LEAVES_NONE = '{} leaves none of the hosts'
_NO_CANDIDATES = 'Placement has no allocation candidates'
_BEGINS_EMPTY = ('no host came to the filters: none of those that Placement '
                 'offers is in an enabled cell and allowed by the request')
_INSTANCE = re.compile(r"instance ID '([\w-]{1,64})'")

#: What stands before the reason in a list of the lines of a traceback.
_BEFORE = re.compile(r"""re-scheduled: |\\n['"], ['"]|^\[['"]""")

#: The loggers of the filter.
_LOGGERS = ('hpcvirt.nova.no_valid_host_log', 'hpcvirt.nova.shadow')
#: A part of the names of all loggers that quote text of users.
_QUOTING = '.filters.'
#: The lines after which a quotation ends if its request logs nothing more.
_LONGEST_QUOTATION = 10_000

#: What nova-conductor logs of a request of which nova-scheduler knows more.
_NO_VALID_HOST = re.compile('.{0,300}No ?[Vv]alid ?[Hh]ost')

#: Loggers by which the logs of services are recognized.
SCHEDULER, CONDUCTOR = 'nova-scheduler', 'nova-conductor'
_CONDUCTOR = 'nova.conductor.'
_SERVICES = {
    'nova.filters': SCHEDULER, 'nova.scheduler.manager': SCHEDULER,
    _CONDUCTOR: CONDUCTOR, 'nova.compute.manager': 'nova-compute',
    'nova.compute.claims': 'nova-compute',
    'nova.compute.resource_tracker': 'nova-compute',
    'nova.virt.libvirt.': 'nova-compute', 'nova.api.openstack': 'nova-api',
    'placement.': 'Placement'}

#: What is said of refusals, by which lines in another form are recognized.
_SAID = (b'Filtering removed all hosts', b'returned 0 hosts',
         b'Got no allocation candidates', b'No valid host was found')
#: How the forms export and verbose of journalctl begin the field with a line.
_FIELDS = (b'MESSAGE=', b'    MESSAGE=')
#: What journalctl shows of lines with colors, without its option --all.
_BLOB = b'B blob data]'
#: The lines in which services and other forms are looked for.
_BEGINNING = 10_000

#: The longest text in a line: JSON writes a character as up to two escapes,
#: each with five characters after its backslash.
_LONGEST = 10 * decision_log.MAX_LENGTH
_FIELD = re.compile(r'\b(\w{1,20})='
                    rf'(-|\d{{1,9}}|"(?:[^"\\]|\\.){{0,{_LONGEST}}}+")(?: |$)')

@dataclasses.dataclass(frozen=True, kw_only=True)
class FailedRequest(decision_log.LoggedHosts):
    """A request or a build that has failed, as Nova itself logs it.

    :ivar kind: the filter, or else the step
    """

    step: str
    kind: str


Refusal = decision_log.RefusedHosts | FailedRequest


class Found:
    """The decisions in a log.

    :ivar refused: the number of refused requests
    :ivar refusals: the records of the last of these, by request
    :ivar kinds: (flavor, step, code or name of the reason) -> the number of
        requests, and the last record
    :ivar shadow: the totals of shadow mode, by their names in the document
    :ivar error: why the first comparison failed; None if none did
    :ivar differences: (direction, code, flavor) -> the numbers of requests
        and hosts, and the first record
    :ivar unreadable: the number of lines that are cut or have another form,
        or that a user may have written
    :ivar others: the number of lines about other requests
    :ivar no_valid_host: the number of lines that say only that there is no
        valid host
    :ivar services: the services that have written a line
    :ivar formless: the number of lines about refusals that do not begin as
        lines of oslo.log, or are cut
    :ivar has_fields: whether the log has a form of journalctl with a line for
        each field
    :ivar blobs: the number of lines that journalctl has left out
    """

    def __init__(self) -> None:
        self.refused = self.unreadable = self.others = 0
        self.no_valid_host = self.formless = self.blobs = 0
        self.services: set[str] = set()
        self.has_fields = False
        self.refusals: dict[object, list[Refusal]] = {}
        self.kinds: dict[tuple[str, str, str], tuple[int, Refusal]] = {}
        self.shadow: collections.Counter[str] = collections.Counter()
        self.error: str | None = None
        self.differences: dict[object, tuple[
            collections.Counter[str], decision_log.ShadowDifference]] = {}

    def add(self, item: decision_log.Record | FailedRequest) -> None:
        """Add the record of a line."""
        if isinstance(item, Refusal):
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

    def _add_refused(self, item: Refusal) -> None:
        # Lines of several requests may alternate.
        key = item.time, item.request_id, item.instance
        if key not in self.refusals:
            self.refused += 1
            if len(self.refusals) == MAX_REFUSALS:
                del self.refusals[next(iter(self.refusals))]
        groups = self.refusals.setdefault(key, [])
        kind = classify(item)
        if kind not in map(classify, groups) and (
                kind in self.kinds or len(self.kinds) < MAX_DIFFERENCES):
            number, last = self.kinds.get(kind, (0, item))
            self.kinds[kind] = number + 1, (
                item if item.time >= last.time else last)
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


def classify(item: Refusal) -> tuple[str, str, str]:
    """Return the flavor, the step and the code or name of the reason."""
    if isinstance(item, FailedRequest):
        return item.flavor, item.step, item.kind
    return item.flavor, verdict.step_of(item.code).value, item.root.value


def read(lines: Iterable[bytes], request: str | None, since: str = '',
         until: str = '~') -> Found:
    """Read a log.

    :param lines: lines of bounded length
    :param request: the id of the request or of the instance to read about;
        None for all. Lines about others are counted.
    :param since: only what is logged from this time, in UTC and ISO 8601
    :param until: only what is logged before this time
    """
    found = Found()
    for _, record in records(lines, found):
        if not since <= record.time < until:
            continue
        if request is None or request in (
                record.request_id, record.global_request_id, record.instance):
            found.add(record)
        else:
            found.others += 1
    return found


def records(lines: Iterable[bytes], found: Found) -> Iterator[
        tuple[tuple[bytes, ...], decision_log.Record | FailedRequest]]:
    """Yield what a log says, each record with the lines that say it.

    :param lines: lines of bounded length
    :param found: counts the lines that cannot be read
    """
    # Contexts of lines that may quote line breaks -> the number of the last
    # such line.
    quoting: dict[str, int] = {}
    now = datetime.datetime.now(datetime.UTC)
    follower = filter_reasons.Follower()
    loggers = *_LOGGERS, *_FAILURES
    known = tuple(name.encode() for name in (
        *loggers, _CONDUCTOR, _QUOTING, filter_reasons.HARDWARE,
        filter_reasons.PLACEMENT, filter_reasons.NO_MATCH))
    first = (*_SAID, _BLOB, *map(str.encode, _SERVICES))
    for number, text in enumerate(log_line.join_objects(lines)):
        follower.note_answer(text)
        if not quoting and not any(name in text for name in known) and (
                number > _BEGINNING or not any(
                    name in text for name in first)):
            continue
        line = log_line.find(text.decode(errors='replace').rstrip())
        _follow(quoting, line, number)
        _count_form(line, text, found)
        if line is None:
            continue
        is_certain = not quoting or quoting.keys() == {line.context}
        if is_certain:
            lost = follower.note(line, text)
            if lost is not None:
                yield from _read_rest([lost], found, now)
        _count_pointless(line, found)
        if line.logger not in loggers:
            continue
        try:
            record = (read_message(line.message) if line.logger in _LOGGERS
                      else _read_failure(line, now))
            if record is None:
                continue
            named = (record.request_id or ' ') in line.context.split()
            if quoting and not (named and is_certain):
                raise ValueError('another request may quote the line')
        except (ValueError, exception.InvalidInput):
            found.unreadable += 1
            continue
        texts: tuple[bytes, ...] = (text,)
        if isinstance(record, FailedRequest) and record.step != 'build':
            why = follower.end(line.context)
            record = _with_reason(record, why)
            texts = *why.texts, text
        yield texts, record
    yield from _read_rest(follower.rest(), found, now)


def _count_pointless(line: log_line.LogLine, found: Found) -> None:
    """Count the requests of which nova-scheduler has logged the reason."""
    if (line.logger in ('nova.scheduler.utils', 'nova.conductor.manager')
            and line.level in ('WARNING', 'ERROR')
            and _NO_VALID_HOST.match(line.message)):
        found.no_valid_host += 1
    for beginning, service in _SERVICES.items():
        if line.logger.startswith(beginning):
            found.services.add(service)


def _count_form(line: log_line.LogLine | None, text: bytes,
                found: Found) -> None:
    """Count lines about refusals that are not in a form that is read."""
    if line is not None:
        # A page or a mail has moved the ends of lines.
        is_cut = not line.context and line.message.startswith('[')
        found.formless += is_cut or (line.logger not in _FAILURES and any(
            said in text for said in _SAID))
    elif _BLOB in text:
        found.blobs += 1
    elif text.startswith(_FIELDS):
        found.has_fields = True
    else:
        found.formless += any(said in text for said in _SAID)


def _read_rest(reasons: Iterable[filter_reasons.FilterReason], found: Found,
               now: datetime.datetime) -> Iterator[
                   tuple[tuple[bytes, ...], FailedRequest]]:
    """Yield the requests of which a log has only the line of a filter."""
    for why in reasons:
        if why.line is None or why.filter in (None, _OWN_FILTER):
            continue
        try:
            time = log_line.read_time(why.line.time, now)
        except ValueError:
            found.unreadable += 1
            continue
        instance = _INSTANCE.search(why.line.message)
        reason = (_BEGINS_EMPTY if why.begins_empty
                  else _LEAVES_NONE.format(why.filter))
        yield (*why.texts, why.line_text), _with_reason(FailedRequest(
            time=time, request_id=_request_id(why.line),
            instance=instance and instance[1], flavor='-', hosts=0,
            step='filter', kind=why.filter or '', examples='', reason=reason),
            why)


def _with_reason(record: FailedRequest,
                 why: filter_reasons.FilterReason) -> FailedRequest:
    """Add to a record what was logged of its reason."""
    of = (record.kind,) if record.step == filter_reasons.STEP_PLACEMENT else (
        None, record.kind)
    if why.message is None or why.filter not in of:
        return record
    end = (f' (and {words.count_noun(why.others, "other reason")})'
           if why.others else '')
    reason = f'{record.reason}: {why.message}'
    if record.step == filter_reasons.STEP_PLACEMENT:
        reason = why.message
    return dataclasses.replace(record, reason=reason[
        :decision_log.MAX_LENGTH - len(end)] + end)


def _follow(quoting: dict[str, int], line: log_line.LogLine | None,
            number: int) -> None:
    """Update the contexts in which a quotation may continue after a line."""
    for context, last in tuple(quoting.items()):
        if last + _LONGEST_QUOTATION < number:
            del quoting[context]
    if (line is not None and line.logger not in _LOGGERS
            and not line.is_escaped):
        quoting.pop(line.context, None)
        if line.level == 'DEBUG' and _QUOTING in line.logger:
            quoting[line.context] = number


def read_message(message: str) -> decision_log.Record | None:
    """Read a message of the filter; None if it is not about a decision.

    :raises ValueError: if it is cut
    :raises InvalidInput: if a field is missing, or has another form
    """
    for beginning, kind in decision_log.BEGINNINGS.items():
        if message.startswith(beginning):
            text = message.partition('; ')[2]
            pairs = _FIELD.findall(text)
            fields = {name: None if value == '-' else json.loads(value)
                      for name, value in pairs}
            if len(fields) < len(pairs) or _FIELD.sub('', text):
                raise ValueError('the line is cut')
            return serialization.load(kind, fields, 'log')
    return None


def _read_failure(line: log_line.LogLine,
                  now: datetime.datetime) -> FailedRequest | None:
    """Read a line of Nova; None if it is not about a failure.

    :raises ValueError: if its time is none
    """
    step, pattern = _FAILURES[line.logger]
    match = pattern.match(line.message)
    if match is None:
        return None
    found = match.groupdict()
    kind = found.get('kind') or step
    if step == 'build':
        reason = _BEFORE.split(found['reason'])[-1].rstrip(
            ']\'"').removesuffix('\\n')
    elif step == filter_reasons.STEP_PLACEMENT:
        reason = _NO_CANDIDATES
    elif found['hosts'] == '0':
        reason = _BEGINS_EMPTY
    else:
        reason = _LEAVES_NONE.format(kind)
    return FailedRequest(
        time=log_line.read_time(line.time, now), request_id=_request_id(line),
        instance=found.get('instance'), flavor='-',
        hosts=int(found.get('hosts') or step == 'build'), step=step,
        kind=kind, examples=found.get('examples') or '',
        reason=reason[:decision_log.MAX_LENGTH])


def _request_id(line: log_line.LogLine) -> str | None:
    # The global id of a request comes first.
    ids = [word for word in line.context.split()[:2]
           if word.startswith('req-')]
    return ids[-1] if ids else None
