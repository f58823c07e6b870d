# SPDX-License-Identifier: Apache-2.0

"""The exceptions of hpcvirt: bad input, and services that do not answer.

A refusal is a value (:class:`hpcvirt.fit.reasons.Misfit`), never an
exception. A command prints an exception of this module as one line and exits
with status 2.
"""

from typing import Self

from hpcvirt import printable


class HpcvirtError(Exception):
    """Base class of the exceptions that hpcvirt raises on purpose."""


class InvalidInput(HpcvirtError):
    """A file, an argument or a value that cannot be used.

    :param where: the file, element or argument at fault, as the user knows it
    :param what: what is wrong with it, in one sentence without a full stop
    """

    def __init__(self, where: str, what: str) -> None:
        self.where = where
        self.what = what
        super().__init__(printable.one_line(f'{where}: {what}'))

    def __reduce__(self) -> tuple[type[Self], tuple[str, str]]:
        """Return how another process restores the exception."""
        return type(self), (self.where, self.what)


class Unreachable(HpcvirtError):
    """A service, a host or a program that cannot be used."""

    def __init__(self, what: str) -> None:
        super().__init__(printable.one_line(what))


class ConnectionLost(Unreachable):
    """A host that does not answer; it may answer later."""


class TimedOut(Unreachable):
    """A program that did not end in time."""


class NotInstalled(Unreachable):
    """A program or a library that is missing; trying again will not help."""
