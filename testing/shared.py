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

"""What each embedded Nova would do again, done once for the process.

A test starts a Nova of its own, so that nothing of one test reaches another.
What is prepared here is the same for all of them, and none changes it: SQL
statements in SQLite's dialect, and the rules of Nova's policies.
"""

import functools
import pathlib
from typing import Any

import fixtures
from oslo_db.sqlalchemy import engines
from oslo_policy import policy
from sqlalchemy.dialects.sqlite import pysqlite

_STATEMENTS: dict[Any, Any] = {}


class SharedStatements(fixtures.Fixture):
    """Compile each SQL statement once, not once for each database.

    SQLAlchemy keeps compiled statements by the identity of the dialect, and
    each engine has a dialect of its own. Those of SQLite are all alike here.
    """

    def _setUp(self) -> None:  # noqa: N802
        dialect = 'sqlalchemy.dialects.sqlite.pysqlite.SQLiteDialect_pysqlite'
        self.useFixture(fixtures.MonkeyPatch(f'{dialect}.__eq__', _alike))
        self.useFixture(fixtures.MonkeyPatch(
            f'{dialect}.__hash__', lambda _: hash(dialect)))
        self.useFixture(fixtures.MonkeyPatch(
            'oslo_db.sqlalchemy.engines.create_engine',
            _sharing_statements(engines.create_engine)))


def _alike(one: object, other: object) -> bool:
    return (isinstance(one, pysqlite.SQLiteDialect_pysqlite)
            and type(one) is type(other))


def _sharing_statements(create_engine: Any) -> Any:
    @functools.wraps(create_engine)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        engine = create_engine(*args, **kwargs)
        engine.update_execution_options(compiled_cache=_STATEMENTS)
        return engine
    return wrapper


class SharedPolicies(fixtures.Fixture):
    """Parse a policy file of one content once."""

    def _setUp(self) -> None:  # noqa: N802
        self.useFixture(fixtures.MonkeyPatch(
            'oslo_policy.policy.parse_file_contents',
            lambda data: dict(_parsed_policies(data))))


_parsed_policies = functools.cache(policy.parse_file_contents)


@functools.cache
def paste_without_v2(path: pathlib.Path) -> str:
    """Nova's own configuration of its API, without the version 2.0.

    Loading an API takes as long as booting a server, and nobody asks here
    for the second one.
    """
    return ''.join(
        line for line in path.read_text().splitlines(keepends=True)
        if not line.startswith('/v2/'))
