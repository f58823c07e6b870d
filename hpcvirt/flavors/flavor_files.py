# SPDX-License-Identifier: Apache-2.0

"""Read flavors from the documents of several programs.

These are plans of hpcvirt, the output of ``openstack flavor show`` and
``openstack flavor list --long`` (``-f json`` or ``-f yaml``), and responses of
the Compute API. Each describes one flavor or a list of flavors, with different
names of the keys.
"""

import re
from collections.abc import Mapping
from typing import Any
from typing import NoReturn

from hpcvirt import exception
from hpcvirt.model import flavor as flavor_model

#: Names of plans and clients -> names of the Compute API.
_OTHER_NAMES = {'ram_mib': 'ram', 'disk_gib': 'disk',
                'properties': 'extra_specs'}

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
    values = {_OTHER_NAMES.get(key, key): value for key, value in (
        (str(key).lower(), value) for key, value in item.items())}
    if 'name' not in values:
        raise exception.InvalidInput(where, 'name is missing')
    name = values['name']
    if not isinstance(name, str) or not name:
        raise exception.InvalidInput(where, 'has no name')
    here = f'{where} ({name[:64]})'
    return flavor_model.Flavor(
        name, _number(values, 'vcpus', here, 1),
        _number(values, 'ram', here, 0),
        _number({'disk': 0, **values}, 'disk', here, 0), _specs(values, here))


def _number(values: Mapping[str, Any], key: str, where: str,
            least: int) -> int:
    if key not in values:
        raise exception.InvalidInput(where, f'{key} is missing')
    value = values[key]
    if isinstance(value, str) and re.fullmatch('[0-9]{1,12}', value):
        value = int(value)
    if (not isinstance(value, int) or isinstance(value, bool)
            or not least <= value <= _LARGEST):
        raise exception.InvalidInput(
            where, f'{key} must be a whole number from {least}, not '
            f'{str(value)[:40]!r}')
    return value


def _specs(values: Mapping[str, Any], where: str) -> dict[str, str]:
    """Read extra specs; their values may be without quotes in the file."""
    if 'extra_specs' not in values:
        raise exception.InvalidInput(
            where, 'extra_specs (or properties) are missing; "openstack '
            'flavor list" prints them with --long')
    value = values['extra_specs']
    if value is None:
        return {}
    if isinstance(value, str):
        return _properties(value, where)
    if not isinstance(value, Mapping) or not all(
            isinstance(key, str) and isinstance(text, str | int | float)
            for key, text in value.items()):
        _refuse_specs(where)
    return {key: str(text).lower() if isinstance(text, bool) else str(text)
            for key, text in value.items()}


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
