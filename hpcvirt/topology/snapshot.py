# SPDX-License-Identifier: Apache-2.0

"""Read and write snapshots, hpcvirt's own JSON form of a topology.

``dumps`` writes a Host, and ``read`` reads the same Host back::

    {"schema_version": 1, "name": "node1",
     "cells": [{"id": 0, "socket": 0, "cpus": [0, 1, 2, 3],
                "siblings": [[0, 2], [1, 3]], "llc": [[0, 1, 2, 3]],
                "memory_mib": 4096, "pages": {"4": 524288, "2048": 1024}}],
     "distances": [[10]],
     "devices": [{"address": "0000:41:00.0", "vendor_id": "8086",
                  "product_id": "1572", "cell": 0, "total_vfs": 64,
                  "driver": "i40e"}]}

``pages`` maps the page size in KiB to the number of pages. A file written by
hand may leave out ``llc`` (one cache for the cell), ``distances``,
``devices``, and of a device ``total_vfs``, ``driver`` and ``vf_product_id``
(the product id of its VFs). ``unknown`` lists the facts that the source of the
host does not report (:class:`hpcvirt.model.host.Unknown`); it is left out if
it is empty. ``processor`` is left out if the name of the processors is
unknown, ``address_bits`` if the width of their physical addresses is, and
``wiring`` (:class:`hpcvirt.model.wiring.Wiring`) if the wiring is. In it,
whatever is null or empty is left out.
"""

import dataclasses
import json
import re
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Annotated
from typing import Any

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.model import host as host_model
from hpcvirt.model import wiring as wiring_model
from hpcvirt.topology import assemble

SCHEMA_VERSION = 1

#: At most a TiB.
_PAGE_SIZE = re.compile('0|[1-9][0-9]{0,9}')

_Number = Annotated[int, serialization.whole(0, 2 ** 53)]
_CPUs = frozenset[_Number]
_Groups = tuple[_CPUs, ...]

#: Stands for a missing key ``llc``. No file can contain it, because an empty
#: group is refused.
_ONE_CACHE: _Groups = (frozenset(),)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Cell:
    id: _Number
    socket: _Number | None
    cpus: _CPUs
    siblings: _Groups
    llc: _Groups = _ONE_CACHE
    memory_mib: _Number
    pages: Mapping[str, _Number]
    other_sockets: frozenset[int] = frozenset()


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Snapshot:
    schema_version: int
    name: str
    cells: tuple[_Cell, ...]
    distances: tuple[tuple[_Number, ...], ...] = ()
    devices: tuple[host_model.Device, ...] = ()
    unknown: frozenset[host_model.Unknown] = frozenset()
    processor: str | None = None
    wiring: wiring_model.Wiring | None = None
    address_bits: _Number | None = None


def make_json(host: host_model.Host) -> dict[str, Any]:
    """Return a snapshot as dicts, lists, numbers and strings."""
    plain = {'schema_version': SCHEMA_VERSION, **serialization.dump(host)}
    if host.wiring is not None:
        plain['wiring'] = {
            key: [_without_empty(item) for item in items]
            for key, items in plain['wiring'].items() if items is not None}
    for key in ('unknown', 'processor', 'wiring', 'address_bits'):
        if not plain[key]:
            del plain[key]
    for cell in plain['cells']:
        cell['pages'] = {str(pool['size_kib']): pool['total']
                         for pool in cell['pages']}
        if not cell['other_sockets']:
            del cell['other_sockets']
    for device in plain['devices']:
        if device['vf_product_id'] is None:
            del device['vf_product_id']
    return plain


def dumps(host: host_model.Host) -> str:
    """Write a snapshot as JSON with one value on each line."""
    plain = make_json(host)
    cells = [_join((f'   {json.dumps(key)}: {json.dumps(value)}'
                    for key, value in cell.items()), '  {', '  }')
             for cell in plain['cells']]
    blocks = {
        'cells': _join(cells, '[', ' ]'),
        'distances': _lines(plain['distances']),
        'devices': _lines(plain['devices']),
    }
    if 'wiring' in plain:
        blocks['wiring'] = _join(
            (f'  {json.dumps(key)}: ' + _lines(items).replace('\n', '\n ')
             for key, items in plain['wiring'].items()), '{', ' }')
    return _join((f' {json.dumps(key)}: {blocks.get(key) or json.dumps(value)}'
                  for key, value in plain.items()), '{', '}\n')


def _without_empty(item: Any) -> Any:
    """Leave out what is unknown or missing, but not an empty list of ACS."""
    if not isinstance(item, dict):
        return item
    return {key: _without_empty(value) for key, value in item.items()
            if value is not None and value is not False
            and (value != [] or key == 'acs')}


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
        version, or describes a machine that cannot exist
    """
    return read_json(serialization.json_value(data, where), where)


def read_json(plain: object, where: str) -> host_model.Host:
    """Read a snapshot from parsed JSON; see :func:`read`."""
    serialization.require_version(plain, SCHEMA_VERSION, where)
    snapshot = serialization.load(_Snapshot, plain, where)
    siblings: dict[int, frozenset[int]] = {}
    caches: dict[int, frozenset[int]] = {}
    cells = [_cell(cell, f'{where}: cells[{index}] (cell {cell.id})',
                   siblings, caches)
             for index, cell in enumerate(snapshot.cells)]
    distances = _distances(snapshot.distances, f'{where}: distances',
                           [cell.id for cell in cells])
    return assemble.host(where, snapshot.name, cells, siblings, caches,
                         distances,
                         [_lower_case(device) for device in snapshot.devices],
                         snapshot.unknown, snapshot.processor,
                         snapshot.wiring, snapshot.address_bits)


def _cell(cell: _Cell, where: str, siblings: dict[int, frozenset[int]],
          caches: dict[int, frozenset[int]]) -> assemble.CellFacts:
    _add_groups(cell.siblings, f'{where}.siblings', cell.cpus, siblings)
    llc = cell.llc
    if llc == _ONE_CACHE:
        llc = (cell.cpus,) if cell.cpus else ()
    _add_groups(llc, f'{where}.llc', cell.cpus, caches)
    return assemble.CellFacts(
        id=cell.id, cpus=cell.cpus,
        sockets=cell.other_sockets if cell.socket is None
        else cell.other_sockets | {cell.socket},
        memory_kib=cell.memory_mib * 1024,
        pages=_pages(cell.pages, f'{where}.pages'))


def _add_groups(new: _Groups, where: str, cpus: frozenset[int],
                groups: dict[int, frozenset[int]]) -> None:
    """Add the groups of one cell, which must have each of its CPUs once."""
    seen: set[int] = set()
    for index, group in enumerate(new):
        here = f'{where}[{index}]'
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


def _pages(pages: Mapping[str, int], where: str,
           ) -> tuple[host_model.PagePool, ...]:
    pools = []
    for key, count in pages.items():
        if not _PAGE_SIZE.fullmatch(key):
            raise exception.InvalidInput(
                where, f'{key[:40]!r} is not a page size in KiB')
        pools.append(host_model.PagePool(int(key), count))
    return tuple(pools)


def _distances(rows: tuple[tuple[int, ...], ...], where: str,
               cells: list[int]) -> dict[tuple[int, int], int]:
    if rows and len(rows) != len(cells):
        raise exception.InvalidInput(
            where, f'has {len(rows)} rows for {len(cells)} cells')
    matrix = {}
    for index, (row, distances) in enumerate(zip(cells, rows, strict=False)):
        if len(distances) != len(cells):
            raise exception.InvalidInput(
                f'{where}[{index}]',
                f'has {len(distances)} columns for {len(cells)} cells')
        for column, distance in zip(cells, distances, strict=True):
            matrix[row, column] = distance
    return matrix


def _lower_case(device: host_model.Device) -> host_model.Device:
    return dataclasses.replace(
        device, address=device.address.lower(),
        vendor_id=device.vendor_id.lower(),
        product_id=device.product_id.lower(),
        vf_product_id=device.vf_product_id and device.vf_product_id.lower())
