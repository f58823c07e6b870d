# SPDX-License-Identifier: Apache-2.0

"""Make the fleet of a replay from the arguments."""

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that a choice of a what-if can replace."""
    hosts.add_hosts(parser)
    hosts.add_fleet(parser)
    hosts.add_division(parser)
    parser.add_argument(
        '--flavors', metavar='FILE', action='append', default=[],
        help='the flavors that can be requested, as "openstack flavor '
        'list --long -f json" or "hpcvirt flavor plan -f json" prints '
        'them; may be given several times (default: the flavors that the '
        'workload describes, and those of the fleet; if the fleet has '
        'none, they are planned as by "hpcvirt flavor plan")')


def read(args: argparse.Namespace,
         ) -> tuple[state.Fleet, bool, state.Fleet | None]:
    """Read the hosts, and read or plan the flavors.

    :returns: the empty fleet; whether its flavors are given, not planned; and
        the fleet with the instances of --fleet
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
        return _empty(document, fleet, flavors), bool(
            document.flavors), fleet
    (own,) = document.classes.values()
    topologies = own.list_topologies()
    plan = planner.plan(topologies, own.read_profile(document.where),
                        host_part.build(args.cpus, args.pages))
    hosts.warn(plan.warnings)
    return _empty(
        document, assemble.fleet(topologies, {
            host.name: host.settings for host in plan.hosts}, ()),
        tuple(given.values()) or tuple(
            item.flavor for item in plan.flavors)), bool(given), None


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
