# SPDX-License-Identifier: Apache-2.0

"""The fleet document: the hosts of a fleet and their instances.

An operator writes it in YAML or JSON, and ``hpcvirt fleet dump`` writes that
of a cloud::

    schema_version: 1
    classes:
      gpu:
        hosts: [gpu1=gpu.json*12, 'rack7/*.json']
        profile: gpu.yaml
        name_prefix: hpc-gpu
        traits: [CUSTOM_HPC_GPU]
        isolated: true
        aggregate: gpu
      plain:
        hosts: [rack8/, rack9.tar.gz]
    instances:
      - id: web-1
        host: gpu1-3
        flavor: {name: hpc.8c1n.1g, vcpus: 8, ram_mib: 16384, disk_gib: 20,
                 extra_specs: {'hw:numa_nodes': '2',
                               'hw:cpu_policy': dedicated,
                               'hw:mem_page_size': large}}
        cells: [{id: 0, pages: {'1048576': 8}}, {id: 1, pages: {'2048': 4096}}]
        cpus: 4-7,20-23
        devices: ['0000:41:02.1']
    server_groups:
      - {policy: anti-affinity, members: [web-1], max_server_per_host: 1}

A host is a text ``[NAME=]PATH[*COUNT]``, relative to the file, or a mapping
with its ``name`` and its ``topology`` (a snapshot as "hpcvirt host show"
writes it). ``profile`` is the name of a profile, a file, or the content of a
profile. ``flavors`` are the flavors of the cloud, and ``flavor_files`` are
files with further flavors. Without both, the profiles plan the flavors.

``cells`` of an instance are host cells in the order of the guest cells, each
with its pages, by their size in KiB or with a unit (``2M``, ``1GiB``).
``cpus`` are the dedicated host CPUs of the instance, as text or as a list.
``stays`` says why it must not move, and ``only_cold`` why it cannot be
live-migrated. ``follows_placement: true`` says that a cold migration gives it
the PCI devices that Placement allocates (``[hpcvirt]moves_follow_placement``).
``hosts`` are the hosts to which it may move, by default those of its class.
The flavor of an instance may be the name of a flavor of the document or, if it
has none, of a planned one.

In a dump each host has in ``reported`` what Nova and Placement report while
the instances are on it, or in ``broken`` why its record cannot be used. Both
need no profile. If a class names traits, the traits of all hosts are known.
The names of projects and instances can be replaced in a dump.
"""

import dataclasses
import functools
import itertools
import json
import re
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from typing import Annotated
from typing import Any

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt import words
from hpcvirt.fit import allocation
from hpcvirt.fit import demand as demands
from hpcvirt.fit import guest as guests
from hpcvirt.fit import placement
from hpcvirt.flavors import compiled_flavor
from hpcvirt.fleet import classes as fleet_classes
from hpcvirt.fleet import state
from hpcvirt.model import cpuset
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import host as host_model

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


def _read_cpus(plain: object) -> frozenset[int]:
    """Read a list of numbers, or the notation of the kernel."""
    try:
        if isinstance(plain, str):
            return cpuset.parse(plain)
        return serialization.load(frozenset[_CPU], plain, '')
    except exception.InvalidInput as exc:
        raise ValueError(str(exc).removeprefix(': ')) from None


@dataclasses.dataclass(frozen=True, kw_only=True)
class _InstanceCell:
    id: _Number
    pages: Mapping[str, _Number] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class InstanceEntry:
    """An instance of the file.

    :ivar id: the name of the instance
    :ivar host: the host that it is on
    :ivar flavor: the flavor, or the name of one of ``flavors`` and
        ``flavor_files`` or, if the document has neither, of a planned flavor
    :ivar cells: the host cells in the order of the guest cells, such as
        ``[{id: 0}, {id: 1}]``. ``pages`` of a cell are needed only if they are
        not of the size that the flavor requests, or else the smallest of the
        host
    :ivar cpus: the host CPUs that it has for itself, those of isolated
        emulator threads included: text such as ``2-5,42-45``, or a list of
        numbers
    :ivar devices: the PCI addresses of its devices; a vGPU has that of its
        card. Without the key, it has the devices of its flavor that the claim
        would choose on its cells
    :ivar stays: why it must stay where it is
    :ivar only_cold: why it can be migrated only cold
    :ivar hosts: the hosts to which it may move, by default those of its class
    :ivar project: the project to which it belongs
    :ivar follows_placement: whether a cold migration gives it the devices that
        Placement allocates: ``true`` if every nova-compute has patch 0006 of
        ``contrib/nova``
    """

    id: _Name
    host: _Name
    flavor: Annotated[str | flavor_model.Flavor, _read_own_flavor]
    cells: tuple[_InstanceCell, ...] = ()
    cpus: Annotated[frozenset[int], _read_cpus] = frozenset()
    devices: tuple[str, ...] = ()
    stays: str | None = None
    only_cold: str | None = None
    hosts: frozenset[_Name] | None = None
    project: str | None = None
    follows_placement: bool = False


@dataclasses.dataclass(frozen=True)
class NamedInstance:
    """An instance whose flavor is named, but not in the file itself.

    The flavor is that of a file of ``flavor_files``, or a planned one.

    :ivar where: the place of the instance, for errors
    """

    where: str
    entry: InstanceEntry
    group: state.ServerGroup | None = None


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
                f'{where}.flavor', f'{flavor[:64]!r} is neither a flavor of '
                'the document nor, if it has none, a planned one'
                + words.nearest(flavor, flavors))
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
            f'{where}.cells', 'has '
            + words.count_noun(len(item.cells), 'host cell') + ' for the '
            + words.count_noun(len(cells), 'guest cell')
            + f' of the flavor {flavor.name}; [{{id: 0}}, {{id: 1}}] are two')
    numbers = tuple(cell.id for cell in item.cells)
    if len(set(numbers)) != len(numbers):
        raise exception.InvalidInput(
            f'{where}.cells', 'has a host cell twice; each guest cell is on '
            'a host cell of its own')
    return state.Instance(
        item.id, where, item.host, guest, allocation.Holding(
            demands.CellAssignment(numbers, tuple(
                _read_pages(own, demand, f'{where}.cells[{number}].pages')
                for number, (own, demand)
                in enumerate(zip(item.cells, cells, strict=True)))),
            item.cpus),
        item.devices, item.stays, item.hosts, only_cold=item.only_cold,
        project=item.project,
        follows_placement=item.follows_placement)


def _read_pages(cell: _InstanceCell, demand: demands.CellDemand,
                where: str) -> int | None:
    """Return the page size of a guest cell; None for the smallest.

    If the file has none, it is the size that the flavor requests.
    """
    if not cell.pages:
        requested = demand.page_kib
        return requested if requested and requested > 0 else None
    (size, count), *others = cell.pages.items()
    size_kib = words.read_size(size)
    if others or not size_kib:
        raise exception.InvalidInput(
            where, 'must have one page size, in KiB or with a unit, such as '
            '{"2048": 512} or {"2M": 512}')
    needed = count_pages(demand.memory_mib, size_kib)
    if count != needed:
        raise exception.InvalidInput(
            where, f'has {count} pages of {words.format_size(size_kib)}, but '
            f'the {demand.memory_mib} MiB of the guest cell need {needed}')
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
    return fleet_classes.drop_defaults({
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


SCHEMA_VERSION = 1

_Flavor = Annotated[flavor_model.Flavor, read_flavor]


@dataclasses.dataclass(frozen=True)
class FleetDocument:
    """The fleet that a file describes.

    :ivar where: the file, for errors
    :ivar is_file: whether a file describes it; otherwise, the hosts of a
        command line are its only class
    :ivar named: instances whose flavors are not known yet, see
        :func:`find_flavors`
    """

    where: str
    classes: Mapping[str, fleet_classes.FleetClass]
    flavors: tuple[flavor_model.Flavor, ...] = ()
    flavor_files: tuple[str, ...] = ()
    instances: tuple[state.Instance, ...] = ()
    named: tuple[NamedInstance, ...] = ()
    is_file: bool = True

    def locate(self, name: str) -> str:
        """Return the place of a class, for errors."""
        return f'{self.where}: classes[{name[:64]!r}]'

    def find_class(self, name: str, where: str) -> fleet_classes.FleetClass:
        """Return the class that another document names.

        :param where: the place of the name, for errors
        :raises InvalidInput: if there is no such class
        """
        own = self.classes.get(name)
        if own is None:
            raise exception.InvalidInput(
                where, f'{name[:64]!r} is not in {self.where}'
                + words.suggest(name, self.classes))
        return own

    def list_topologies(self) -> tuple[host_model.Host, ...]:
        """List the topologies of all hosts.

        :raises InvalidInput: if one cannot be used
        """
        return tuple(itertools.chain.from_iterable(
            each.list_topologies() for each in self.classes.values()))

    def check_names(self) -> None:
        """Check that hosts have different names, and instances a host.

        :raises InvalidInput: naming the class or the instance, and the host
        """
        owners: dict[str, str] = {}
        for name, own in self.classes.items():
            for host in own.names:
                if host in owners:
                    also = '' if owners[host] == name else (
                        f' (the other is in {owners[host]})')
                    raise exception.InvalidInput(
                        self.locate(name),
                        f'{host[:64]!r} is the name of two hosts{also}; '
                        'NAME=PATH gives a host another name')
                owners[host] = name
        if not owners:
            raise exception.InvalidInput(self.where, 'has no hosts')
        if len(owners) > fleet_classes.MAX_HOSTS:
            raise exception.InvalidInput(
                self.where, f'has more than {fleet_classes.MAX_HOSTS} hosts')
        on_hosts = [(each.where, each.id, each.host)
                    for each in self.instances]
        on_hosts += [(each.where, each.entry.id, each.entry.host)
                     for each in self.named]
        for where, instance, host in on_hosts:
            if host not in owners:
                raise exception.InvalidInput(
                    f'{where}.host', f'{instance[:64]!r} is on '
                    f'{host[:64]!r}, which is not a host of the document'
                    + words.nearest(host, owners))


@dataclasses.dataclass(frozen=True, kw_only=True)
class _FleetFile:
    schema_version: int
    classes: Mapping[str, fleet_classes.FleetClass]
    flavors: tuple[_Flavor, ...] = ()
    flavor_files: tuple[str, ...] = ()
    instances: tuple[InstanceEntry, ...] = ()
    server_groups: tuple[ServerGroupEntry, ...] = ()


def read(plain: object, where: str) -> FleetDocument:
    """Read a fleet document.

    :param plain: the parsed YAML or JSON
    :param where: the file, for errors
    :raises InvalidInput: naming the place of the fault
    """
    serialization.require_version(plain, SCHEMA_VERSION, where)
    file = serialization.load(_FleetFile, plain, where)
    flavors = {flavor.name: flavor for flavor in file.flavors}
    if len(flavors) != len(file.flavors):
        raise exception.InvalidInput(f'{where}: flavors',
                                     'two flavors have the same name')
    compiled: dict[int, guests.Guest] = {}
    places: dict[str, str] = {}
    for number, item in enumerate(file.instances):
        here = f'{where}: instances[{number}]'
        if item.id in places:
            raise exception.InvalidInput(
                f'{here}.id', f'{item.id!r} is also the id of an instance '
                'before it')
        places[item.id] = here
    groups = read_groups(file.server_groups, places, where)
    instances: list[state.Instance] = []
    named: list[NamedInstance] = []
    for item in file.instances:
        here, group = places[item.id], groups.get(item.id)
        if isinstance(item.flavor, str) and item.flavor not in flavors:
            named.append(NamedInstance(here, item, group))
        else:
            instance = read_instance(item, here, flavors, compiled)
            instances.append(dataclasses.replace(instance, group=group))
    document = FleetDocument(
        where, file.classes, file.flavors, file.flavor_files,
        tuple(instances), tuple(named))
    for name, own in document.classes.items():
        if not name.strip():
            raise exception.InvalidInput(f'{where}: classes',
                                         'has a class without a name')
        if not isinstance(own.profile, str):
            own.read_profile(document.locate(name))
    _check_isolated(document)
    return document


def _check_isolated(document: FleetDocument) -> None:
    """Check that isolated classes have a trait and an aggregate of their own.

    :raises InvalidInput: naming the class
    """
    for name, own in document.classes.items():
        if not own.isolated:
            continue
        if not own.traits:
            raise exception.InvalidInput(
                f'{document.locate(name)}.isolated', 'needs traits: the '
                'scheduler keeps all flavors off the class that do not '
                'require them')
        first = own.name_aggregates(name)[0]
        for other, theirs in document.classes.items():
            if other != name and first in theirs.name_aggregates(other):
                raise exception.InvalidInput(
                    f'{document.locate(name)}.aggregate', f'{first[:64]!r} is '
                    f'also an aggregate of the class {other[:64]}, and would '
                    'isolate its hosts too; name one of its own first')


def find_flavors(document: FleetDocument,
                 flavors: Iterable[flavor_model.Flavor]) -> FleetDocument:
    """Give the instances whose flavors are named their flavors.

    :param flavors: all flavors of the document, or the planned ones
    :raises InvalidInput: if an instance names another flavor
    """
    by_name = {flavor.name: flavor for flavor in flavors}
    compiled: dict[int, guests.Guest] = {}
    found = [
        dataclasses.replace(
            read_instance(item.entry, item.where, by_name, compiled),
            group=item.group)
        for item in document.named]
    return dataclasses.replace(
        document, instances=(*document.instances, *found), named=())


def dump(document: FleetDocument) -> dict[str, Any]:
    """Write a document as dicts, lists, numbers and strings."""
    known = {flavor.name: flavor for flavor in document.flavors}
    peers: dict[str, frozenset[str]] = {}
    for own in document.classes.values():
        names = own.names
        peers.update(dict.fromkeys(names, frozenset(names)))
    groups = {id(item.group): item.group for item in document.instances
              if item.group is not None}
    return fleet_classes.drop_defaults({
        'schema_version': SCHEMA_VERSION,
        'classes': {name: fleet_classes.dump_class(own)
                    for name, own in document.classes.items()},
        'flavors': [dump_flavor(flavor)
                    for flavor in document.flavors],
        'flavor_files': list(document.flavor_files),
        'instances': [dump_instance(item, known, peers)
                      for item in document.instances],
        'server_groups': [{
            'policy': group.policy.value, 'members': sorted(group.members),
            'max_server_per_host': group.most_per_host}
            for group in groups.values()]})


def format_json(document: FleetDocument) -> Iterator[str]:
    """Write a document as JSON with a line for each host and instance."""
    plain = dump(document)
    yield f'{{"schema_version": {SCHEMA_VERSION},\n "classes": {{\n'
    classes = [
        f'  {json.dumps(name)}: ' + json.dumps({**own, 'hosts': []})[:-1]
        .replace('"hosts": []', '"hosts": [\n   ' + ',\n   '.join(
            map(json.dumps, own['hosts'])) + ']', 1) + '}'
        for name, own in plain['classes'].items()]
    yield ',\n'.join(classes) + '}'
    for key in ('flavors', 'flavor_files', 'instances', 'server_groups'):
        if key in plain:
            yield f',\n "{key}": [\n  ' + ',\n  '.join(
                map(json.dumps, plain[key])) + ']'
    yield '}\n'


_UUID = re.compile('[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32}')

#: Text of an operator, such as the reason for disabling nova-compute.
_REMARK = re.compile(r' \(.*\)', re.DOTALL)


def replace_names(document: FleetDocument) -> FleetDocument:
    """Replace the names of instances and projects by numbers.

    Hosts, flavors, aggregates and traits keep their names. Text that may name
    an instance or a project is removed from reasons.
    """
    ids = {item.id: f'instance-{number}'
           for number, item in enumerate(document.instances, 1)}
    projects: dict[str, str] = {}
    for project in itertools.chain(*(
            flavor.projects or () for flavor in document.flavors), (
                item.project for item in document.instances if item.project)):
        projects.setdefault(project, f'project-{len(projects) + 1}')
    groups = {item.group: dataclasses.replace(
        item.group, members=frozenset(
            ids[member] for member in item.group.members if member in ids))
        for item in document.instances if item.group is not None}
    return dataclasses.replace(
        document,
        classes={name: dataclasses.replace(own, hosts=tuple(
            _replace_reasons(entry, ids) for entry in own.hosts))
            for name, own in document.classes.items()},
        flavors=tuple(dataclasses.replace(
            flavor, projects=flavor.projects and tuple(
                projects[project] for project in flavor.projects))
            for flavor in document.flavors),
        instances=tuple(dataclasses.replace(
            item, id=ids[item.id], where='',
            project=item.project and projects[item.project],
            group=item.group and groups[item.group])
            for item in document.instances))


def _replace_reasons(entry: fleet_classes.HostEntry,
                     ids: Mapping[str, str]) -> fleet_classes.HostEntry:
    reported: placement.HostState | None = entry.reported
    if reported is not None and reported.closed is not None:
        reported = dataclasses.replace(
            reported, closed='by a reason that is left out'
            if reported.quarantined else _replace(reported.closed, ids))
    return dataclasses.replace(
        entry, reported=reported,
        broken=entry.broken and _replace(entry.broken, ids))


def _replace(reason: str, ids: Mapping[str, str]) -> str:
    return _UUID.sub(lambda match: ids.get(match[0], 'UUID'),
                     _REMARK.sub('', reason))
