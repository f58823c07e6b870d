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

"""Frozen dataclasses as plain data (dicts, lists, scalars), and back.

This is the one decoder for everything that is read as JSON or YAML: stored
results, benchmark definitions, studies, topology snapshots, profiles.

Reading is strict: exactly the fields of the class, of the right types, every
number finite, nothing converted. A field with a default may be missing. An
error names the file, the path of the value within it and what the value must
be: ``r.json: runs[0].samples[3].pair: must be a whole number, not '0'``.

No library does this with less code: msgspec ignores unknown fields of
dataclasses, cattrs turns ``'3'`` into 3, and pydantic is strict only for JSON
text, accepts NaN and takes an integer too large for a float as infinity.
"""

import collections
import collections.abc
import dataclasses
import enum
import functools
import json
import math
import re
import types
import typing
from collections.abc import Callable
from collections.abc import Mapping
from typing import Annotated
from typing import Any
from typing import NoReturn

from hpcvirt import exception

T = typing.TypeVar('T')

#: Metadata of an ``Annotated`` type: takes the plain value and returns what
#: the field holds, or raises the ValueError that :func:`expected` makes.
Check = Callable[[Any], Any]

#: Turns a plain value into that of a field, or raises a fault.
Reader = Callable[[object], Any]

_FORMS = {bool: 'true or false', int: 'a whole number',
          float: 'a finite number', str: 'text'}


class _Fault(Exception):
    """Something is wrong with the value at a path."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason

    def inside(self, step: str) -> '_Fault':
        """Return the fault as seen from one step further out."""
        return _Fault(step + self.path, self.reason)


def to_plain(value: Any) -> Any:
    """Turn a record into dicts, lists, strings and numbers."""
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name))
                for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, frozenset):
        return sorted(to_plain(item) for item in value)
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    return value


def from_plain(kind: type[T], plain: object, where: str) -> T:
    """Turn dicts, lists, strings and numbers into a record.

    :param kind: a frozen dataclass, or a tuple or mapping of such; its fields
        are scalars, enums, tuples, frozensets, mappings with text as keys,
        further dataclasses, any of these ``| None``, or ``Annotated`` with a
        :data:`Check`
    :param where: the file, for the error
    :raises InvalidInput: naming the path of the value at fault
    """
    try:
        # Types are hashable, which the type checker does not see.
        value: T = _reader(typing.cast(Any, kind))(plain)
    except _Fault as fault:
        path = fault.path.removeprefix('.')
        raise exception.InvalidInput(
            f'{where}: {path}' if path else where, fault.reason) from None
    return value


def json_value(data: str | bytes, where: str) -> Any:
    """Parse JSON as RFC 8259 defines it: no NaN, no key twice, only UTF-8.

    :raises InvalidInput: for anything else
    """

    def refuse(constant: str) -> NoReturn:
        raise exception.InvalidInput(where, f'{constant} is not JSON')

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        mapping = dict(pairs)
        if len(mapping) != len(pairs):
            key, _ = collections.Counter(
                key for key, _ in pairs).most_common(1)[0]
            raise exception.InvalidInput(
                where, f'the key {key[:40]!r} occurs twice in one object')
        return mapping

    try:
        text = data if isinstance(data, str) else data.decode('utf-8-sig')
        return json.loads(text, parse_constant=refuse,
                          object_pairs_hook=unique)
    except UnicodeDecodeError as exc:
        raise exception.InvalidInput(
            where, f'is not UTF-8 (byte {exc.start})') from exc
    except RecursionError as exc:
        raise exception.InvalidInput(where, 'is nested too deeply') from exc
    except ValueError as exc:
        raise exception.InvalidInput(
            where, f'is not valid JSON ({exc})') from exc


def require_version(plain: object, version: int, where: str) -> None:
    """Check ``schema_version`` before anything else of a document.

    :raises InvalidInput: if it is missing or another one
    """
    if not isinstance(plain, dict) or 'schema_version' not in plain:
        raise exception.InvalidInput(
            where, "must be a mapping with the key 'schema_version'")
    found = plain['schema_version']
    if type(found) is not int or found != version:
        raise exception.InvalidInput(
            f'{where}: schema_version', f'is {_shown(found)}; this version '
            f'of hpcvirt reads {version}')


def expected(form: str, value: object) -> ValueError:
    """Make the error of a value that is not of the expected form."""
    return ValueError(f'must be {form}, not {_shown(value)}')


def whole(low: int, high: int) -> Check:
    """Accept a whole number within bounds."""
    def check(value: object) -> int:
        # A "true" of YAML or JSON is an int to Python.
        if type(value) is not int or not low <= value <= high:
            raise expected(f'a whole number from {low} to {high}', value)
        return value
    return check


def number(low: float, high: float) -> Check:
    """Accept a number within bounds."""
    def check(value: object) -> float:
        # A "true" of YAML or JSON is an int to Python, and every comparison
        # with a NaN is false.
        if (not isinstance(value, int | float) or isinstance(value, bool)
                or not low <= value <= high):
            raise expected(f'a number from {low:g} to {high:g}', value)
        return float(value)
    return check


def text(pattern: str, example: str) -> Check:
    """Accept text that matches a regular expression as a whole."""
    def check(value: object) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise expected(f'text such as {example}', value)
        return value
    return check


@functools.cache
def _reader(kind: Any) -> Reader:
    """Make the function that reads a kind of value.

    A hundred thousand instances are read with it, so that what a type hint
    says is looked up once. A path is put together only for an error.
    """
    origin = typing.get_origin(kind) or kind
    if origin is Annotated:
        return _checked(kind.__metadata__[0])
    if origin in (types.UnionType, typing.Union):
        inner = _reader(next(arm for arm in typing.get_args(kind)
                             if arm is not types.NoneType))
        return lambda plain: None if plain is None else inner(plain)
    if origin is tuple:
        items = _items(kind)
        return lambda plain: tuple(items(plain))
    if origin is frozenset:
        return _set(kind)
    if origin is collections.abc.Mapping:
        return _mapping(typing.get_args(kind)[1])
    if dataclasses.is_dataclass(kind):
        return _record(kind)
    if issubclass(kind, enum.Enum):
        return functools.partial(_read_choice, kind)
    return functools.partial(_read_scalar, kind)


def _checked(check: Check) -> Reader:
    def read(plain: object) -> Any:
        try:
            return check(plain)
        except ValueError as exc:
            raise _Fault('', str(exc)) from None
    return read


def _items(kind: Any) -> Callable[[object], list[Any]]:
    inner = _reader(typing.get_args(kind)[0])

    def read(plain: object) -> list[Any]:
        if not isinstance(plain, list):
            raise _unexpected('a list', plain)
        found = []
        try:
            for item in plain:
                found.append(inner(item))  # noqa: PERF401 - counts for errors
        except _Fault as fault:
            raise fault.inside(f'[{len(found)}]') from None
        return found
    return read


def _set(kind: Any) -> Reader:
    items = _items(kind)

    def read(plain: object) -> frozenset[Any]:
        found = items(plain)
        single = frozenset(found)
        if len(single) != len(found):
            twice, _ = collections.Counter(found).most_common(1)[0]
            raise _Fault('', f'has {_shown(twice)} twice')
        return single
    return read


def _mapping(kind: Any) -> Reader:
    inner = _reader(kind)

    def read(plain: object) -> dict[str, Any]:
        entries = _entries(plain)
        found = {}
        try:
            for key, item in entries.items():
                found[key] = inner(item)
        except _Fault as fault:
            raise fault.inside(f'[{key[:64]!r}]') from None
        return found
    return read


def _record(kind: Any) -> Reader:
    readers = {key: _reader(inner) for key, inner
               in typing.get_type_hints(kind, include_extras=True).items()}
    required = [
        field.name for field in dataclasses.fields(kind)
        if field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING]

    def read(plain: object) -> Any:
        entries = _entries(plain)
        for key in entries:
            if key not in readers:
                raise _Fault('', f'unknown key {key[:64]!r}; known: '
                             f'{", ".join(readers)}')
        for key in required:
            if key not in entries:
                raise _Fault('', f'the key {key!r} is missing')
        found = {}
        try:
            for key, item in entries.items():
                found[key] = readers[key](item)
        except _Fault as fault:
            raise fault.inside(f'.{key}') from None
        return kind(**found)
    return read


def _entries(plain: object) -> dict[str, Any]:
    if not isinstance(plain, dict):
        raise _unexpected('a mapping of keys to values', plain)
    for key in plain:
        if not isinstance(key, str):
            raise _Fault('', f'unknown key {_shown(key)}, which is not text')
    return plain


def _read_choice(kind: type[enum.Enum], plain: object) -> Any:
    choices = {item.value: item for item in kind}
    if not isinstance(plain, str) or plain not in choices:
        raise _unexpected(f'one of {", ".join(choices)}', plain)
    return choices[plain]


def _read_scalar(kind: Any, plain: object) -> Any:
    if kind is float and type(plain) is int and abs(plain) <= 2 ** 1000:
        return float(plain)
    if type(plain) is not kind or (isinstance(plain, float)
                                   and not math.isfinite(plain)):
        raise _unexpected(_FORMS[kind], plain)
    return plain


def _unexpected(form: str, value: object) -> _Fault:
    return _Fault('', str(expected(form, value)))


def _shown(value: object) -> str:
    """Quote a value in an error, whatever its size."""
    if isinstance(value, list | tuple):
        return 'a list'
    if isinstance(value, Mapping):
        return 'a mapping'
    if isinstance(value, int) and abs(value) > 2 ** 64:
        return 'a number of more than 64 bits'
    if value is None or isinstance(value, bool):
        return {None: 'null', True: 'true', False: 'false'}[value]
    return repr(value[:64]) if isinstance(value, str) else repr(value)[:64]
