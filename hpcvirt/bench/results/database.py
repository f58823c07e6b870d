# SPDX-License-Identifier: Apache-2.0

"""Connect to the database of results.

No error of this module shows a password.
"""

import contextlib
import logging
import os
import pathlib
import re
import sqlite3
import urllib.parse
from collections.abc import Iterator
from typing import Any

import sqlalchemy
from oslo_db import exception as db_exception
from oslo_db.sqlalchemy import enginefacade
from sqlalchemy import exc as sa_exception

from hpcvirt import child_environment
from hpcvirt import exception
from hpcvirt.bench.results import location

#: The password of a database server.
PASSWORD_VARIABLE = 'HPCVIRT_STORE_PASSWORD'  # noqa: S105

#: SQLite allows one writer at a time, and its default timeout of 5 s is too
#: short for a busy disk.
LOCKED_S = 60

_SECRET = re.compile(r'(passw(or)?d|pwd|secret|token)\s*=', re.IGNORECASE)


def parse_argument(text: str) -> sqlalchemy.URL:
    """Read the URL in ``$HPCVIRT_STORE``, and add the password.

    :raises InvalidInput: if it is not a database URL, or has a password
    """
    url = parse_url(text)
    query = urllib.parse.unquote(text.partition('?')[2])
    if url.password is not None or _SECRET.search(query):
        raise exception.InvalidInput(
            child_environment.STORE,
            'has a password, which other programs of this user can see; omit '
            f'it and set {PASSWORD_VARIABLE}')
    password = os.environ.get(PASSWORD_VARIABLE)
    if password and url.get_backend_name() != 'sqlite':
        url = url.set(password=password)
    return url


def parse_url(text: str) -> sqlalchemy.URL:
    """Read a URL.

    :raises InvalidInput: if it is not a database URL
    """
    try:
        return sqlalchemy.make_url(text)
    except (sa_exception.ArgumentError, ValueError) as exc:
        # ValueError: the port is no number, or an IPv6 address lacks "]".
        raise exception.InvalidInput(
            'the URL of the store', 'must be like sqlite:////path/file or '
            'postgresql+psycopg2://user@[::1]:5432/name') from exc


def resolve(url: sqlalchemy.URL | str | None,
            directory: str) -> sqlalchemy.URL:
    """Return the URL of the database.

    :param url: None for the default SQLite file in the directory
    :raises InvalidInput: if it is not a database URL, or names a directory or
        a device
    """
    if url is None:
        path = os.path.join(os.path.abspath(directory), location.DATABASE)
        url = sqlalchemy.URL.create('sqlite', database=path)
    elif isinstance(url, str):
        url = parse_url(url)
    file = file_of(url)
    if file is not None and os.path.exists(file) and not file.is_file():
        raise exception.InvalidInput(str(file), 'is not a file')
    return url


def file_of(url: sqlalchemy.URL) -> pathlib.Path | None:
    """Return the file of an SQLite database; None for any other database."""
    if url.get_backend_name() != 'sqlite' or url.database in (
            None, '', ':memory:'):
        return None
    return pathlib.Path(str(url.database))


def make_parent(url: sqlalchemy.URL) -> None:
    """Create the directory of an SQLite database, if it is missing.

    :raises InvalidInput: if it cannot be created
    """
    file = file_of(url)
    if file is not None:
        try:
            file.parent.mkdir(0o700, parents=True, exist_ok=True)
        except (OSError, ValueError) as exc:
            what = getattr(exc, 'strerror', None) or str(exc)
            raise exception.InvalidInput(str(file.parent), what) from exc


def connect(url: sqlalchemy.URL) -> sqlalchemy.Engine:
    """Connect to a database.

    :raises Unreachable: if it does not answer
    """
    # oslo.db would log a traceback besides the error that is raised.
    logging.getLogger('oslo_db').setLevel(logging.CRITICAL)
    if file_of(url) is not None and 'timeout' not in url.query:
        url = url.update_query_dict({'timeout': str(LOCKED_S)})
    context = enginefacade.transaction_context()
    context.configure(connection=url, sqlite_fk=True, max_retries=3,
                      retry_interval=2)
    with one_line_errors(url):
        try:
            engine: sqlalchemy.Engine = context.writer.get_engine()
            if url.get_backend_name() == 'sqlite':
                sqlalchemy.event.listen(engine, 'checkout', _read_any_text)
            return engine
        except (AttributeError, ImportError, OSError, TypeError,
                ValueError) as exc:
            # Drivers parse the options of a URL without checking them.
            raise exception.Unreachable(f'{format_url(url)}: {exc}') from exc


def _read_any_text(connection: Any, *_: object) -> None:
    """Escape bytes that are not UTF-8, so that the query does not fail.

    The escapes are not JSON, so that only their document is damaged.
    """
    connection.text_factory = lambda raw: raw.decode(
        'utf-8', 'backslashreplace')


@contextlib.contextmanager
def one_line_errors(url: sqlalchemy.URL) -> Iterator[None]:
    """Turn database errors, except duplicates, into errors of one line.

    :raises InvalidInput: if a page of an SQLite file is damaged; other pages
        may still be readable
    :raises Unreachable: for any other error
    """
    try:
        yield
    except db_exception.DBDuplicateEntry:
        raise
    except (db_exception.DBError, sa_exception.SQLAlchemyError) as exc:
        cause = getattr(exc, 'inner_exception', None) or exc
        message = getattr(cause, 'orig', None) or cause
        code = getattr(message, 'sqlite_errorcode', None)
        # The higher bits are details.
        if code is not None and code & 0xFF == sqlite3.SQLITE_CORRUPT:
            raise exception.InvalidInput(format_url(url),
                                         str(message)) from exc
        raise exception.Unreachable(f'{format_url(url)}: {message}') from exc


def format_url(url: sqlalchemy.URL) -> str:
    """Return the URL of a database without user, password and options."""
    return sqlalchemy.URL.create(
        url.drivername, host=url.host, port=url.port,
        database=url.database).render_as_string()
