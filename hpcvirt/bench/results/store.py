# SPDX-License-Identifier: Apache-2.0

"""Store every finished sample permanently.

A database (SQLite by default, or any other that SQLAlchemy and oslo.db
support) has the records, and a directory has the raw outputs. Each sample is
written in its own transaction as soon as its raw outputs are on disk and it is
parsed. Records are never updated or deleted; an invocation is only marked as
finished. Therefore no finished sample is lost when a process is killed.

A store of an older version can be read as it is; it is migrated before
anything is written (see :mod:`.tables`).
"""

import contextlib
import dataclasses
import functools
import hashlib
import json
import logging
import os
import pathlib
import re
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import TypeVar

import sqlalchemy
from oslo_db import exception as db_exception
from sqlalchemy import exc as sa_exception

from hpcvirt import exception
from hpcvirt import output_file
from hpcvirt import printable
from hpcvirt import saved_document
from hpcvirt import serialization
from hpcvirt import waiting
from hpcvirt.bench.model import record
from hpcvirt.bench.results import database
from hpcvirt.bench.results import earlier_runs
from hpcvirt.bench.results import json_format
from hpcvirt.bench.results import location
from hpcvirt.bench.results import tables

T = TypeVar('T')

LOG = logging.getLogger(__name__)

#: How long to retry while other processes create the tables.
CREATION_LIMIT_S = 5
CREATION_PAUSE_S = 0.25


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """One invocation of ``hpcvirt bench run``.

    :ivar plan: digest of the plan; running the same plan again continues its
        unfinished entry
    :ivar finished_at: None while samples are missing
    """

    id: str
    plan: str
    started_at: str
    finished_at: str | None


class Store:
    """A database of results and a directory of raw outputs.

    :param url: SQLAlchemy URL: ``sqlite:////var/lib/hpcvirt/bench.sqlite``,
        ``postgresql+psycopg2://...``, ``mysql+pymysql://...``; None for a
        file in ``raw``
    :param raw: directory of the raw outputs, which must belong to the caller
    :param create: create the directory and the tables if they are missing,
        and migrate the tables to the current format
    :param warn: called with a line for each damaged result that is left out
    :raises InvalidInput: if the URL is not a database URL, or the store has a
        newer format
    :raises Unreachable: if the database does not answer
    """

    def __init__(self, url: sqlalchemy.URL | str | None, raw: str, *,
                 create: bool = True,
                 warn: Callable[[str], object] = LOG.warning) -> None:
        self._raw = pathlib.Path(raw)
        self._warn = warn
        self._url = database.resolve(url, raw)
        if create:
            database.make_parent(self._url)
            location.make_directory(raw)
        self._engine = database.connect(self._url)
        self._attempts: dict[tuple[str, int], record.Attempt] = {}
        self._misplaced: Sequence[str] | None = None
        if create:
            with self._errors():
                self._create()

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def exists(self) -> bool:
        """Whether the database has the tables of a store.

        :raises InvalidInput: if the store has a newer format
        """
        with self._errors(), self._engine.connect() as connection:
            tables.check(connection, database.format_url(self._url))
            return sqlalchemy.inspect(connection).has_table(
                tables.SAMPLES.name)

    def open_entry(self, entry: Entry, software: Mapping[str, str],
                   fits: Callable[[Entry], bool] = lambda _: True) -> Entry:
        """Return the unfinished entry of the same plan, or add the given one.

        :param fits: whether an unfinished entry can be continued
        """
        query = sqlalchemy.select(tables.RESULTS).where(
            tables.RESULTS.c.plan == entry.plan,
            tables.RESULTS.c.finished_at.is_(None)).order_by(
                tables.RESULTS.c.started_at.desc())
        with self._errors(), self._engine.connect() as connection:
            found = [_entry(row)
                     for row in connection.execute(query).mappings()]
        for unfinished in found:
            if fits(unfinished):
                return unfinished
        with self._errors(), self._engine.begin() as connection:
            connection.execute(tables.RESULTS.insert().values(
                id=entry.id, plan=entry.plan, started_at=entry.started_at,
                finished_at=None,
                software=json.dumps(dict(software), sort_keys=True)))
        return entry

    def finish(self, entry_id: str, finished_at: str) -> None:
        """Mark an entry as finished."""
        with self._errors(), self._engine.begin() as connection:
            connection.execute(tables.RESULTS.update().where(
                tables.RESULTS.c.id == entry_id).values(
                    finished_at=finished_at))

    def add_run(self, entry_id: str, number: int, run: record.Run) -> None:
        """Add a run without its samples, unless the store has it already."""
        bare = dataclasses.replace(run, samples=(), earlier=())
        # SQLite does not wait for other writers in a transaction that began
        # with a read. Every transaction of this class begins with a write.
        with (contextlib.suppress(db_exception.DBDuplicateEntry),
              self._errors(), self._engine.begin() as connection):
            connection.execute(tables.RUNS.insert().values(
                id=run.id, result_id=entry_id, number=number,
                benchmark=run.benchmark, host=run.host,
                document=json_format.dump_document(bare)))

    def add_sample(self, run_id: str, sample: record.Sample) -> None:
        """Add a finished sample.

        :raises InvalidInput: if the run already has a sample at its position
        """
        try:
            with self._errors(), self._engine.begin() as connection:
                connection.execute(tables.SAMPLES.insert().values(
                    run_id=run_id, position=sample.position,
                    document=json_format.dump_document(sample)))
        except db_exception.DBDuplicateEntry as exc:
            raise exception.InvalidInput(
                f'run {run_id}', f'already has a sample {sample.position}: is '
                'the same benchmark running twice?') from exc

    def measuring(self, entry_id: str,
                  ) -> contextlib.AbstractContextManager[str]:
        """Return a context that locks a result while it is measured.

        Entering it raises ``Unreachable`` if another process measures it.
        """
        return saved_document.lock(
            location.locate_lock(str(self._raw), entry_id),
            f'result {entry_id} is being measured')

    def find_process(self, entry_id: str) -> saved_document.Process | None:
        """Return the process that measures a result; None if there is none."""
        return saved_document.find_process(
            location.locate_lock(str(self._raw), entry_id))

    def raw_directory(self, run_id: str, position: int) -> pathlib.Path:
        """Return the directory of the raw outputs of a sample."""
        return self._raw / run_id / f'{position:04d}'

    def keep_raw(self, run_id: str, position: int, name: str,
                 content: bytes) -> record.RawOutput:
        """Write a raw output to disk and return its description.

        :raises Unreachable: if it cannot be written
        """
        digest = hashlib.sha256(content).hexdigest()
        target = (self.raw_directory(run_id, position)
                  / name.replace('/', '_'))
        relative = target.relative_to(self._raw)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            output_file.replace(target, content)
        except OSError as exc:
            raise exception.Unreachable(
                f'{target}: {exc.strerror or exc}') from exc
        return record.RawOutput(name, str(relative), digest, len(content))

    def entries(self) -> tuple[Entry, ...]:
        """Return the invocations, oldest first; damaged ones are left out."""
        query = sqlalchemy.select(tables.RESULTS).order_by(
            tables.RESULTS.c.started_at, tables.RESULTS.c.id)
        with self._errors(), self._engine.connect() as connection:
            rows = connection.execute(query).mappings().all()
        read = (self._undamaged(row['id'], functools.partial(_entry, row))
                for row in rows)
        return tuple(entry for entry in read if entry is not None)

    def results(self, entries: Iterable[Entry],
                ) -> Iterator[tuple[Entry, record.Result]]:
        """Yield invocations and their results; damaged ones are left out."""
        for entry in entries:
            result = self._undamaged(
                entry.id, functools.partial(self.result, entry.id))
            if result is not None:
                yield entry, result

    def _undamaged(self, entry_id: object, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except exception.InvalidInput as exc:
            self._warn(printable.one_line(
                f'{exc}; the result {str(entry_id)[:64]} is left out'))
            return None

    def result(self, entry_id: str) -> record.Result:
        """Read an invocation with all finished samples and earlier attempts.

        :raises InvalidInput: if there is no such entry, or it is damaged
        """
        with self._errors(), self._engine.connect() as connection:
            row = connection.execute(sqlalchemy.select(tables.RESULTS).where(
                tables.RESULTS.c.id == entry_id)).mappings().first()
            if row is None:
                raise exception.InvalidInput(
                    entry_id, 'the store has no such result')
            return record.Result(
                runs=tuple(self._runs(connection, entry_id)),
                software=json_format.load_software(row['software'], entry_id))

    def _runs(self, connection: sqlalchemy.Connection,
              entry_id: str) -> Iterator[record.Run]:
        """Read the runs of an invocation, with their earlier attempts."""
        query = sqlalchemy.select(tables.RUNS).where(
            tables.RUNS.c.result_id == entry_id).order_by(tables.RUNS.c.number)
        if self._misplaced is None:
            self._misplaced = earlier_runs.find_misplaced(connection)
        for row in connection.execute(query).mappings().all():
            bare = earlier_runs.load(row)
            before = earlier_runs.read(connection, bare, self._misplaced)
            known = before[-record.KNOWN_ATTEMPTS:]
            yield dataclasses.replace(
                bare, samples=_samples(connection, bare.id),
                earlier=tuple(self._attempt(connection, other)
                              for other in known),
                omitted=len(before) - len(known))

    def _attempt(self, connection: sqlalchemy.Connection,
                 run: record.Run) -> record.Attempt:
        """Return a run as an earlier attempt, from a cache if possible.

        If a host is measured regularly, successive results share all but one
        of their attempts.
        """
        count = connection.execute(sqlalchemy.select(
            sqlalchemy.func.count()).where(
                tables.SAMPLES.c.run_id == run.id)).scalar_one()
        if (run.id, count) not in self._attempts:
            self._attempts[run.id, count] = record.Attempt(
                run.id, run.started_at, run.planned_pairs,
                tuple(each.reduce() for each in _samples(connection, run.id)
                      if not each.warm_up or not each.outcome.valid))
        return self._attempts[run.id, count]

    def _create(self) -> None:
        """Create or migrate the tables.

        Another process may do the same, and hold a lock that the database does
        not wait for; the retry then finds nothing to do.
        """
        waiting.retry(lambda: tables.migrate(
            self._engine, database.format_url(self._url)),
                      (db_exception.DBError, sa_exception.DBAPIError),
                      CREATION_LIMIT_S, CREATION_PAUSE_S)

    def _errors(self) -> contextlib.AbstractContextManager[None]:
        return database.one_line_errors(self._url)


def open_existing(url: sqlalchemy.URL | str | None,
                  raw: str, warn: Callable[[str], object] = LOG.warning,
                  ) -> Store | None:
    """Open a store for reading, without creating anything.

    :param warn: called with a line for each damaged result that is left out
    :returns: None if there is no store yet
    """
    resolved = database.resolve(url, raw)
    file = database.file_of(resolved)
    if file is not None and not os.path.exists(file):
        return None
    store = Store(resolved, raw, create=False, warn=warn)
    try:
        if store.exists():
            return store
    except exception.HpcvirtError:
        store.close()
        raise
    store.close()
    return None


def _entry(row: Any) -> Entry:
    # Directories are named after the id, which other users of the database
    # can write.
    if not re.fullmatch('[0-9A-Za-z]+', str(row['id'])):
        raise exception.InvalidInput(
            str(row['id'])[:64], 'is not the id of a result')
    return serialization.load(Entry, {
        field.name: row[field.name] for field in dataclasses.fields(Entry)},
        f'result {row["id"]}')


def _samples(connection: sqlalchemy.Connection,
             run_id: str) -> tuple[record.Sample, ...]:
    query = sqlalchemy.select(
        tables.SAMPLES.c.document, tables.SAMPLES.c.position).where(
        tables.SAMPLES.c.run_id == run_id).order_by(tables.SAMPLES.c.position)
    return json_format.load_samples(connection.execute(query), run_id)
