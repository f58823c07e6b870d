# SPDX-License-Identifier: Apache-2.0

"""Refuse to write to Nova's databases.

A few of Nova's objects repair old records when they are read. The record of a
host or an instance that needs this is reported as broken instead.
"""

import re
import typing

import sqlalchemy

#: The statements of functions that only read.
_READS = re.compile(
    r'\s*(?:SELECT|SHOW|PRAGMA|WITH|SET|BEGIN|SAVEPOINT|RELEASE|ROLLBACK)\b',
    re.IGNORECASE)


class WouldWrite(sqlalchemy.exc.InvalidRequestError):
    """A statement that would change a database."""


def guard(engine: typing.Any) -> None:
    """Refuse all statements of an engine that may write.

    :param engine: an Engine of SQLAlchemy, or the class for all engines
    """
    if not sqlalchemy.event.contains(engine, 'before_cursor_execute',
                                     _refuse):
        sqlalchemy.event.listen(engine, 'before_cursor_execute', _refuse)


def _refuse(_connection: typing.Any, _cursor: typing.Any, statement: str,
            *_: typing.Any) -> None:
    if not _READS.match(statement):
        raise WouldWrite('the record needs a repair, which Nova makes when it '
                         'reads the record next; hpcvirt writes nothing')
