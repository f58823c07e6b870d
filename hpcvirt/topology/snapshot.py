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

"""The project's own form of a topology: JSON with a schema version.

``dumps`` writes it and ``read`` reads it; nothing is lost on the way::

    {"schema_version": 1, "name": "node1",
     "cells": [{"id": 0, "package": 0, "cpus": [0, 1, 2, 3],
                "siblings": [[0, 2], [1, 3]], "llc": [[0, 1, 2, 3]],
                "memory_mib": 4096, "pages": {"4": 524288, "2048": 1024}}],
     "distances": [[10]],
     "devices": [{"address": "0000:41:00.0", "vendor_id": "8086",
                  "product_id": "1572", "cell": 0, "total_vfs": 64,
                  "driver": "i40e"}]}

``pages`` maps the page size in KiB to the number of pages. A file written by
hand may leave out ``llc`` (one cache for the cell), ``distances``,
``devices``, and of a device ``total_vfs`` and ``driver``.
"""

import json
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from hpcvirt import exception
from hpcvirt.model import host as host_model
from hpcvirt.topology import assemble
from hpcvirt.topology import document

SCHEMA_VERSION = 1

_TOP = ('schema_version', 'name', 'cells', 'distances', 'devices')
_CELL = ('id', 'package', 'cpus', 'siblings', 'llc', 'memory_mib', 'pages')
_DEVICE = ('address', 'vendor_id', 'product_id', 'cell', 'total_vfs',
           'driver')


def to_json(host: host_model.Host) -> dict[str, Any]:
    """Make the plain values of a snapshot: dicts, lists, numbers, strings."""
    return {
        'schema_version': SCHEMA_VERSION,
        'name': host.name,
        'cells': [_cell_to_json(cell) for cell in host.cells],
        'distances': [list(row) for row in host.distances],
        'devices': [{key: getattr(device, key) for key in _DEVICE}
                    for device in host.devices],
    }


def _cell_to_json(cell: host_model.Cell) -> dict[str, Any]:
    return {
        'id': cell.id,
        'package': cell.package,
        'cpus': sorted(cell.cpus),
        'siblings': [sorted(core) for core in cell.siblings],
        'llc': [sorted(cache) for cache in cell.llc],
        'memory_mib': cell.memory_mib,
        'pages': {str(pool.size_kib): pool.total for pool in cell.pages},
    }


def dumps(host: host_model.Host) -> str:
    """Write a snapshot as JSON text that a person can read and compare."""
    plain = to_json(host)
    cells = [_join((f'   {json.dumps(key)}: {json.dumps(value)}'
                    for key, value in cell.items()), '  {', '  }')
             for cell in plain['cells']]
    blocks = {
        'cells': _join(cells, '[', ' ]'),
        'distances': _lines(plain['distances']),
        'devices': _lines(plain['devices']),
    }
    return _join((f' {json.dumps(key)}: {blocks.get(key) or json.dumps(value)}'
                  for key, value in plain.items()), '{', '}\n')


def _lines(values: Iterable[Any]) -> str:
    lines = [f'  {json.dumps(value)}' for value in values]
    return _join(lines, '[', ' ]') if lines else '[]'


def _join(items: Iterable[str], opening: str, closing: str) -> str:
    return f'{opening}\n' + ',\n'.join(items) + f'\n{closing}'


def read(data: bytes, where: str) -> host_model.Host:
    """Read a snapshot.

    :param data: the file's content
    :param where: the file's name, for errors
    :raises InvalidInput: if it is not such a snapshot, is of another schema
        version, or describes a machine that cannot be
    """
    top = _mapping(document.json_value(data, where), where)
    version = _number(top.get('schema_version'), f'{where}: schema_version')
    if version != SCHEMA_VERSION:
        raise exception.InvalidInput(
            where, f'has schema_version {version}; this hpcvirt reads '
            f'{SCHEMA_VERSION}')
    _check_keys(top, where, _TOP, optional=('distances', 'devices'))
    siblings: dict[int, frozenset[int]] = {}
    caches: dict[int, frozenset[int]] = {}
    cells = []
    for index, value in enumerate(_list(top['cells'], f'{where}: cells')):
        cells.append(_cell(value, f'{where}: cells[{index}]', siblings,
                           caches))
    here = f'{where}: devices'
    devices = [_device(value, f'{here}[{index}]') for index, value
               in enumerate(_list(top.get('devices', []), here))]
    distances = _distances(top.get('distances', []), f'{where}: distances',
                           [cell.id for cell in cells])
    return assemble.host(where, _string(top['name'], f'{where}: name'),
                         cells, siblings, caches, distances, devices)


def _cell(value: Any, where: str, siblings: dict[int, frozenset[int]],
          caches: dict[int, frozenset[int]]) -> assemble.CellFacts:
    cell = _mapping(value, where)
    _check_keys(cell, where, _CELL, optional=('llc',))
    number = _number(cell['id'], f'{where}.id')
    where = f'{where} (cell {number})'
    cpus = _numbers(cell['cpus'], f'{where}.cpus')
    _add_groups(cell['siblings'], f'{where}.siblings', cpus, siblings)
    _add_groups(cell.get('llc', [sorted(cpus)] if cpus else []),
                f'{where}.llc', cpus, caches)
    package = cell['package']
    return assemble.CellFacts(
        id=number,
        package=(None if package is None
                 else _number(package, f'{where}.package')),
        cpus=cpus,
        memory_kib=_number(cell['memory_mib'], f'{where}.memory_mib') * 1024,
        pages=_pages(cell['pages'], f'{where}.pages'))


def _add_groups(value: Any, where: str, cpus: frozenset[int],
                groups: dict[int, frozenset[int]]) -> None:
    """Add the groups of one cell, which must hold each of its CPUs once."""
    seen: set[int] = set()
    for index, item in enumerate(_list(value, where)):
        here = f'{where}[{index}]'
        group = _numbers(item, here)
        if not group:
            raise exception.InvalidInput(here, 'is empty')
        for cpu in sorted(group):
            if cpu not in cpus:
                raise exception.InvalidInput(
                    here, f'CPU {cpu} is not in this cell')
            if cpu in seen:
                raise exception.InvalidInput(
                    here, f'CPU {cpu} is already in another one')
            seen.add(cpu)
            groups[cpu] = group
    if seen != cpus:
        raise exception.InvalidInput(
            where, f'CPU {min(cpus - seen)} is in none of them')


def _pages(value: Any, where: str) -> tuple[host_model.PagePool, ...]:
    pools = []
    for key, count in _mapping(value, where).items():
        size = document.whole(key, where, 'a page size', 2 ** 40)
        if key != str(size):
            raise exception.InvalidInput(
                where, f'{key[:40]!r} is not a page size in KiB')
        pools.append(host_model.PagePool(
            size, _number(count, f'{where}[{key}]')))
    return tuple(pools)


def _distances(value: Any, where: str, cells: list[int],
               ) -> dict[tuple[int, int], int]:
    rows = _list(value, where)
    if rows and len(rows) != len(cells):
        raise exception.InvalidInput(
            where, f'has {len(rows)} rows for {len(cells)} cells')
    matrix = {}
    for index, (row, value) in enumerate(zip(cells, rows, strict=False)):
        here = f'{where}[{index}]'
        distances = _list(value, here)
        if len(distances) != len(cells):
            raise exception.InvalidInput(
                here, f'has {len(distances)} columns for {len(cells)} cells')
        for column, distance in zip(cells, distances, strict=True):
            matrix[row, column] = _number(distance, here)
    return matrix


def _device(value: Any, where: str) -> host_model.Device:
    device = _mapping(value, where)
    _check_keys(device, where, _DEVICE, optional=('total_vfs', 'driver'))
    cell = device['cell']
    driver = device.get('driver')
    return host_model.Device(
        address=_string(device['address'], f'{where}.address').lower(),
        vendor_id=_string(device['vendor_id'], f'{where}.vendor_id').lower(),
        product_id=_string(device['product_id'],
                           f'{where}.product_id').lower(),
        cell=None if cell is None else _number(cell, f'{where}.cell'),
        total_vfs=_number(device.get('total_vfs', 0), f'{where}.total_vfs'),
        driver=None if driver is None else _string(driver, f'{where}.driver'))


def _check_keys(mapping: Mapping[str, Any], where: str,
                known: Iterable[str], optional: Iterable[str]) -> None:
    for key in known:
        if key not in mapping and key not in optional:
            raise exception.InvalidInput(where, f'{key} is missing')
    for key in mapping:
        if key not in known:
            raise exception.InvalidInput(
                where, f'the key {key[:40]!r} is not known')


def _mapping(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(value, where, 'an object')
    return value


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise _wrong(value, where, 'a list')
    return value


def _string(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise _wrong(value, where, 'a string')
    return value


def _number(value: Any, where: str) -> int:
    # bool is an int in Python, but "cpus": [true] is not a CPU number.
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(value, where, 'a whole number')
    if not 0 <= value <= 2 ** 53:
        raise exception.InvalidInput(
            where, f'{str(value)[:24]} is not within 0 to {2 ** 53}')
    return value


def _numbers(value: Any, where: str) -> frozenset[int]:
    items = _list(value, where)
    numbers = frozenset(_number(item, where) for item in items)
    if len(numbers) < len(items):
        raise exception.InvalidInput(where, 'has a number twice')
    return numbers


def _wrong(value: Any, where: str, wanted: str) -> exception.InvalidInput:
    if value is None:
        return exception.InvalidInput(where, f'is missing or null, not '
                                      f'{wanted}')
    return exception.InvalidInput(where, f'is not {wanted}')
