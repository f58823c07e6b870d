# SPDX-License-Identifier: Apache-2.0

"""Frozen dataclasses as plain data (dicts, lists, scalars), and back.

This is the one decoder for everything that is read as JSON or YAML: stored
results, benchmark definitions, studies, topology snapshots, profiles.

Reading is strict: exactly the fields of the class, of the right types, every
number finite, nothing converted. A field with a default may be missing. An
error names the file, the path of the value within it and what the value must
be: ``r.json: runs[0].samples[3].pair: must be a whole number, not '0'``.

No library does this with less code: msgspec ignores unknown fields, cattrs
turns ``'3'`` into 3, and pydantic is strict only for JSON text and takes NaN.
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
from collections.abc import Sequence
from collections.abc import Set
from typing import Annotated
from typing import Any
from typing import NoReturn

from hpcvirt import exception
from hpcvirt import words

T = typing.TypeVar('T')

#: Metadata of an ``Annotated`` type: takes the plain value and returns what
#: the field holds, or raises the ValueError that :func:`make_error` makes.
Check = Callable[[Any], Any]

#: Turns a plain value into that of a field, or raises a fault.
Reader = Callable[[object], Any]

_FORMS = {bool: 'true or false', int: 'a whole number',
          float: 'a finite number', str: 'text'}

#: Half of a character, or its escape in JSON.
_SURROGATE = re.compile(r'\\u[dD][89a-fA-F]|[\ud800-\udfff]')


class _Fault(Exception):
    """Something is wrong with the value at a path."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason

    def inside(self, step: str) -> '_Fault':
        """Return the fault as seen from one step further out."""
        return _Fault(step + self.path, self.reason)


def dump(value: Any) -> Any:
    """Turn a record into dicts, lists, strings and numbers."""
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value):
        return {field.name: dump(getattr(value, field.name))
                for field in dataclasses.fields(value)}
    if hasattr(value, '_asdict'):
        return dump(value._asdict())
    if isinstance(value, Mapping):
        return {str(key): dump(item) for key, item in value.items()}
    if isinstance(value, Set):
        return sorted(dump(item) for item in value)
    if isinstance(value, tuple | list):
        return [dump(item) for item in value]
    return value


def load(kind: type[T], plain: object, where: str) -> T:
    """Turn dicts, lists, strings and numbers into a record.

    :param kind: a frozen dataclass, or a tuple or mapping of such; its fields
        are scalars, enums, tuples, frozensets, mappings, further dataclasses,
        named tuples, any of these ``| None``, ``Any``, or ``Annotated`` with a
        :data:`Check`; in a document all keys of mappings are text
    :param where: the file, for the error
    :raises InvalidInput: naming the path of the value at fault
    """
    try:
        value: T = _reader(typing.cast(Any, kind))(plain)
    except _Fault as fault:
        path = fault.path.removeprefix('.')
        raise exception.InvalidInput(
            f'{where}: {path}' if path else where, fault.reason) from None
    return value


def load_document(form: type[T], plain: object, kind: str, where: str) -> T:
    """Read a document of a kind, in version 1 of its form.

    :param form: as for :func:`load`
    :raises InvalidInput: naming the path of the value at fault
    """
    require_kind(plain, (kind,), where)
    require_version(plain, 1, where)
    return load(form, plain, where)


def json_value(data: str | bytes, where: str) -> Any:
    """Parse JSON as RFC 8259 defines it: no NaN, no key twice, only UTF-8.

    All text in the value can be encoded: an unpaired surrogate, which JSON can
    escape, is no character.

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
        plain = json.loads(text, parse_constant=refuse,
                           object_pairs_hook=unique)
        if _SURROGATE.search(text):
            json.dumps(plain, ensure_ascii=False).encode()
        return plain
    except UnicodeEncodeError as exc:
        raise exception.InvalidInput(
            where, 'has text that is no Unicode (an unpaired surrogate)'
            ) from exc
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


def require_kind(plain: object, kinds: Sequence[str], where: str) -> str:
    """Return the ``kind`` of a document, before anything else is read.

    :raises InvalidInput: if it is missing, or none of these
    """
    known = ' or '.join(filter(None, (', '.join(kinds[:-1]), kinds[-1])))
    if not isinstance(plain, dict) or 'kind' not in plain:
        raise exception.InvalidInput(
            where, f"must be a mapping with the key 'kind', which is {known}")
    found = plain['kind']
    for kind in kinds:
        if found == kind:
            return kind
    raise exception.InvalidInput(
        f'{where}: kind', f'must be {known}, not {_shown(found)}'
        + words.nearest(str(found), kinds))


def make_error(form: str, value: object) -> ValueError:
    """Make the error of a value that is not of the expected form."""
    return ValueError(f'must be {form}, not {_shown(value)}')


def whole(low: int, high: int) -> Check:
    """Accept a whole number within bounds."""
    def check(value: object) -> int:
        if type(value) is not int or not low <= value <= high:
            raise make_error(f'a whole number from {low} to {high}', value)
        return value
    return check


def number(low: float, high: float) -> Check:
    """Accept a number within bounds."""
    def check(value: object) -> float:
        # Every comparison with a NaN is false.
        if (not isinstance(value, int | float) or isinstance(value, bool)
                or not low <= value <= high):
            raise make_error(f'a number from {low:g} to {high:g}', value)
        return float(value)
    return check


def text(pattern: str, example: str) -> Check:
    """Accept text that matches a regular expression as a whole."""
    def check(value: object) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise make_error(f'text such as {example}', value)
        return value
    return check


def refuse(value: object) -> Any:
    """Accept nothing: the field is not one of files."""
    raise ValueError(f'{str(value)[:40]!r} must not be in a file')


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
    if origin is Any:
        return lambda plain: plain
    if origin in (tuple, Sequence):
        items = _items(kind)
        return lambda plain: tuple(items(plain))
    if origin in (frozenset, Set):
        return _set(kind)
    if origin is collections.abc.Mapping:
        return _mapping(*typing.get_args(kind))
    if dataclasses.is_dataclass(kind) or hasattr(kind, '_field_defaults'):
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


def _mapping(key_kind: Any, kind: Any) -> Reader:
    inner = _reader(kind)
    make_key = int if key_kind is int else _reader(key_kind)

    def read(plain: object) -> dict[Any, Any]:
        entries = _entries(plain)
        found: dict[Any, Any] = {}
        try:
            for key, item in entries.items():
                if key_kind is int and not re.fullmatch('[0-9]{1,9}', key):
                    raise _Fault('', 'must have a whole number as its key')
                found[make_key(key)] = inner(item)
        except _Fault as fault:
            raise fault.inside(f'[{key[:64]!r}]') from None
        return found
    return read


def _record(kind: Any) -> Reader:
    hints = typing.get_type_hints(kind, include_extras=True)
    if hasattr(kind, '_fields'):
        names = list(kind._fields)
        optional = set(kind._field_defaults)
    else:
        names = [field.name for field in dataclasses.fields(kind)]
        optional = {
            field.name for field in dataclasses.fields(kind)
            if dataclasses.MISSING is not field.default
            or dataclasses.MISSING is not field.default_factory}
    readers = {name: _reader(hints[name]) for name in names}
    known = [name for name in names
             if refuse not in getattr(hints[name], '__metadata__', ())]

    def read(plain: object) -> Any:
        entries = _entries(plain)
        for key in entries:
            if key not in readers:
                raise _Fault('', f'unknown key {key[:64]!r}; known: '
                             f'{", ".join(known)}'
                             + words.nearest(key, known))
        for name in names:
            if name not in entries and name not in optional:
                raise _Fault('', f'the key {name!r} is missing')
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
            raise _Fault('', f'the key {_shown(key)} must be in quotes')
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
    return _Fault('', str(make_error(form, value)))


def _shown(value: object) -> str:
    """Quote a value in an error, whatever its size."""
    if isinstance(value, list | tuple):
        return 'a list'
    if isinstance(value, Mapping):
        return 'a mapping'
    if isinstance(value, int) and abs(value) > 2 ** 64:
        return 'a number of more than 64 bits'
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return repr(value[:64]) if isinstance(value, str) else repr(value)[:64]
