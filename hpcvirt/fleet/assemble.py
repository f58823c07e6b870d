# SPDX-License-Identifier: Apache-2.0

"""Build a fleet from its document.

A host whose record contradicts itself is broken; other hosts are not affected.
"""

import dataclasses
import itertools
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.fit import placement
from hpcvirt.flavors import compiled_flavor
from hpcvirt.flavors import device_choice
from hpcvirt.flavors import fleet_plan
from hpcvirt.flavors import host_part
from hpcvirt.flavors import host_settings
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import warning
from hpcvirt.fleet import class_plans
from hpcvirt.fleet import classes
from hpcvirt.fleet import document as documents
from hpcvirt.fleet import excess
from hpcvirt.fleet import occupancy
from hpcvirt.fleet import state
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import host as host_model


def make_fleet(document: documents.FleetDocument,
               part: host_part.HostPart = host_part.WHOLE,
               ) -> tuple[state.Fleet, tuple[flavor_model.Flavor, ...]]:
    """Build the fleet of a document whose files have been read.

    :param part: the part of each host that guests may have
    :returns: the fleet; and its flavors, or those that its profiles plan if
        the document has none
    :raises InvalidInput: naming a class for which there is no plan, or an
        instance on an unknown host or of an unknown flavor
    """
    document.check_names()
    class_of = {}
    class_names = {}
    for name, own in document.classes.items():
        for host_name in own.names:
            class_of[host_name] = own
            class_names[host_name] = name if document.is_file else ''
    machines, reported, broken = _sort_hosts(document)
    planned = class_plans.plan_classes(document, machines, part)
    flavors = document.flavors or _list_planned(document, planned)
    if document.named:
        document = documents.find_flavors(document, flavors)
    residents = _group_by_host(_find_targets(document.instances, class_of),
                               class_of)
    empty: dict[str, _EmptyHost] = {}
    for plan in planned.values():
        for host in plan.hosts:
            empty[host.name] = _EmptyHost(host.host, host.settings, host.state)
    charged = _charge(empty.values(), residents)
    by_name, contradicting = charged.hosts, charged.broken
    differing: dict[str, str] = {}
    for name, left in reported.items():
        try:
            by_name[name] = _name_residents(name, left, residents[name])
        except exception.InvalidInput as exc:
            contradicting[name] = str(exc)
            continue
        difference = excess.describe_difference(by_name[name])
        if difference is not None:
            differing[name] = difference
    fleet = state.Fleet(
        tuple(_name_place(by_name[name], own, class_names[name])
              for name, own in class_of.items() if name in by_name),
        {**broken, **contradicting}, warning.gather((
            *itertools.chain.from_iterable(
                plan.warnings for plan in planned.values()),
            *class_plans.warn_planned(document, planned),
            *excess.warn(charged.exceeding, differing, charged.uncounted))),
        planned=tuple(itertools.chain(*(
            plan.hosts for plan in planned.values()))),
        alias_policies=_read_policies(planned),
        device_kinds=_read_kinds(planned))
    if not document.flavors:
        return fleet, flavors
    return fleet, tuple(compiled_flavor.complete(flavor, fleet.alias_policies)
                        for flavor in flavors)


def _read_policies(planned: Mapping[str, plans.Plan]) -> dict[str, str]:
    found: dict[str, str] = {}
    for plan in planned.values():
        for host in plan.hosts:
            found |= compiled_flavor.read_policies(host.settings.pci_alias)
    return found


def _read_kinds(planned: Mapping[str, plans.Plan],
                ) -> dict[str, device_choice.CountedAs]:
    """Return what the devices of aliases and resource classes are."""
    found: dict[str, device_choice.CountedAs] = {}
    for plan in planned.values():
        for wanted in plan.hosts[0].profile.devices:
            found[wanted.request_name] = wanted.counts_as
            for settings in plan.list_settings():
                # Each place of a set has an alias of its own.
                for alias in settings.pci_alias:
                    product = alias.get('vendor_id'), alias.get('product_id')
                    if product == (wanted.vendor_id, wanted.product_id):
                        found[alias['name']] = wanted.counts_as
    return found


def _list_planned(document: documents.FleetDocument,
                  planned: Mapping[str, plans.Plan],
                  ) -> tuple[flavor_model.Flavor, ...]:
    class_plans.check_flavors(document, planned)
    return tuple(row.flavor for row in fleet_plan.join_flavors(planned))


def _sort_hosts(document: documents.FleetDocument) -> tuple[
        dict[str, list[host_model.Host]], dict[str, placement.HostState],
        dict[str, str]]:
    """Sort the hosts of a document by what is known of them.

    :returns: class -> the machines of which only the topology is known; host
        -> what Nova and Placement report of it; and host -> why its record is
        broken
    """
    machines: dict[str, list[host_model.Host]] = {}
    reported: dict[str, placement.HostState] = {}
    broken: dict[str, str] = {}
    for name, own in document.classes.items():
        machines[name] = []
        for entry in own.hosts:
            if entry.fault is not None:
                broken |= dict.fromkeys(entry.names, entry.fault)
            elif entry.reported is not None:
                reported |= dict.fromkeys(entry.names, entry.reported)
            elif isinstance(entry.topology, host_model.Host):
                machines[name] += [
                    dataclasses.replace(entry.topology, name=host)
                    for host in entry.names]
    return machines, reported, broken


def _find_targets(instances: Iterable[state.Instance],
                  class_of: Mapping[str, classes.FleetClass],
                  ) -> list[state.Instance]:
    """Let instances move in their classes, unless the document says where."""
    peers = {id(own): frozenset(own.names) for own in class_of.values()}
    found = []
    for instance in instances:
        own = class_of.get(instance.host)
        if instance.hosts is not None or own is None:
            found.append(instance)
        else:
            found.append(dataclasses.replace(instance, hosts=peers[id(own)]))
    return found


def _name_place(host: state.FleetHost, own: classes.FleetClass,
                fleet_class: str) -> state.FleetHost:
    return dataclasses.replace(
        host, zone=own.zone or '',
        project_aggregate=own.project_aggregate or '',
        aggregates=own.aggregates, fleet_class=fleet_class)


def _group_by_host(instances: Iterable[state.Instance],
                   hosts: Iterable[str]) -> dict[str, list[state.Instance]]:
    residents: dict[str, list[state.Instance]] = {name: [] for name in hosts}
    for instance in instances:
        residents[instance.host].append(instance)
    return residents


@dataclasses.dataclass(frozen=True)
class _EmptyHost:
    """A host without instances; ``state`` is None if it is still unknown."""

    machine: host_model.Host
    settings: host_settings.HostSettings
    state: placement.HostState | None = None


def fleet(machines: Sequence[host_model.Host],
          settings: Mapping[str, host_settings.HostSettings],
          instances: Iterable[state.Instance]) -> state.Fleet:
    """Build the hosts of a plan, and charge them with their instances.

    :param settings: host -> its settings
    """
    residents = _group_by_host(instances, [host.name for host in machines])
    charged = _charge([_EmptyHost(host, settings[host.name])
                       for host in machines], residents)
    return state.Fleet(tuple(charged.hosts.values()), charged.broken)


@dataclasses.dataclass(frozen=True)
class _ChargedHosts:
    """Hosts with their instances.

    :ivar hosts: host -> what it has left
    :ivar broken: host -> why its record is broken
    :ivar exceeding: host -> what instances have beyond what it gives
    :ivar uncounted: host -> which devices of instances are not counted
    """

    hosts: dict[str, state.FleetHost]
    broken: dict[str, str]
    exceeding: dict[str, str]
    uncounted: dict[str, str]


def _name_residents(name: str, left: placement.HostState,
                    residents: Iterable[state.Instance]) -> state.FleetHost:
    """Give a host that Nova reports its instances.

    :raises InvalidInput: naming an instance that cannot be there
    """
    found = []
    for instance in residents:
        occupancy.check_cells(instance, left.supply.cells)
        found.append(occupancy.find_devices(instance,
                                            left.supply.pools or ()))
    return state.FleetHost(name, left, tuple(found))


def _charge(hosts: Iterable[_EmptyHost],
            residents: Mapping[str, Sequence[state.Instance]],
            ) -> _ChargedHosts:
    """Charge hosts with their instances."""
    found = _ChargedHosts({}, {}, {}, {})
    # The empty host of each kind, and the addresses of its pools.
    known: dict[object, tuple[placement.HostState, list[str]]] = {}
    for host in hosts:
        machine = host.machine
        key = id(machine.cells), id(machine.devices), id(host.settings)
        try:
            if key not in known:
                bare = host.state or host_settings.make_empty_host(
                    machine, host.settings)
                known[key] = bare, [
                    address for address, _
                    in host_settings.list_pools(machine, host.settings)]
            bare, addresses = known[key]
            charged = state.FleetHost(
                machine.name, *occupancy.charge(
                    bare, residents[machine.name], addresses))
        except exception.InvalidInput as exc:
            found.broken[machine.name] = str(exc)
            continue
        found.hosts[machine.name] = charged
        over = excess.describe_excess(bare, charged)
        if over is not None:
            found.exceeding[machine.name] = over
        uncounted = excess.describe_uncounted(charged, machine)
        if uncounted is not None:
            found.uncounted[machine.name] = uncounted
    return found
