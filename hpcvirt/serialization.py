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

"""Frozen dataclasses as plain data (dicts, lists, scalars) and back.

Reading is strict: exactly the fields of the class, of the right types, every
number finite. A field with a default may be missing. What is wrong is named
by its path: ``runs[0].samples[3].pair``.
"""

import collections.abc
import dataclasses
import enum
import functools
import math
import types
import typing
from collections.abc import Mapping
from typing import Any

from hpcvirt import exception

T = typing.TypeVar('T')


def to_plain(value: Any) -> Any:
    """Make dicts, lists, strings and numbers of a record."""
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name))
                for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    return value


def from_plain(kind: type[T], plain: object, where: str) -> T:
    """Make a record of dicts, lists, strings and numbers.

    :param kind: a frozen dataclass of scalars, enums, tuples, mappings of
        strings, optional fields and further such dataclasses
    :param where: what to name in the error
    :raises InvalidInput: naming the field at fault
    """
    made: T = _read(kind, plain, where)
    return made


def _read(kind: Any, plain: object, where: str) -> Any:
    origin = typing.get_origin(kind)
    if origin is types.UnionType:
        inner = next(arm for arm in typing.get_args(kind)
                     if arm is not types.NoneType)
        return None if plain is None else _read(inner, plain, where)
    if origin is tuple:
        return _read_list(typing.get_args(kind)[0], plain, where)
    if origin is collections.abc.Mapping:
        return _read_mapping(typing.get_args(kind)[1], plain, where)
    if dataclasses.is_dataclass(kind):
        return _read_record(kind, plain, where)
    if issubclass(kind, enum.Enum):
        return _read_choice(kind, plain, where)
    return _read_scalar(kind, plain, where)


def _read_list(kind: Any, plain: object, where: str) -> tuple[Any, ...]:
    if not isinstance(plain, list):
        raise exception.InvalidInput(where, 'not a list')
    return tuple(_read(kind, item, f'{where}[{number}]')
                 for number, item in enumerate(plain))


def _read_mapping(kind: Any, plain: object, where: str) -> dict[str, Any]:
    if not isinstance(plain, dict):
        raise exception.InvalidInput(where, 'not an object')
    for key in plain:
        if not isinstance(key, str):
            raise exception.InvalidInput(where, f'{key!r} is not a name')
    return {key: _read(kind, item, f'{where}.{key}')
            for key, item in plain.items()}


def _read_record(kind: Any, plain: object, where: str) -> Any:
    if not isinstance(plain, dict):
        raise exception.InvalidInput(where, 'not an object')
    kinds = _field_types(kind)
    unknown = sorted(set(plain) - set(kinds), key=str)
    if unknown:
        raise exception.InvalidInput(
            where, f'unknown field {unknown[0]!r}')
    missing = sorted(_needed(kind) - set(plain))
    if missing:
        raise exception.InvalidInput(where, f'no field {missing[0]!r}')
    return kind(**{name: _read(kinds[name], item, f'{where}.{name}')
                   for name, item in plain.items()})


def _read_choice(kind: Any, plain: object, where: str) -> Any:
    try:
        return kind(plain)
    except ValueError as exc:
        known = ', '.join(str(item.value) for item in kind)
        raise exception.InvalidInput(
            where, f'{plain!r} is none of {known}') from exc


def _read_scalar(kind: Any, plain: object, where: str) -> Any:
    if kind is float and type(plain) is int:
        plain = _as_float(plain, where)
    if type(plain) is not kind:
        raise exception.InvalidInput(
            where, f'{plain!r} is not of type {kind.__name__}')
    if isinstance(plain, float) and not math.isfinite(plain):
        raise exception.InvalidInput(where, 'not a finite number')
    return plain


def _as_float(plain: int, where: str) -> float:
    try:
        return float(plain)
    except OverflowError as exc:
        raise exception.InvalidInput(where, 'not a finite number') from exc


@functools.cache
def _field_types(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


@functools.cache
def _needed(kind: Any) -> frozenset[str]:
    return frozenset(
        field.name for field in dataclasses.fields(kind)
        if field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING)
