# SPDX-License-Identifier: Apache-2.0

"""The instances and server groups of a fleet document."""

import dataclasses
import functools
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Annotated
from typing import Any

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt import words
from hpcvirt.fit import allocation
from hpcvirt.fit import demand as demands
from hpcvirt.fit import guest as guests
from hpcvirt.flavors import compiled_flavor
from hpcvirt.fleet import classes
from hpcvirt.fleet import state
from hpcvirt.model import cpuset
from hpcvirt.model import flavor as flavor_model

_MAX_INT = 2 ** 31 - 1
_Number = Annotated[int, serialization.whole(0, _MAX_INT)]
_CPU = Annotated[int, serialization.whole(0, cpuset.MAX_CPU)]
_Name = Annotated[str, serialization.text(r'(?s).{1,255}', 'node1')]


@dataclasses.dataclass(frozen=True, slots=True)
class _PlainValue:
    """A value of the file; equal values have the same text."""

    text: str
    value: object = dataclasses.field(compare=False)


@functools.lru_cache(maxsize=4096)
def _load_flavor(plain: _PlainValue) -> flavor_model.Flavor:
    flavor = serialization.load(flavor_model.Flavor, plain.value, '')
    for key, least in (('vcpus', 1), ('ram_mib', 0), ('disk_gib', 0)):
        try:
            serialization.whole(least, _MAX_INT)(getattr(flavor, key))
        except ValueError as exc:
            raise exception.InvalidInput(key, str(exc)) from exc
    return flavor


def read_flavor(plain: object) -> flavor_model.Flavor:
    """Read a flavor; equal flavors of many instances are read once."""
    try:
        return _load_flavor(_PlainValue(repr(plain), plain))
    except exception.InvalidInput as exc:
        raise ValueError(str(exc).removeprefix(': ')) from exc


def _read_own_flavor(plain: object) -> str | flavor_model.Flavor:
    return plain if isinstance(plain, str) else read_flavor(plain)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _InstanceCell:
    id: _Number
    pages: Mapping[str, _Number] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class InstanceEntry:
    """An instance of the file."""

    id: _Name
    host: _Name
    flavor: Annotated[str | flavor_model.Flavor, _read_own_flavor]
    cells: tuple[_InstanceCell, ...] = ()
    cpus: frozenset[_CPU] = frozenset()
    devices: tuple[str, ...] = ()
    stays: str | None = None
    only_cold: str | None = None
    hosts: frozenset[_Name] | None = None
    project: str | None = None
    follows_placement: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServerGroupEntry:
    """A server group of the file."""

    policy: state.Policy
    members: frozenset[_Name]
    max_server_per_host: Annotated[int, serialization.whole(
        1, _MAX_INT)] = 1


def read_groups(entries: Iterable[ServerGroupEntry], ids: Mapping[str, object],
                where: str) -> dict[str, state.ServerGroup]:
    """Return the server groups, by the ids of their instances."""
    groups: dict[str, state.ServerGroup] = {}
    for number, entry in enumerate(entries):
        here = f'{where}: server_groups[{number}].members'
        group = state.ServerGroup(entry.policy, entry.members,
                                  entry.max_server_per_host)
        for member in sorted(entry.members):
            if member not in ids:
                raise exception.InvalidInput(
                    here, f'{member!r} is not the id of an instance')
            if member in groups:
                raise exception.InvalidInput(
                    here, f'{member!r} also belongs to a server group before '
                    'it')
            groups[member] = group
    return groups


def read_instance(item: InstanceEntry, where: str,
                  flavors: Mapping[str, flavor_model.Flavor],
                  compiled: dict[int, guests.Guest]) -> state.Instance:
    """Read an instance.

    :param flavors: name -> a flavor of the document
    :param compiled: the id of a flavor object -> the compiled flavor; new ones
        are added
    :raises InvalidInput: if the instance contradicts its flavor
    """
    flavor = item.flavor
    if isinstance(flavor, str):
        if flavor not in flavors:
            raise exception.InvalidInput(
                f'{where}.flavor', f'{flavor[:64]!r} is not one of flavors')
        flavor = flavors[flavor]
    if id(flavor) not in compiled:
        try:
            compiled[id(flavor)] = compiled_flavor.make(flavor)
        except exception.InvalidInput as exc:
            raise exception.InvalidInput(where, str(exc)) from exc
    guest = compiled[id(flavor)]
    cells = guest.demand.cells
    if len(item.cells) != len(cells):
        raise exception.InvalidInput(
            f'{where}.cells', f'has {len(item.cells)} host cells for the '
            f'{len(cells)} guest cells of the flavor {flavor.name}')
    numbers = tuple(cell.id for cell in item.cells)
    if len(set(numbers)) != len(numbers):
        raise exception.InvalidInput(
            f'{where}.cells', 'has a host cell twice; each guest cell is on '
            'a host cell of its own')
    return state.Instance(
        item.id, where, item.host, guest, allocation.Holding(
            demands.CellAssignment(numbers, tuple(
                _read_pages(own, demand.memory_mib,
                            f'{where}.cells[{number}].pages')
                for number, (own, demand)
                in enumerate(zip(item.cells, cells, strict=True)))),
            item.cpus),
        item.devices, item.stays, item.hosts, only_cold=item.only_cold,
        project=item.project,
        follows_placement=item.follows_placement)


def _read_pages(cell: _InstanceCell, memory_mib: int,
                where: str) -> int | None:
    """Return the page size of a guest cell; None if the file has none."""
    if not cell.pages:
        return None
    (size, count), *others = cell.pages.items()
    size_kib = words.read_size(size)
    if others or not size_kib:
        raise exception.InvalidInput(
            where, 'must have one page size, in KiB or with a unit, such as '
            '{"2048": 512} or {"2M": 512}')
    needed = count_pages(memory_mib, size_kib)
    if count != needed:
        raise exception.InvalidInput(
            where, f'has {count} pages of {words.format_size(size_kib)}, but '
            f'the {memory_mib} MiB of the guest cell need {needed}')
    return size_kib


def count_pages(memory_mib: int, size_kib: int) -> int:
    """Count the pages of a guest cell."""
    return -(-memory_mib * 1024 // size_kib)


def dump_flavor(flavor: flavor_model.Flavor) -> dict[str, Any]:
    """Write a flavor as dicts, numbers and strings."""
    plain: dict[str, Any] = serialization.dump(flavor)
    if flavor.projects is None:
        del plain['projects']
    return plain


def dump_instance(item: state.Instance,
                  known: Mapping[str, flavor_model.Flavor],
                  peers: Mapping[str, frozenset[str]]) -> dict[str, Any]:
    """Write an instance as dicts, lists, numbers and strings.

    :param known: name -> a flavor of the document
    :param peers: host -> all hosts of its class
    """
    flavor, hosts = item.flavor, item.hosts
    held = item.holding
    cells = zip(item.cells, held.placement.pages_kib, item.guest.demand.cells,
                strict=True)
    return classes.drop_defaults({
        'id': item.id, 'host': item.host,
        'flavor': (flavor.name if known.get(flavor.name) == flavor
                   else dump_flavor(flavor)),
        'cells': [
            {'id': number, **({'pages': {str(size): count_pages(
                demand.memory_mib, size)}} if size else {})}
            for number, size, demand in cells],
        'cpus': sorted(held.cpus), 'devices': list(item.devices),
        'stays': item.stays, 'only_cold': item.only_cold,
        'project': item.project,
        'follows_placement': item.follows_placement,
        'hosts': (None if hosts is None or hosts == peers.get(item.host)
                  else sorted(hosts))})
