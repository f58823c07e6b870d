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

"""Understand flavors as several programs write them.

hpcvirt's own plan, ``openstack flavor show`` and ``openstack flavor list
--long`` (``-f json`` or ``-f yaml``), and the Compute API's documents: each
is a flavor, or has a list of flavors, under one spelling of the keys or
another.
"""

import re
from collections.abc import Mapping
from typing import Any
from typing import NoReturn

from hpcvirt import exception
from hpcvirt.flavors import catalogue

_NAMES = ('name',)
_VCPUS = ('vcpus',)
_RAM = ('ram', 'ram_mib')
_DISK = ('disk', 'disk_gib')
_SPECS = ('extra_specs', 'properties')

#: ``hw:cpu_policy='dedicated', hw:numa_nodes='2'``, as older clients write.
_PROPERTY = re.compile(r"\s*([^=,\s]+)='((?:[^'\\]|\\.)*)'\s*(?:,|$)")

_LARGEST = 2 ** 31 - 1


def flavors(content: object, where: str) -> list[catalogue.Flavor]:
    """Find the flavors of a document.

    :param content: the values of a JSON or YAML file
    :param where: the file, for errors
    :raises InvalidInput: if there is none, or one cannot be understood
    """
    items = content
    if isinstance(content, Mapping):
        if isinstance(content.get('flavor'), Mapping):
            items = [content['flavor']]
        else:
            items = content.get('flavors', [content])
    if not isinstance(items, list) or not items:
        raise exception.InvalidInput(
            where, 'has no flavors: a plan, or the output of "openstack '
            'flavor show" or "flavor list --long" with -f json, is needed')
    return [_flavor(item, f'{where}: flavor {number}')
            for number, item in enumerate(items, 1)]


def _flavor(item: object, where: str) -> catalogue.Flavor:
    if not isinstance(item, Mapping):
        raise exception.InvalidInput(where, 'is not a mapping')
    values = {str(key).lower(): value for key, value in item.items()}
    name = _value(values, _NAMES, where)
    if not isinstance(name, str) or not name:
        raise exception.InvalidInput(where, 'has no name')
    here = f'{where} ({name[:64]})'
    return catalogue.Flavor(
        name, _number(values, _VCPUS, here, 1), _number(values, _RAM, here, 0),
        _number(values, _DISK, here, 0) if _has(values, _DISK) else 0,
        _specs(values, here))


def _has(values: Mapping[str, Any], keys: tuple[str, ...]) -> bool:
    return any(key in values for key in keys)


def _value(values: Mapping[str, Any], keys: tuple[str, ...],
           where: str) -> Any:
    for key in keys:
        if key in values:
            return values[key]
    raise exception.InvalidInput(where, f'{keys[0]} is missing')


def _number(values: Mapping[str, Any], keys: tuple[str, ...], where: str,
            least: int) -> int:
    value = _value(values, keys, where)
    if isinstance(value, str) and re.fullmatch('[0-9]{1,12}', value):
        value = int(value)
    if (not isinstance(value, int) or isinstance(value, bool)
            or not least <= value <= _LARGEST):
        raise exception.InvalidInput(
            where, f'{keys[0]} is {str(value)[:40]!r}, not a whole number '
            f'from {least}')
    return value


def _specs(values: Mapping[str, Any], where: str) -> dict[str, str]:
    """The extra specs; YAML and hand-written JSON may leave off quotes."""
    if not _has(values, _SPECS):
        raise exception.InvalidInput(
            where, 'extra_specs (or properties) are missing; "flavor list" '
            'shows them with --long')
    value = _value(values, _SPECS, where)
    if value is None:
        return {}
    if isinstance(value, str):
        return _properties(value, where)
    if not isinstance(value, Mapping):
        _wrong(where)
    return {_key(key, where): _text(text, where)
            for key, text in value.items()}


def _key(key: object, where: str) -> str:
    if not isinstance(key, str):
        _wrong(where)
    return key


def _text(value: object, where: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    return _wrong(where)


def _properties(text: str, where: str) -> dict[str, str]:
    found = {}
    position = 0
    while position < len(text):
        match = _PROPERTY.match(text, position)
        if match is None:
            _wrong(where)
        found[match[1]] = match[2].replace("\\'", "'")
        position = match.end()
    return found


def _wrong(where: str) -> NoReturn:
    raise exception.InvalidInput(
        where, 'the extra specs are not a mapping of text to text')
