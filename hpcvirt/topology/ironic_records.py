# SPDX-License-Identifier: Apache-2.0

"""Read the values of an inspection that are used, and ignore the others."""

import dataclasses
from typing import Any
from typing import TypeVar

from hpcvirt import exception
from hpcvirt import serialization

T = TypeVar('T')


def mapping(plain: object, key: str, where: str) -> dict[str, Any]:
    """Return the mapping of a key; empty if it is missing or null.

    :raises InvalidInput: if the document or the value is not a mapping
    """
    if not isinstance(plain, dict):
        raise exception.InvalidInput(where, 'must be a mapping')
    inside = plain.get(key)
    if inside is None:
        return {}
    if not isinstance(inside, dict):
        raise exception.InvalidInput(f'{where}: {key}', 'must be a mapping')
    return inside


def read(kind: type[T], plain: dict[str, Any], key: str,
         where: str) -> tuple[T, ...]:
    """Read a list of records; empty if it is missing or null."""
    values = plain.get(key)
    if values is None:
        return ()
    if not isinstance(values, list):
        raise exception.InvalidInput(f'{where}: {key}', 'must be a list')
    return tuple(one(kind, value, f'{where}: {key}[{index}]')
                 for index, value in enumerate(values))


def one(kind: type[T], plain: Any, where: str) -> T:
    """Read a record; a trailing _ of a field is not part of its key."""
    if not isinstance(plain, dict):
        raise exception.InvalidInput(where, 'must be a mapping')
    return serialization.load(
        kind, {field.name: plain[field.name.rstrip('_')]
               for field in dataclasses.fields(kind)  # type: ignore[arg-type]
               if field.name.rstrip('_') in plain}, where)
