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

"""Read the instances of a fleet, and where they are, from a JSON document.

An example with one instance of two guest cells::

    {"instances": [
      {"id": "web-1", "host": "node1", "cells": [0, 1],
       "cpus": [4, 5, 6, 7, 20, 21, 22, 23], "pages_kib": 2048,
       "flavor": {"name": "hpc.8", "vcpus": 8, "ram_mib": 16384,
                  "extra_specs": {"hw:numa_nodes": "2",
                                  "hw:cpu_policy": "dedicated",
                                  "hw:mem_page_size": "2048"}},
       "devices": ["0000:41:02.1"], "movable": false,
       "live": false, "hosts": ["node2", "node3"]}],
     "server_groups": [
      {"policy": "anti-affinity", "members": ["web-1"],
       "max_server_per_host": 1}]}

``cells`` are host cells, in the order of the guest cells; ``cpus`` are the
host CPUs that belong to the instance alone; ``live`` is false if it can be
migrated only cold; ``hosts`` are those to which it may move. ``cells``,
``cpus``, ``pages_kib``, ``devices``, ``movable``, ``live``, ``hosts`` (all
hosts then), ``server_groups`` and ``max_server_per_host`` may be left out.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Annotated

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.flavors import catalogue
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import state
from hpcvirt.model import cpuset

SCHEMA_VERSION = 1

_Number = Annotated[int, serialization.whole(0, 2 ** 31 - 1)]
_CPU = Annotated[int, serialization.whole(0, cpuset.MAX_CPU)]
_Name = Annotated[str, serialization.text(r'(?s).{1,255}', 'node1')]


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Flavor:
    name: _Name
    vcpus: _Number
    ram_mib: _Number
    extra_specs: Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class _Plain:
    """A flavor as it is in the document; equal ones have the same text."""

    text: str
    value: object = dataclasses.field(compare=False)


@functools.lru_cache(maxsize=4096)
def _read_flavor(plain: _Plain) -> _Flavor:
    return serialization.from_plain(_Flavor, plain.value, '')


def _known_flavor(plain: object) -> _Flavor:
    """Read a flavor, of which a hundred thousand instances have a few."""
    try:
        return _read_flavor(_Plain(repr(plain), plain))
    except exception.InvalidInput as exc:
        raise ValueError(str(exc).removeprefix(': ')) from exc


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Instance:
    id: _Name
    host: _Name
    flavor: Annotated[_Flavor, _known_flavor]
    cells: tuple[_Number, ...] = ()
    cpus: frozenset[_CPU] = frozenset()
    pages_kib: Annotated[int, serialization.whole(1, 2 ** 40)] | None = None
    devices: tuple[str, ...] = ()
    movable: bool = True
    live: bool = True
    hosts: frozenset[_Name] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Group:
    policy: state.Policy
    members: frozenset[_Name]
    max_server_per_host: Annotated[int, serialization.whole(
        1, 2 ** 31 - 1)] = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Document:
    schema_version: int = SCHEMA_VERSION
    instances: tuple[_Instance, ...]
    server_groups: tuple[_Group, ...] = ()


def read(data: bytes, where: str) -> tuple[state.Instance, ...]:
    """Read the instances.

    :param data: the content of the file
    :param where: its name, for errors
    :raises InvalidInput: naming the place of what is wrong
    """
    plain = serialization.json_value(data, where)
    if isinstance(plain, dict) and 'schema_version' in plain:
        serialization.require_version(plain, SCHEMA_VERSION, where)
    document = serialization.from_plain(_Document, plain, where)
    compiled: dict[int, tuple[catalogue.Flavor, guests.Guest]] = {}
    ids: set[str] = set()
    found = []
    for number, item in enumerate(document.instances):
        here = f'{where}: instances[{number}]'
        if item.id in ids:
            raise exception.InvalidInput(
                f'{here}.id', f'{item.id!r} is the id of an instance before '
                'it, too')
        ids.add(item.id)
        found.append(_instance(item, here, compiled))
    groups = _groups(document.server_groups, ids, where)
    return tuple(dataclasses.replace(item, group=groups[item.id])
                 if item.id in groups else item for item in found)


def _groups(documents: tuple[_Group, ...], ids: set[str],
            where: str) -> dict[str, state.ServerGroup]:
    groups: dict[str, state.ServerGroup] = {}
    for number, document in enumerate(documents):
        here = f'{where}: server_groups[{number}].members'
        group = state.ServerGroup(document.policy, document.members,
                                  document.max_server_per_host)
        for member in sorted(document.members):
            if member not in ids:
                raise exception.InvalidInput(
                    here, f'{member!r} is not the id of an instance')
            if member in groups:
                raise exception.InvalidInput(
                    here, f'{member!r} belongs to a server group before it, '
                    'too')
            groups[member] = group
    return groups


def _instance(item: _Instance, where: str,
              compiled: dict[int, tuple[catalogue.Flavor, guests.Guest]],
              ) -> state.Instance:
    key = id(item.flavor)
    if key not in compiled:
        flavor = catalogue.Flavor(
            item.flavor.name, item.flavor.vcpus, item.flavor.ram_mib, 0,
            item.flavor.extra_specs)
        try:
            compiled[key] = flavor, guests.of_flavor(flavor)
        except exception.InvalidInput as exc:
            raise exception.InvalidInput(where, str(exc)) from exc
    flavor, guest = compiled[key]
    if len(item.cells) != len(guest.demand.cells):
        raise exception.InvalidInput(
            f'{where}.cells', f'has {len(item.cells)} host cells for the '
            f'{len(guest.demand.cells)} guest cells of the flavor '
            f'{flavor.name}')
    if len(set(item.cells)) != len(item.cells):
        raise exception.InvalidInput(
            f'{where}.cells', 'has a host cell twice; each guest cell is on '
            'a host cell of its own')
    return state.Instance(
        item.id, where, item.host, flavor, guest, item.cells, item.cpus,
        item.pages_kib, item.devices,
        stays=None if item.movable else 'is not movable by the usage file',
        only_cold=None if item.live else 'is not live-migrated by the usage '
        'file', hosts=item.hosts)
