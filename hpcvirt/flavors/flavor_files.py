# SPDX-License-Identifier: Apache-2.0

"""Read flavors from the documents of several programs.

These are plans of hpcvirt, the output of ``openstack flavor show`` and
``openstack flavor list --long`` (``-f json`` or ``-f yaml``), and responses of
the Compute API. Each is a flavor or has a list of flavors; the keys have
different names.
"""

import re
from collections.abc import Mapping
from typing import Any
from typing import NoReturn

from hpcvirt import exception
from hpcvirt.model import flavor as flavor_model

_NAMES = ('name',)
_VCPUS = ('vcpus',)
_RAM = ('ram', 'ram_mib')
_DISK = ('disk', 'disk_gib')
_SPECS = ('extra_specs', 'properties')

#: ``hw:cpu_policy='dedicated', hw:numa_nodes='2'``, the form of older
#: clients.
_PROPERTY = re.compile(r"\s*([^=,\s]+)='((?:[^'\\]|\\.)*)'\s*(?:,|$)")

_LARGEST = 2 ** 31 - 1


def flavors(content: object, where: str) -> list[flavor_model.Flavor]:
    """Return the flavors of a document.

    :param content: the parsed JSON or YAML file
    :param where: the file, for errors
    :raises InvalidInput: if there is no flavor, or one is malformed
    """
    items = content
    if isinstance(content, Mapping):
        if isinstance(content.get('flavor'), Mapping):
            items = [content['flavor']]
        else:
            items = content.get('flavors', [content])
    if not isinstance(items, list) or not items:
        raise exception.InvalidInput(
            where, 'has no flavors; it must be a plan, or the output of '
            '"openstack flavor show" or "flavor list --long" with -f json')
    return [_flavor(item, f'{where}: flavor {number}')
            for number, item in enumerate(items, 1)]


def _flavor(item: object, where: str) -> flavor_model.Flavor:
    if not isinstance(item, Mapping):
        raise exception.InvalidInput(where, 'is not a mapping')
    values = {str(key).lower(): value for key, value in item.items()}
    name = _value(values, _NAMES, where)
    if not isinstance(name, str) or not name:
        raise exception.InvalidInput(where, 'has no name')
    here = f'{where} ({name[:64]})'
    return flavor_model.Flavor(
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
            where, f'{keys[0]} must be a whole number from {least}, not '
            f'{str(value)[:40]!r}')
    return value


def _specs(values: Mapping[str, Any], where: str) -> dict[str, str]:
    """Read extra specs; their values may be without quotes in the file."""
    if not _has(values, _SPECS):
        raise exception.InvalidInput(
            where, 'extra_specs (or properties) are missing; "openstack '
            'flavor list" prints them with --long')
    value = _value(values, _SPECS, where)
    if value is None:
        return {}
    if isinstance(value, str):
        return _properties(value, where)
    if not isinstance(value, Mapping):
        _refuse_specs(where)
    return {_key(key, where): _text(text, where)
            for key, text in value.items()}


def _key(key: object, where: str) -> str:
    if not isinstance(key, str):
        _refuse_specs(where)
    return key


def _text(value: object, where: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    return _refuse_specs(where)


def _properties(text: str, where: str) -> dict[str, str]:
    found = {}
    position = 0
    while position < len(text):
        match = _PROPERTY.match(text, position)
        if match is None:
            _refuse_specs(where)
        found[match[1]] = match[2].replace("\\'", "'")
        position = match.end()
    return found


def _refuse_specs(where: str) -> NoReturn:
    raise exception.InvalidInput(
        where, 'the extra specs must be a mapping of text to text')
