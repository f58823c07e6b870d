# SPDX-License-Identifier: Apache-2.0

"""The classes of a fleet document, and the hosts of each."""

import dataclasses
import itertools
from collections.abc import Mapping
from typing import Annotated
from typing import Any

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.fit import device_sets
from hpcvirt.fit import placement
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import host as host_model
from hpcvirt.topology import snapshot

#: The settings of the hosts of a class: planned by its profile, with the pages
#: that the hosts have now, or those of a nova.conf.
PLANNED, CURRENT = 'planned', 'current'

#: The most hosts that are held in memory.
MAX_HOSTS = 100_000

_Name = Annotated[str, serialization.text(r'(?s).{1,255}', 'node1')]


def _read_topology(plain: object) -> host_model.Host | exception.InvalidInput:
    """Read a snapshot; an invalid one affects only its host."""
    try:
        return snapshot.read_json(plain, 'topology')
    except exception.InvalidInput as exc:
        return exc


def _read_reported(plain: object) -> placement.HostState:
    try:
        found = serialization.load(placement.HostState, plain, '')
    except exception.InvalidInput as exc:
        raise ValueError(str(exc).removeprefix(': ')) from None
    for cell in found.supply.cells:
        if any(pool.size_kib < 1 for pool in cell.pages):
            raise ValueError('has pages of less than 1 KiB')
    # Raise for a malformed tag.
    device_sets.members(found.supply.pools or ())
    return found


@dataclasses.dataclass(frozen=True, kw_only=True)
class HostEntry:
    """A host of a class, or several equal hosts.

    :ivar path: ``[NAME=]PATH[*COUNT]`` of hosts whose topologies have not
        been read; the other fields are then empty
    :ivar topology: the topology of each host, or why it cannot be used
    :ivar count: the number of hosts; several have the names NAME-1, NAME-2
        and so on
    :ivar reported: what the host has left, as Nova and Placement report it
    :ivar broken: why its record cannot be used
    """

    path: str | None = None
    name: _Name = ''
    count: Annotated[int, serialization.whole(1, MAX_HOSTS)] = 1
    topology: Annotated[host_model.Host | exception.InvalidInput,
                        _read_topology] | None = None
    reported: Annotated[placement.HostState, _read_reported] | None = None
    broken: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its hosts."""
        if self.count == 1:
            return (self.name,)
        return tuple(f'{self.name}-{number}'
                     for number in range(1, self.count + 1))

    @property
    def fault(self) -> str | None:
        """Why its hosts cannot be used; None if they can."""
        if self.broken is not None:
            return self.broken
        if (isinstance(self.topology, exception.InvalidInput)
                and self.reported is None):
            return str(self.topology)
        return None


def _read_entry(plain: object) -> HostEntry:
    if isinstance(plain, str):
        return HostEntry(path=plain)
    try:
        entry = serialization.load(HostEntry, plain, '')
    except exception.InvalidInput as exc:
        raise ValueError(str(exc).removeprefix(': ')) from None
    if entry.path is not None:
        raise ValueError('path: must not be a key; write the host as a text '
                         '[NAME=]PATH[*COUNT]')
    topology = entry.topology
    if topology is None and entry.reported is None and entry.broken is None:
        raise ValueError("the key 'topology' is missing")
    name = entry.name or (topology.name if isinstance(
        topology, host_model.Host) else '')
    if not name:
        raise ValueError("the key 'name' is missing")
    if isinstance(topology, host_model.Host):
        topology = dataclasses.replace(topology, name=name)
    return dataclasses.replace(entry, name=name, topology=topology)


def _read_profile(value: object) -> str | Mapping[str, Any]:
    """Read the name of a profile, the path of a file, or its content."""
    if isinstance(value, str) and value:
        return value
    try:
        profiles.build(value, '')
    except exception.InvalidInput as exc:
        raise ValueError(str(exc).removeprefix(': ')) from None
    if not isinstance(value, Mapping):
        raise serialization.make_error('a name, a file or a mapping', value)
    return value


@dataclasses.dataclass(frozen=True, kw_only=True)
class FleetClass:
    """Hosts that are configured in the same way, by one profile.

    :ivar hosts: each host is ``[NAME=]PATH[*COUNT]``, or a mapping with its
        ``name`` and its ``topology``, as ``hpcvirt host show -f json`` prints
        it. PATH is relative to the document: anything that ``hpcvirt host
        show`` reads, a pattern, a folder, or an archive (.tar, .tar.gz, .zip)
        with one topology in each of its files. COUNT hosts that are alike are
        called NAME-1, NAME-2 and so on
    :ivar profile: what the hosts give to guests: a profile by its name, a
        file, or its content
    :ivar settings: the CPUs, pages and devices that all answers suppose:
        ``planned``, the default, those that the profile plans; ``current``,
        the pages that the topology shows, and the CPUs and devices that the
        profile plans; the path of the nova.conf of its nova-compute, the pages
        that the topology shows, and the CPUs, reserved memory and pages,
        allocation ratios and devices of that file, with as many virtual
        functions as the profile plans
    :ivar conf: the content of that nova.conf, a
        :class:`hpcvirt.flavors.current_settings.NovaConf`; None if there is
        none, or it has not been read
    :ivar profile_file: the file of the profile, as the document names it; None
        if it is no file, or has not been read
    :ivar name_prefix: the prefix of its flavors, instead of that of the
        profile
    :ivar name_template: the template of their names, instead of that of the
        profile
    :ivar traits: the traits that its hosts have beside those of Nova, such as
        ``CUSTOM_HPC_GPU``. The planned flavors require them, and ``hpcvirt
        host config`` lets nova-compute report them. Without traits, flavors
        fit on the hosts of other classes as well: a plan counts them there,
        and says so (``fits-elsewhere``)
    :ivar isolated: with ``true``, no other flavor fits on its hosts: an
        isolating aggregate of Nova requires all traits of the class
        [Nova-Isolation], which ``hpcvirt flavor apply --aggregates`` creates.
        ``hpcvirt host config`` writes ``enable_isolated_aggregate_filtering``
        for nova-scheduler
    :ivar aggregate: its host aggregates, separated by commas, which ``hpcvirt
        flavor apply --aggregates`` creates. The first one isolates an isolated
        class, and must belong to it alone; without this key, it has the name
        of the class
    :ivar zone: the availability zone of its hosts, a label of metrics
    :ivar project_aggregate: the aggregate that keeps its hosts for projects, a
        label of metrics
    """

    hosts: tuple[Annotated[HostEntry, _read_entry], ...]
    profile: Annotated[str | Mapping[str, Any], _read_profile] = 'default'
    settings: str = PLANNED
    conf: Annotated[Any, serialization.refuse] = None
    profile_file: Annotated[str | None, serialization.refuse] = None
    name_prefix: str | None = None
    name_template: str | None = None
    traits: tuple[Annotated[str, serialization.text(
        'CUSTOM_[A-Z0-9_]{1,248}', 'CUSTOM_HPC_GPU')], ...] = ()
    isolated: bool = False
    aggregate: str | None = None
    zone: str | None = None
    project_aggregate: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its hosts."""
        return tuple(itertools.chain.from_iterable(
            entry.names for entry in self.hosts))

    @property
    def aggregates(self) -> tuple[str, ...]:
        """The names of its host aggregates."""
        names = (name.strip() for name in (self.aggregate or '').split(','))
        return tuple(name for name in names if name)

    def name_aggregates(self, name: str) -> tuple[str, ...]:
        """Name its host aggregates; the first one isolates it.

        :param name: the name of the class, which an isolated class without an
            aggregate gives to its own
        """
        return self.aggregates or ((name,) if self.isolated else ())

    @property
    def profile_name(self) -> str:
        """The profile as the document names it, or what it changes."""
        if self.profile_file is not None:
            return self.profile_file
        if isinstance(self.profile, str):
            return self.profile
        return f'{self.profile.get("base", "default")}, changed'

    @property
    def profile_content(self) -> dict[str, Any]:
        """The content of the profile, with the prefix and the template."""
        plain = ({'base': self.profile} if isinstance(self.profile, str)
                 else dict(self.profile))
        for key in ('name_prefix', 'name_template'):
            if getattr(self, key) is not None:
                plain[key] = getattr(self, key)
        return plain

    def read_profile(self, where: str) -> profiles.Profile:
        """Make the profile, with the prefix and the template of this class.

        :param where: the place of the class, for errors
        :raises InvalidInput: if it cannot be used, or has not been read
        """
        if isinstance(self.profile, str) and (
                self.profile not in profiles.BUILT_IN):
            raise exception.InvalidInput(
                f'{where}.profile', f'{self.profile[:64]!r} is none of '
                f'{", ".join(profiles.BUILT_IN)}')
        return profiles.build(self.profile_content, where)

    def list_topologies(self) -> tuple[host_model.Host, ...]:
        """List its hosts, with their names.

        :raises InvalidInput: if one cannot be used
        """
        found = []
        for entry in self.hosts:
            if isinstance(entry.topology, exception.InvalidInput):
                raise entry.topology
            if entry.topology is None:
                raise exception.InvalidInput(
                    entry.name, entry.broken or 'has no topology')
            found += [dataclasses.replace(entry.topology, name=name)
                      for name in entry.names]
        return tuple(found)


def dump_class(own: FleetClass) -> dict[str, Any]:
    """Write a class as dicts, lists, numbers and strings."""
    return {'hosts': [_dump_entry(entry) for entry in own.hosts],
            **drop_defaults({
                key: serialization.dump(getattr(own, key)) for key in (
                    'profile', 'settings', 'name_prefix', 'name_template',
                    'traits', 'isolated', 'aggregate', 'zone',
                    'project_aggregate')
                if (key, getattr(own, key)) not in (
                    ('profile', 'default'), ('settings', PLANNED))})}


def _dump_entry(entry: HostEntry) -> str | dict[str, Any]:
    if entry.path is not None:
        return entry.path
    topology = entry.topology
    plain = drop_defaults({
        'name': entry.name, 'broken': entry.fault,
        'topology': (snapshot.make_json(topology) if isinstance(
            topology, host_model.Host) else None),
        'reported': serialization.dump(entry.reported)})
    return plain if entry.count == 1 else {**plain, 'count': entry.count}


def drop_defaults(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the values that the reader assumes."""
    return {key: value for key, value in plain.items()
            if value not in (None, False, '', [], {})}
