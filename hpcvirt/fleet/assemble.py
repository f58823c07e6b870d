# SPDX-License-Identifier: Apache-2.0

"""Build a fleet from its document.

A host whose record contradicts itself is broken; other hosts are not affected.
"""

import dataclasses
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import planner
from hpcvirt.flavors import settings as host_settings
from hpcvirt.flavors import warning
from hpcvirt.fleet import classes
from hpcvirt.fleet import document as documents
from hpcvirt.fleet import guest as guests
from hpcvirt.fleet import occupancy
from hpcvirt.fleet import state
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import host as host_model


def make_fleet(document: documents.FleetDocument,
               ) -> tuple[state.Fleet, tuple[flavor_model.Flavor, ...]]:
    """Build the fleet of a document whose files have been read.

    :returns: the fleet; and its flavors, or those that its profiles plan if
        the document has none
    :raises InvalidInput: naming a class for which there is no plan, or an
        instance on an unknown host
    """
    document.check_names()
    machines: list[host_model.Host] = []
    settings: dict[str, host_settings.HostSettings] = {}
    known: dict[str, state.FleetHostState] = {}
    broken: dict[str, str] = {}
    class_of: dict[str, classes.FleetClass] = {}
    planned: dict[str, plans.Plan] = {}
    for name, own in document.classes.items():
        class_of |= dict.fromkeys(own.names, own)
        before = len(machines)
        for entry in own.hosts:
            if entry.fault is not None:
                broken |= dict.fromkeys(entry.names, entry.fault)
            elif entry.reported is not None:
                known |= dict.fromkeys(entry.names, entry.reported)
            elif isinstance(entry.topology, host_model.Host):
                machines += [dataclasses.replace(entry.topology, name=host)
                             for host in entry.names]
        if machines[before:]:
            planned[name] = _plan(document, name, machines[before:])
            settings |= {host.name: host.settings
                         for host in planned[name].hosts}
    peers = {id(own): frozenset(own.names) for own in class_of.values()}
    residents = _group_by_host((
        instance if instance.hosts is not None or instance.host not in class_of
        else dataclasses.replace(
            instance, hosts=peers[id(class_of[instance.host])])
        for instance in document.instances), class_of)
    built = fleet(machines, settings, [
        instance for host in machines for instance in residents[host.name]])
    by_name = {host.name: host for host in built.hosts}
    if any(own.traits for own in document.classes.values()):
        by_name = {name: dataclasses.replace(host, state=dataclasses.replace(
            host.state, traits=frozenset(class_of[name].traits)))
            for name, host in by_name.items()}
    by_name |= {name: state.FleetHost(name, reported, tuple(
        occupancy.find_devices(one, reported.supply.pools or ())
        for one in residents[name])) for name, reported in known.items()}
    return state.Fleet(
        tuple(dataclasses.replace(
            by_name[name], zone=own.zone or '',
            project_aggregate=own.project_aggregate or '',
            aggregates=tuple(filter(None, (own.aggregate or '').split(', '))))
            for name, own in class_of.items() if name in by_name),
        {**broken, **built.broken}, warning.gather(
            item for plan in planned.values() for item in plan.warnings),
    ), document.flavors or tuple(
        row.flavor for row in plans.merge_plans(planned).flavors)


def _plan(document: documents.FleetDocument, name: str,
          hosts: Sequence[host_model.Host]) -> plans.Plan:
    here = f'{document.where}: classes[{name[:64]!r}]'
    profile = document.classes[name].read_profile(here)
    try:
        return planner.plan(hosts, profile)
    except exception.InvalidInput as exc:
        raise exception.InvalidInput(here, str(exc)) from exc


def _group_by_host(instances: Iterable[state.Instance],
                   hosts: Iterable[str]) -> dict[str, list[state.Instance]]:
    residents: dict[str, list[state.Instance]] = {name: [] for name in hosts}
    for instance in instances:
        if instance.host not in residents:
            raise exception.InvalidInput(
                f'{instance.where}.host', f'{instance.host[:64]!r} is not a '
                'host of the fleet')
        residents[instance.host].append(instance)
    return residents


def fleet(machines: Sequence[host_model.Host],
          settings: Mapping[str, host_settings.HostSettings],
          instances: Iterable[state.Instance]) -> state.Fleet:
    """Build the hosts, and charge them with their instances.

    :param settings: host -> its settings
    :raises InvalidInput: for an instance on an unknown host
    """
    residents = _group_by_host(instances, [host.name for host in machines])
    hosts, broken = [], {}
    # The empty host of each kind, and the addresses of its pools.
    empty: dict[object, tuple[state.FleetHostState, list[str]]] = {}
    for host in machines:
        own = settings[host.name]
        key = id(host.cells), id(host.devices), id(own)
        try:
            if key not in empty:
                empty[key] = _make_empty(host, own), [
                    address for address, _
                    in host_settings.device_pools(host, own)]
            bare, addresses = empty[key]
            hosts.append(state.FleetHost(host.name, *occupancy.charge(
                bare, residents[host.name], addresses)))
        except exception.InvalidInput as exc:
            broken[host.name] = str(exc)
    return state.Fleet(tuple(hosts), broken)


def _make_empty(host: host_model.Host, settings: host_settings.HostSettings,
                ) -> state.FleetHostState:
    """Describe the empty host as nova-compute reports it with its settings.

    :raises InvalidInput: if host and settings contradict each other
    """
    memory_mib = sum(cell.memory_mib for cell in host.cells)
    return state.FleetHostState(
        host_settings.make_supply(host, settings),
        guests.Resources(len(settings.dedicated), len(settings.shared),
                         memory_mib - settings.reserved_host_memory_mb,
                         guests.UNKNOWN_DISK_GIB))
