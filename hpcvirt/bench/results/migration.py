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

"""Bring the database of results to the format of this version.

Each change of the format is a revision of alembic in
:mod:`hpcvirt.bench.results.migrations`. All revisions that are missing are
applied in one transaction, so that a store is of the old format or of the new
one. On MariaDB and MySQL, which cannot take back changes of tables, a revision
must either change tables and be repeatable, or change documents.
"""

import pathlib

import sqlalchemy

from hpcvirt import exception

VERSION_TABLE = 'hpcvirt_alembic_version'
#: The revisions, the first one first. alembic, which knows them too, takes
#: longer to import than most commands run: only a migration imports it.
REVISIONS = ('0001', '0002')

SCRIPTS = str(pathlib.Path(__file__).parent / 'migrations')
#: What two processes that migrate a store at once wait for.
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
    """Create the tables, or bring them to the newest revision.

    :param where: the store, for the error
    :raises InvalidInput: if the store is of a newer format
    """
    with engine.connect() as connection:
        if check(connection, where) == REVISIONS[-1]:
            return
        # The transaction of the check has read: this one may wait.
        connection.rollback()
        with connection.begin():
            connection.exec_driver_sql(_LOCKS[engine.dialect.name])
            # Another process may have migrated it meanwhile.
            check(connection, where)
            _upgrade(connection)
        if engine.dialect.name in _UNLOCKS:
            connection.exec_driver_sql(_UNLOCKS[engine.dialect.name])


def check(connection: sqlalchemy.Connection, where: str) -> str | None:
    """Check that a store is of a format that this version knows.

    :returns: its revision, None if it is older than the first
    :raises InvalidInput: if it is newer than the last
    """
    if not sqlalchemy.inspect(connection).has_table(VERSION_TABLE):
        return None
    revision = connection.execute(sqlalchemy.select(sqlalchemy.table(
        VERSION_TABLE, sqlalchemy.column('version_num')))).scalar()
    if revision is None or revision in REVISIONS:
        return revision
    raise exception.InvalidInput(
        where, f'is a store of the format {str(revision)[:32]!r}, and this '
        f'version of hpcvirt knows formats up to {REVISIONS[-1]!r}; upgrade '
        'hpcvirt')


def _upgrade(connection: sqlalchemy.Connection) -> None:
    from alembic import command
    from alembic import config
    settings = config.Config(attributes={'connection': connection})
    # "%" starts an interpolation.
    settings.set_main_option('script_location', SCRIPTS.replace('%', '%%'))
    command.upgrade(settings, REVISIONS[-1])
