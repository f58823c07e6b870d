# SPDX-License-Identifier: Apache-2.0

"""Facts that are read when they are first needed, and only then."""

import typing
from collections.abc import Callable
from typing import Any

from hpcvirt.audit import fact
from hpcvirt.audit.reading.files import Files

T = typing.TypeVar('T')
P = typing.ParamSpec('P')


class FactGroup:
    """Facts of a host; each is an attribute that is a :class:`Fact`.

    A fact raises :class:`~hpcvirt.audit.fact.NotKnown` if it cannot be read.
    It is None if the host does not have the thing: without cpufreq, for
    example, there is no governor. CPU numbers, cells and units are those of
    :mod:`hpcvirt.model.host`.

    :ivar known: what has been read, by name: a value, or the reason why there
        is none
    """

    def __init__(self, files: Files) -> None:
        self.files = files
        self.known: dict[str, Any] = {}

    def know(self, name: str, read: Callable[[], T]) -> T:
        """Return a fact, which is read once, even if that fails.

        :raises NotKnown: if it cannot be read
        """
        if name not in self.known:
            self.known[name] = fact.fact(read)
        known: T | fact.UnknownFact = self.known[name]
        return fact.unwrap(known)


class Fact(typing.Generic[T]):
    """A fact of a group.

    :param read: takes the files of the host, and the arguments
    """

    def __init__(self, read: Callable[typing.Concatenate[Files, P], T],
                 *args: P.args, **kwargs: P.kwargs) -> None:
        self._read: Callable[[Files], T] = lambda files: read(
            files, *args, **kwargs)

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, group: FactGroup, owner: type) -> T:
        return group.know(self._name, lambda: self._read(group.files))
