# SPDX-License-Identifier: Apache-2.0

"""Read the runs on the subject of a run before it.

The columns beside the document of a run are for queries. Where they are
damaged, they must not hide an attempt.
"""

from collections.abc import Sequence
from typing import Any

import sqlalchemy

from hpcvirt import exception
from hpcvirt.bench.model import record
from hpcvirt.bench.results import json_format
from hpcvirt.bench.results import tables

_NAMES = ('benchmark', 'host')
_COLUMNS = tables.RUNS.c


def load(row: Any) -> record.Run:
    """Read a run, whose columns must say what its document says.

    :raises InvalidInput: if it is damaged
    """
    run = json_format.load_run(row['document'], row['id'])
    for name in _NAMES:
        if getattr(run, name) != row[name]:
            raise exception.InvalidInput(
                f'run {run.id}: {name}', f'is {str(row[name])[:64]!r} and '
                f'{getattr(run, name)[:64]!r}')
    return run


def find_misplaced(connection: sqlalchemy.Connection) -> Sequence[str]:
    """Find runs whose document does not have what the columns say.

    The columns are damaged, or have characters that JSON escapes.
    """
    return connection.execute(sqlalchemy.select(_COLUMNS.id).where(
        sqlalchemy.or_(*(
            sqlalchemy.func.replace(
                _COLUMNS.document, f'"{name}": "' + sqlalchemy.func.coalesce(
                    _COLUMNS[name], '') + '"', '') == _COLUMNS.document
            for name in _NAMES)))).scalars().all()


def read(connection: sqlalchemy.Connection, run: record.Run,
         misplaced: Sequence[str]) -> list[record.Run]:
    """Read the runs on the subject of a run before it, oldest first.

    :param misplaced: what :func:`find_misplaced` has found
    :raises InvalidInput: if one is damaged
    """
    if not run.subject:
        return []
    query = sqlalchemy.select(tables.RUNS).where(
        _COLUMNS.document.contains(run.subject), sqlalchemy.or_(
            _COLUMNS.id.in_(misplaced), sqlalchemy.and_(
                _COLUMNS.benchmark == run.benchmark,
                _COLUMNS.host == run.host)))
    found = [other for other in map(
        load, connection.execute(query).mappings())
        if all(getattr(other, name) == getattr(run, name)
               for name in (*_NAMES, 'subject'))
        and (other.started_at, other.id) < (run.started_at, run.id)]
    return sorted(found, key=lambda one: (one.started_at, one.id))
