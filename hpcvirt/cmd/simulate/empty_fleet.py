# SPDX-License-Identifier: Apache-2.0

"""Make the empty fleet of a replay from the arguments."""

import argparse
import dataclasses

from hpcvirt import exception
from hpcvirt.cmd import hosts
from hpcvirt.flavors import host_part
from hpcvirt.flavors import planner
from hpcvirt.fleet import assemble
from hpcvirt.fleet import document as documents
from hpcvirt.fleet import moving
from hpcvirt.fleet import state
from hpcvirt.model import flavor as flavor_model


def read(args: argparse.Namespace) -> tuple[state.Fleet, bool]:
    """Read the hosts, and read or plan the flavors.

    :returns: the fleet, and whether its flavors are given, not planned
    :raises InvalidInput: for an invalid file or argument
    """
    document = hosts.read(args)
    given: dict[str, flavor_model.Flavor] = {}
    for path in args.flavors:
        for flavor in hosts.read_flavors(path):
            if given.setdefault(flavor.name, flavor) is not flavor:
                raise exception.InvalidInput(
                    path, f'has the flavor {flavor.name[:64]}, which another '
                    'file has as well')
    if args.fleet is not None:
        if args.cpus or args.pages:
            raise exception.InvalidInput(
                '--cpus' if args.cpus else '--pages', 'cannot be used with '
                '--fleet, whose profiles divide the hosts')
        document = dataclasses.replace(document, flavors=tuple(
            given.values()) or document.flavors)
        fleet, flavors = assemble.make_fleet(document)
        hosts.warn(fleet.warnings)
        for name, why in fleet.broken.items():
            raise exception.InvalidInput(name, why)
        return _empty(document, fleet, flavors), bool(document.flavors)
    (own,) = document.classes.values()
    topologies = own.list_topologies()
    plan = planner.plan(topologies, own.read_profile(document.where),
                        host_part.build(args.cpus, args.pages))
    hosts.warn(plan.warnings)
    return _empty(
        document, assemble.fleet(topologies, {
            host.name: host.settings for host in plan.hosts}, ()),
        tuple(given.values()) or tuple(
            item.flavor for item in plan.flavors)), bool(given)


def _empty(document: documents.FleetDocument, fleet: state.Fleet,
           flavors: tuple[flavor_model.Flavor, ...]) -> state.Fleet:
    """Remove all instances; the hosts of an entry are then alike."""
    by_name = {host.name: host for host in fleet.hosts}
    found: list[state.FleetHost] = []
    for own in document.classes.values():
        for entry in own.hosts:
            host = by_name[entry.names[0]]
            empty = moving.leave_all(host.instances, host).state
            found += [state.FleetHost(name, empty) for name in entry.names]
    return state.Fleet(tuple(found), {}, flavors=flavors)
