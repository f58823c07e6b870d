# SPDX-License-Identifier: Apache-2.0

"""Read the earlier runs on the subject of a run.

Queries use the columns besides the document of a run. A damaged column must
not hide an attempt.
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
    """Read a run from a row of the table.

    :raises InvalidInput: if it is damaged: its columns and its document differ
    """
    run = json_format.load_run(row['document'], row['id'])
    for name in _NAMES:
        if getattr(run, name) != row[name]:
            raise exception.InvalidInput(
                f'run {run.id}: {name}', f'is {str(row[name])[:64]!r} in its '
                f'column, but {getattr(run, name)[:64]!r} in its document')
    return run


def find_misplaced(connection: sqlalchemy.Connection) -> Sequence[str]:
    """Return the ids of runs whose document lacks the text of a column.

    The column is damaged, or has characters that JSON escapes.
    """
    return connection.execute(sqlalchemy.select(_COLUMNS.id).where(
        sqlalchemy.or_(*(
            sqlalchemy.func.replace(
                _COLUMNS.document, f'"{name}": "' + sqlalchemy.func.coalesce(
                    _COLUMNS[name], '') + '"', '') == _COLUMNS.document
            for name in _NAMES)))).scalars().all()


def read(connection: sqlalchemy.Connection, run: record.Run,
         misplaced: Sequence[str]) -> list[record.Run]:
    """Read the earlier runs on the subject of a run, oldest first.

    :param misplaced: from :func:`find_misplaced`
    :raises InvalidInput: if one of them is damaged
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
