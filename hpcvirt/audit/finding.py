# SPDX-License-Identifier: Apache-2.0

"""The findings of an audit."""

import dataclasses
import enum


class Severity(enum.StrEnum):
    """The severity of a finding, the worst first.

    ``error``: guests do not start, are refused, or endanger each other.
    ``unknown``: the fact cannot be read, so nothing vouches for it.
    ``warning``: guests perform worse than they could.
    ``note``: worth knowing; a choice that can be right.
    """

    ERROR = 'error'
    UNKNOWN = 'unknown'
    WARNING = 'warning'
    NOTE = 'note'


#: The worst first.
ORDER = tuple(Severity)

#: The severities that make a host faulty.
FAULTS = frozenset({Severity.ERROR, Severity.UNKNOWN, Severity.WARNING})


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """A fact of a host that violates a rule, or that is not known.

    :ivar code: the rule; it does not change between releases
    :ivar found: what the host has, one clause without a full stop
    :ivar expected: what it should have, likewise
    :ivar why: the reason, one sentence without a full stop
    :ivar sources: keys of documents of the bibliography
    :ivar change: commands and lines of files, in order; a line that begins
        with ``#`` is an explanation
    :ivar cost: a published figure with its source, or that there is none;
        empty for a fact that is not known
    """

    code: str
    severity: Severity
    found: str
    expected: str
    why: str
    sources: tuple[str, ...]
    change: tuple[str, ...] = ()
    cost: str = ''
