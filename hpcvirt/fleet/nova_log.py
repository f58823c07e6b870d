# SPDX-License-Identifier: Apache-2.0

"""Read from the lines of Nova itself why requests and builds have failed.

nova-scheduler says that Placement has no candidates, or which of its filters
leaves no host; nova-conductor, why a build has failed on its host, such as
after the claim. The lines do not name the flavor.
"""

import dataclasses
import datetime
import re

from hpcvirt.fit import decision_log

#: Logger -> the step of Nova, and the messages about a failure.
_MESSAGES = {
    'nova.scheduler.manager': ('placement', re.compile(
        'Got no allocation candidates from the Placement API')),
    'nova.filters': ('filter', re.compile(
        r"Filtering removed all hosts for the request with instance ID '"
        r"(?P<instance>[\w-]{1,64})'\. Filter results: .*'(?P<kind>\w{1,99}): "
        r"\(start: (?P<hosts>\d{1,9}), end: 0\)'\]")),
    'nova.scheduler.utils': ('build', re.compile(
        r'\[instance: (?P<instance>[\w-]{1,64})\] Error from last host: '
        r'(?P<examples>[^ ]{1,255}) \(node [^ ]*\): (?P<reason>\[.*\])',
        re.DOTALL)),
}
LOGGERS = tuple(_MESSAGES)

#: What stands before the reason in a list of the lines of a traceback.
_BEFORE = re.compile(r"""re-scheduled: |\\n['"], ['"]|^\[['"]""")


@dataclasses.dataclass(frozen=True, kw_only=True)
class FailedRequest(decision_log.LoggedHosts):
    """A request or a build that has failed, as Nova itself logs it.

    :ivar kind: the filter, or else the step
    """

    step: str
    kind: str


def read(logger: str, message: str, time: str,
         request_id: str) -> FailedRequest | None:
    """Read a message of Nova; None if it is not about a failure.

    :param time: as oslo.log has written it
    :raises ValueError: if it is no time
    """
    step, pattern = _MESSAGES[logger]
    match = pattern.match(message)
    found = match.groupdict() if match else {}
    # HPCTopologyFilter says more about its refusals in lines of its own.
    if match is None or found.get('kind') == 'HPCTopologyFilter':
        return None
    kind = found.get('kind') or step
    reason = _BEFORE.split(found.get('reason') or '')[-1].rstrip(
        ']\'"').removesuffix('\\n') or (
            f'{kind} leaves none of the hosts' if step == 'filter'
            else 'Placement has no allocation candidates')
    return FailedRequest(
        time=normalize_time(time), request_id=request_id or None,
        instance=found.get('instance'), flavor='-',
        hosts=int(found.get('hosts') or step == 'build'), step=step,
        kind=kind, examples=found.get('examples') or '',
        reason=reason[:decision_log.MAX_LENGTH])


def normalize_time(text: str) -> str:
    """Write a time in UTC; one without a zone is in that of this machine.

    :raises ValueError: if it is no time
    """
    return datetime.datetime.fromisoformat(text.replace(',', '.')).astimezone(
        datetime.UTC).isoformat(timespec='milliseconds')
