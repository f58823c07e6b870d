# SPDX-License-Identifier: Apache-2.0

"""Write the fleet of a cloud as a document.

Nova knows the CPUs of a host in ``cpu_dedicated_set`` and ``cpu_shared_set``,
and its pages. Caches, distances and devices are unknown in the topologies.
"""

import dataclasses
import itertools

from hpcvirt.fit import supply as supplies
from hpcvirt.fleet import classes
from hpcvirt.fleet import document as documents
from hpcvirt.model import host as host_model
from hpcvirt.model import quarantine as health
from hpcvirt.nova import quarantine
from hpcvirt.nova_live import view as views

#: The class of hosts whose records are broken.
BROKEN = 'broken'

_UNKNOWN = frozenset((host_model.Unknown.CACHES, host_model.Unknown.VFS,
                      host_model.Unknown.DEVICES))


def make_document(view: views.View) -> documents.FleetDocument:
    """Describe the fleet of a cloud.

    Hosts between which instances may move form a class, which has the names of
    their host aggregates.
    """
    kinds: dict[frozenset[str], list[str]] = {}
    hosts = {host.name: host for host in view.fleet.hosts}
    for name in hosts:
        kinds.setdefault(view.peers[name], []).append(name)
    found: dict[str, classes.FleetClass] = {}
    for names in kinds.values():
        first = view.found.states[names[0]]
        aggregate = ', '.join(sorted(
            each.name for each in first.aggregates
            if not quarantine.is_marked(each)))
        key = aggregate or 'no aggregate'
        number = sum(each.partition(' #')[0] == key for each in found)
        own = view.providers[first.uuid].traits - {health.TRAIT}
        found[f'{key} #{number + 1}' if number else key] = classes.FleetClass(
            hosts=tuple(classes.HostEntry(
                name=name, reported=hosts[name].state,
                topology=make_topology(name, hosts[name].state.supply))
                for name in names),
            traits=tuple(sorted(trait for trait in own
                                if trait.startswith('CUSTOM_'))),
            aggregate=aggregate or None,
            zone=hosts[names[0]].zone or None,
            project_aggregate=hosts[names[0]].project_aggregate or None)
    if view.fleet.broken:
        key = BROKEN if BROKEN not in found else f'{BROKEN} records'
        found[key] = classes.FleetClass(hosts=tuple(
            classes.HostEntry(name=name, broken=why)
            for name, why in view.fleet.broken.items()))
    instances = itertools.chain.from_iterable(
        host.instances for host in view.fleet.hosts)
    return documents.FleetDocument(
        'the cloud', found, tuple(view.flavors), (), tuple(
            dataclasses.replace(instance, where='') for instance in instances))


def make_topology(name: str,
                  supply: supplies.Supply) -> host_model.Host | None:
    """Make the topology that Nova reports; None for a host without cells."""
    if not supply.cells:
        return None
    cells = []
    for cell in supply.cells:
        siblings = [frozenset(core) for core in cell.siblings if core]
        rest = frozenset((*cell.dedicated, *cell.shared)).difference(*siblings)
        siblings += [frozenset((cpu,)) for cpu in sorted(rest)]
        cpus = frozenset().union(*siblings)
        cells.append(host_model.Cell(
            cell.id, cell.socket, cpus, tuple(siblings),
            (cpus,) if cpus else (), cell.memory_mib, tuple(
                host_model.PagePool(pool.size_kib, pool.total)
                for pool in sorted(cell.pages))))
    unknown = set(_UNKNOWN)
    if any(cell.socket is None for cell in cells):
        unknown.add(host_model.Unknown.SOCKETS)
    return host_model.Host(name, tuple(sorted(
        cells, key=lambda cell: cell.id)), unknown=frozenset(unknown))
