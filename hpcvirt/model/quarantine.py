# SPDX-License-Identifier: Apache-2.0

"""Describe the quarantine of hosts by aggregates of Nova.

A host in quarantine takes no new instances. Several holders can hold a host in
quarantine: an operator, ``hpcvirt host supervise`` and its gate, the
acceptances and experiments of ``hpcvirt bench run``, ``hpcvirt drain``. Each
holder has its own aggregate. A host is in quarantine as long as it is in one
of these aggregates, so that no holder can release a host that another holds.
The metadata of an aggregate names the holder and, for each host, the time, the
user and the reason.
"""

import dataclasses
import re
from collections.abc import Iterable
from collections.abc import Mapping

#: The metadata key that identifies an aggregate; its value is the holder.
MARK = 'hpcvirt-quarantine'

#: The trait of a host that is in quarantine.
TRAIT = 'CUSTOM_HPCVIRT_QUARANTINED'

#: The holders.
OPERATOR = 'operator'
WATCH = 'watch'
ACCEPT = 'accept'
TUNE = 'tune'
DRAIN = 'drain'
GATE = 'gate'
HOLDERS = (OPERATOR, WATCH, ACCEPT, TUNE, DRAIN, GATE)

#: Longest value of the metadata of an aggregate in Nova's API.
_MAX_CHARACTERS = 255
_CUT = '...'

_ENTRY = re.compile(r'since (\S+) by (\S+): (.*)', re.DOTALL)


@dataclasses.dataclass(frozen=True, slots=True)
class Hold:
    """The reason why one holder holds a host in quarantine.

    :ivar since: the time in UTC and ISO 8601; None if it is unknown
    :ivar by: the user or program and its machine; None if it is unknown
    """

    holder: str
    reason: str
    since: str | None = None
    by: str | None = None

    @property
    def sentence(self) -> str:
        """Say who holds the host, since when and why."""
        since = '' if self.since is None else f' since {self.since}'
        by = '' if self.by is None else f' by {self.by}'
        return f'{self.holder}{since}{by}: {self.reason}'


def aggregate_name(holder: str) -> str:
    """Name the aggregate of a holder."""
    return f'hpcvirt-quarantine-{holder}'


def key(host: str) -> str:
    """Name the metadata key about a host."""
    return f'{MARK}:{host}'[:_MAX_CHARACTERS]


def entry(hold: Hold) -> str:
    """Write the metadata value about a host; a long reason is cut."""
    text = f'since {hold.since} by {hold.by}: {hold.reason}'
    return (text if len(text) <= _MAX_CHARACTERS
            else text[:_MAX_CHARACTERS - len(_CUT)] + _CUT)


def says(hold: Hold, reason: str) -> bool:
    """Whether a hold that was read has this reason, which may be cut."""
    return hold.reason == reason or (
        hold.reason.endswith(_CUT)
        and reason.startswith(hold.reason.removesuffix(_CUT)))


def read_holds(host: str, aggregates: Iterable[Mapping[str, str]],
               ) -> tuple[Hold, ...]:
    """Read the holds on a host from the metadata of its aggregates.

    Aggregates that do not belong to a holder are ignored.

    :returns: the holds in the order of their holders
    """
    found = []
    for metadata in aggregates:
        if MARK in metadata:
            text = metadata.get(key(host), '')
            match = _ENTRY.fullmatch(text)
            since, by, reason = match.groups() if match else (None, None, text)
            found.append(Hold(metadata[MARK], reason or 'no reason is given',
                              since, by))
    return tuple(sorted(found, key=lambda hold: hold.holder))


def sentence(holds: Iterable[Hold]) -> str:
    """Say why a host is in quarantine, without a full stop."""
    return '; '.join(hold.sentence for hold in holds)
