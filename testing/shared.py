# SPDX-License-Identifier: Apache-2.0

"""Share constant data between all embedded Novas of a process.

Each test starts its own Nova, so that tests do not influence each other. They
share only data that never changes: compiled SQL statements, parsed policy
files, and the validators of what the API is sent.
"""

import functools
import pathlib
from typing import Any

import fixtures
import jsonschema
from nova.api.validation import validators
from oslo_db.sqlalchemy import engines
from oslo_policy import policy
from sqlalchemy.dialects.sqlite import pysqlite

_STATEMENTS: dict[Any, Any] = {}
_VALIDATORS: dict[Any, Any] = {}
#: The schemas of Placement that were checked, by their ids.
_SCHEMAS: dict[int, Any] = {}


class SharedStatements(fixtures.Fixture):
    """Compile each SQL statement once, not once for each database.

    SQLAlchemy caches compiled statements by the dialect, and each engine has
    its own dialect. This fixture makes all dialects of SQLite equal.
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
    """Parse policy files with the same content once."""

    def _setUp(self) -> None:  # noqa: N802
        self.useFixture(fixtures.MonkeyPatch(
            'oslo_policy.policy.parse_file_contents',
            lambda data: dict(_parsed_policies(data))))


class SharedValidators(fixtures.Fixture):
    """Make the validator of each schema of an API once.

    Nova makes a class for each request, and Placement checks the schema.
    """

    def _setUp(self) -> None:  # noqa: N802
        self.useFixture(fixtures.MonkeyPatch(
            'nova.api.validation.validators._SchemaValidator',
            _shared_validator))
        self.useFixture(fixtures.MonkeyPatch(
            'jsonschema.validate', _validate))


def _shared_validator(schema: object, relaxed: bool = False,
                      is_body: bool = True) -> Any:
    # A validator keeps its schema, so that no other one gets the same id.
    key = (id(schema), relaxed, is_body)
    if key not in _VALIDATORS:
        _VALIDATORS[key] = _make_validator(schema, relaxed, is_body)
    return _VALIDATORS[key]


def _validate(instance: object, schema: Any, **more: Any) -> None:
    validator = jsonschema.validators.validator_for(schema)
    # It is kept, so that no other one gets the same id.
    if id(schema) not in _SCHEMAS:
        validator.check_schema(schema)
        _SCHEMAS[id(schema)] = schema
    error = jsonschema.exceptions.best_match(
        validator(schema, **more).iter_errors(instance))
    if error is not None:
        raise error


_make_validator = validators._SchemaValidator
_parsed_policies = functools.cache(policy.parse_file_contents)


@functools.cache
def paste_without_v2(path: pathlib.Path) -> str:
    """Return Nova's configuration of the API without version 2.0.

    Loading a version takes as long as booting a server, and no test uses
    version 2.0.
    """
    return ''.join(
        line for line in path.read_text().splitlines(keepends=True)
        if not line.startswith('/v2/'))
