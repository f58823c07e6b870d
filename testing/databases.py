# SPDX-License-Identifier: Apache-2.0

"""The databases of an embedded Nova, which its threads share.

A SQLite database in memory is one connection. With eventlet, Nova's fixtures
let all threads use it. With native threads, they use files, in which SQLite
lets several threads read but only one write; each transaction then opens the
file and reads the schema again. :class:`SharedDatabases` keeps the databases
in memory and lets one thread use them at a time.
"""

import contextlib
import functools
import importlib
import threading
from collections.abc import Callable
from collections.abc import Iterator
from typing import Any

import fixtures
from nova.tests.functional import fixtures as functional_fixtures
from oslo_db.sqlalchemy import enginefacade

# The name of the module is an attribute of its package for another module.
_nova_fixtures = importlib.import_module('nova.tests.fixtures.nova')
#: The function of Nova's fixtures that creates a file, and the modules that
#: call it. Nova 32 and 33 do not have it.
_FILE = '_use_file_backed_sqlite_with_wal'
_FILE_USERS = (_nova_fixtures, functional_fixtures)

#: The database of the cell that a thread has targeted.
_targeted = threading.local()


class SharedDatabases(fixtures.Fixture):
    """Let all threads use databases in memory, one transaction at a time.

    The lock is held from the begin of a transaction to its end. It is one lock
    for all databases, because a transaction on one may contain another on a
    second one: two threads that do so in different orders would wait for each
    other if each database had a lock of its own. Little is lost, because
    Python runs one thread at a time.

    The fixture must be set up before Nova's databases are.

    :ivar in_use: the lock; code that uses an engine without Nova's
        transactions must hold it
    """

    def _setUp(self) -> None:  # noqa: N802
        # A thread may begin a transaction within another one.
        self.in_use = threading.RLock()
        scope = enginefacade._TransactionContextManager
        self._replace(scope, '_transaction_scope',
                      _one_at_a_time(scope._transaction_scope, self.in_use))
        if hasattr(_nova_fixtures, _FILE):
            for module in _FILE_USERS:
                self._replace(module, _FILE, lambda _: ('sqlite://', ''))
            # This would be a second lock, for writing only.
            self._replace(_nova_fixtures, 'DatabaseWriteLock',
                          fixtures.Fixture)
        cells = _nova_fixtures.CellDatabases
        self._replace(cells, '_wrap_target_cell', _target_cell)
        self._replace(cells, '_wrap_get_context_manager', _find_database)

    def _replace(self, owner: object, name: str, replacement: object) -> None:
        self.useFixture(fixtures.MockPatchObject(owner, name, replacement))


def _one_at_a_time(scope: Any, lock: Any) -> Callable[..., Any]:
    @contextlib.contextmanager
    @functools.wraps(scope)
    def wrapper(self: Any, context: Any) -> Iterator[Any]:
        with lock, scope(self, context) as resource:
            yield resource
    return wrapper


@contextlib.contextmanager
def _target_cell(cells: Any, context: Any,
                 cell_mapping: Any) -> Iterator[Any]:
    """Target a context to a cell, and this thread's other contexts too.

    Code of nova-compute uses the database of its own cell, and does not target
    its contexts. Nova's fixture lets such code of all threads use the cell
    that any thread has targeted last, which may be another one.
    """
    outer = getattr(_targeted, 'database', None)
    if cell_mapping:
        _targeted.database = cells._ctxt_mgrs[cell_mapping.database_connection]
    try:
        with cells._real_target_cell(context, cell_mapping) as targeted:
            yield targeted
    finally:
        _targeted.database = outer


def _find_database(cells: Any, context: Any) -> Any:
    """Return the manager of transactions on the database of a context."""
    return (getattr(context, 'db_connection', None)
            or getattr(_targeted, 'database', None) or cells._default_ctxt_mgr)
