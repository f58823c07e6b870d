# SPDX-License-Identifier: Apache-2.0

"""The empty fleet of a replay, from the arguments that describe it."""

import argparse
import dataclasses

from hpcvirt import exception
from hpcvirt.cmd import hosts
from hpcvirt.flavors import host_part
from hpcvirt.flavors import planner
from hpcvirt.fleet import assemble
from hpcvirt.fleet import document as documents
from hpcvirt.fleet import moving
from hpcvirt.model import flavor as flavor_model
from hpcvirt.simulate import scenario


def read(args: argparse.Namespace) -> tuple[scenario.ScenarioFleet, bool]:
    """Read the hosts, and read or plan the flavors.

    :returns: the fleet, and whether its flavors are given rather than planned
    :raises InvalidInput: for a file or an argument that cannot be used
    """
    document = hosts.read(args)
    given: dict[str, flavor_model.Flavor] = {}
    for path in args.flavors:
        for flavor in hosts.read_flavors(path):
            if given.setdefault(flavor.name, flavor) is not flavor:
                raise exception.InvalidInput(
                    path, f'has a flavor {flavor.name[:64]}, but there is '
                    'one already')
    if args.fleet is not None:
        if args.cpus or args.pages:
            raise exception.InvalidInput(
                '--cpus' if args.cpus else '--pages', 'cannot be used with '
                '--fleet; its profiles say what guests may have')
        document = dataclasses.replace(document, flavors=tuple(
            given.values()) or document.flavors)
        return _empty(document), bool(document.flavors)
    (own,) = document.classes.values()
    plan = planner.plan(
        own.list_topologies(), own.read_profile(document.where),
        host_part.build(args.cpus, args.pages))
    hosts.warn(plan.warnings)
    supplies = {each.name: each.supply for each in plan.hosts}
    return scenario.ScenarioFleet(tuple(
        scenario.HostKind(entry.name, entry.count, supplies[entry.names[0]])
        for entry in own.hosts),
        tuple(given.values()) or tuple(
            item.flavor for item in plan.flavors)), bool(given)


def _empty(document: documents.FleetDocument) -> scenario.ScenarioFleet:
    """Let all instances leave the fleet of a document."""
    fleet, flavors = assemble.make_fleet(document)
    hosts.warn(fleet.warnings)
    for name, why in fleet.broken.items():
        raise exception.InvalidInput(name, why)
    by_name = {host.name: host for host in fleet.hosts}
    kinds = []
    for own in document.classes.values():
        for entry in own.hosts:
            host = by_name[entry.names[0]]
            for instance in host.instances:
                host = moving.leave(instance, host)
            kinds.append(scenario.HostKind(entry.name, entry.count,
                                           host.state.supply))
    return scenario.ScenarioFleet(tuple(kinds), flavors)
