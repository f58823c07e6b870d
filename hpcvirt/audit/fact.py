# SPDX-License-Identifier: Apache-2.0

"""A fact that is known, or the reason why it is not.

A fact that cannot be read is never taken for a good one. It raises
:class:`NotKnown` in the rule that needs it, and the audit then reports that
the rule has no answer.
"""

import dataclasses
import typing
from collections.abc import Callable

from hpcvirt import exception

T = typing.TypeVar('T')


@dataclasses.dataclass(frozen=True, slots=True)
class UnknownFact:
    """The reason why a fact is not known.

    :ivar where: the file
    :ivar problem: what is wrong with it, as the predicate of a sentence
    """

    where: str
    problem: str


class NotKnown(exception.HpcvirtError):
    """A rule needs a fact that is not known."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f'{where}: {problem}')
        self.unknown = UnknownFact(where, problem)


def fact(read: Callable[[], T]) -> T | UnknownFact:
    """Read a fact; return the reason if it cannot be read."""
    try:
        return read()
    except NotKnown as exc:
        return exc.unknown


def unwrap(fact: T | UnknownFact) -> T:
    """Return a fact.

    :raises NotKnown: if it is not known
    """
    if isinstance(fact, UnknownFact):
        raise NotKnown(fact.where, fact.problem)
    return fact
