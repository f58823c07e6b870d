# SPDX-License-Identifier: Apache-2.0

"""The tables of a store, and their migration.

Each change of the tables or of the documents is an alembic revision in
:mod:`hpcvirt.bench.results.migrations`. All missing revisions are applied in
one transaction, so that a store has either the old format or the new one.
MariaDB and MySQL cannot roll back changes of tables: for them a revision must
either change tables and be repeatable, or change only documents.
"""

import pathlib

import sqlalchemy
from sqlalchemy.dialects import mysql

from hpcvirt import exception

METADATA = sqlalchemy.MetaData()

#: Documents can exceed the 64 KiB of MariaDB's TEXT. The text of PostgreSQL
#: and SQLite has no such limit.
DOCUMENT = sqlalchemy.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql',
                                          'mariadb')

RESULTS = sqlalchemy.Table(
    'hpcvirt_results', METADATA,
    sqlalchemy.Column('id', sqlalchemy.String(64), primary_key=True),
    sqlalchemy.Column('plan', sqlalchemy.String(64), nullable=False,
                      index=True),
    sqlalchemy.Column('started_at', sqlalchemy.String(40), nullable=False),
    sqlalchemy.Column('finished_at', sqlalchemy.String(40)),
    sqlalchemy.Column('software', DOCUMENT, nullable=False),
    mysql_engine='InnoDB', mysql_charset='utf8mb4')

RUNS = sqlalchemy.Table(
    'hpcvirt_runs', METADATA,
    sqlalchemy.Column('id', sqlalchemy.String(64), primary_key=True),
    sqlalchemy.Column('result_id', sqlalchemy.String(64),
                      sqlalchemy.ForeignKey('hpcvirt_results.id'),
                      nullable=False, index=True),
    sqlalchemy.Column('number', sqlalchemy.Integer, nullable=False),
    sqlalchemy.Column('benchmark', sqlalchemy.String(64), nullable=False),
    sqlalchemy.Column('host', sqlalchemy.String(255), nullable=False,
                      index=True),
    sqlalchemy.Column('document', DOCUMENT, nullable=False),
    mysql_engine='InnoDB', mysql_charset='utf8mb4')

SAMPLES = sqlalchemy.Table(
    'hpcvirt_samples', METADATA,
    sqlalchemy.Column('run_id', sqlalchemy.String(64),
                      sqlalchemy.ForeignKey('hpcvirt_runs.id'),
                      primary_key=True),
    sqlalchemy.Column('position', sqlalchemy.Integer, primary_key=True,
                      autoincrement=False),
    sqlalchemy.Column('document', DOCUMENT, nullable=False),
    mysql_engine='InnoDB', mysql_charset='utf8mb4')


VERSION_TABLE = 'hpcvirt_alembic_version'
#: The revisions, oldest first. They are repeated here because importing
#: alembic takes longer than most commands; only a migration imports it.
REVISIONS = ('0001',)

SCRIPTS = str(pathlib.Path(__file__).parent / 'migrations')
#: The lock of a process that migrates a store.
_LOCK_S = 60
_LOCKS = {
    # A write, before any read, waits for other writers.
    'sqlite': 'PRAGMA user_version = 0',
    'postgresql': 'SELECT pg_advisory_xact_lock(7468637669727421)',
    'mysql': f"SELECT GET_LOCK('{VERSION_TABLE}', {_LOCK_S})",
    'mariadb': f"SELECT GET_LOCK('{VERSION_TABLE}', {_LOCK_S})",
}
_UNLOCKS = dict.fromkeys(('mysql', 'mariadb'),
                         f"DO RELEASE_LOCK('{VERSION_TABLE}')")


def migrate(engine: sqlalchemy.Engine, where: str) -> None:
    """Create the tables, or migrate them to the newest revision.

    :param where: the store, for the error
    :raises InvalidInput: if the store has a newer format
    """
    with engine.connect() as connection:
        if check(connection, where) == REVISIONS[-1]:
            return
        # The check has begun a transaction with a read; see Store.add_run.
        connection.rollback()
        with connection.begin():
            connection.exec_driver_sql(_LOCKS[engine.dialect.name])
            # Another process may have migrated the store meanwhile.
            check(connection, where)
            _upgrade(connection)
        if engine.dialect.name in _UNLOCKS:
            connection.exec_driver_sql(_UNLOCKS[engine.dialect.name])


def check(connection: sqlalchemy.Connection, where: str) -> str | None:
    """Check that this version of hpcvirt knows the format of a store.

    :returns: its revision, None if it is older than the first
    :raises InvalidInput: if the format is newer than the last revision
    """
    if not sqlalchemy.inspect(connection).has_table(VERSION_TABLE):
        return None
    revision = connection.execute(sqlalchemy.select(sqlalchemy.table(
        VERSION_TABLE, sqlalchemy.column('version_num')))).scalar()
    if revision is None or revision in REVISIONS:
        return revision
    raise exception.InvalidInput(
        where, f'is a store of the format {str(revision)[:32]!r}, but this '
        f'version of hpcvirt knows formats up to {REVISIONS[-1]!r}; upgrade '
        'hpcvirt')


def _upgrade(connection: sqlalchemy.Connection) -> None:
    from alembic import command
    from alembic import config
    settings = config.Config(attributes={'connection': connection})
    settings.set_main_option('script_location', SCRIPTS.replace('%', '%%'))
    command.upgrade(settings, REVISIONS[-1])
