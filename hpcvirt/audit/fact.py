# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""A fact that is known, or the reason why it is not.

A fact that cannot be read is never taken for a good one. A field of
:class:`hpcvirt.audit.facts.Facts` holds a value or an :class:`Unknown`, and a
rule takes the value with :func:`known`, which raises :class:`NotKnown`. The
audit then reports that the rule has no answer.
"""

import dataclasses
import typing
from collections.abc import Callable

from hpcvirt import exception

T = typing.TypeVar('T')


@dataclasses.dataclass(frozen=True, slots=True)
class Unknown:
    """The reason why a fact is not known.

    :ivar where: the file
    :ivar problem: what is wrong with it, as the predicate of a sentence
    """

    where: str
    problem: str


class NotKnown(exception.HpcvirtError):
    """A rule needs a fact that is not known."""

    def __init__(self, unknown: Unknown) -> None:
        super().__init__(f'{unknown.where}: {unknown.problem}')
        self.unknown = unknown


def known(fact: T | Unknown) -> T:
    """Return a fact.

    :raises NotKnown: if it is not known
    """
    if isinstance(fact, Unknown):
        raise NotKnown(fact)
    return fact


def fact(read: Callable[[], T]) -> T | Unknown:
    """Read a fact; return why not if it cannot be read."""
    try:
        return read()
    except NotKnown as exc:
        return exc.unknown
