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

"""Read the values of an inspection that are used, and leave the others."""

import dataclasses
from typing import Any
from typing import TypeVar

from hpcvirt import exception
from hpcvirt import serialization

T = TypeVar('T')


def collected(plain: dict[str, Any], where: str) -> dict[str, Any]:
    """Return what the collectors found.

    Ironic keeps it in ``plugin_data``; ironic-inspector and the agent have it
    beside the inventory.
    """
    return mapping(plain, 'plugin_data', where) or plain


def mapping(plain: object, key: str, where: str) -> dict[str, Any]:
    """Return the mapping of a key; empty if it is missing or null.

    :raises InvalidInput: if one of the two is no mapping
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
    return serialization.from_plain(
        kind, {field.name: plain[field.name.rstrip('_')]
               for field in dataclasses.fields(kind)  # type: ignore[arg-type]
               if field.name.rstrip('_') in plain}, where)
