# SPDX-License-Identifier: Apache-2.0

"""Plan the hosts of a command, class by class."""

import argparse

from hpcvirt import exception
from hpcvirt.cmd import hosts
from hpcvirt.flavors import fleet_plan
from hpcvirt.flavors import host_part
from hpcvirt.flavors import plan_document
from hpcvirt.flavors import planned as plans
from hpcvirt.fleet import class_plans


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --fleet, the hosts, and the arguments that divide them."""
    hosts.add_fleet(parser)
    hosts.add_hosts(parser)
    hosts.add_division(parser)


def plan(args: argparse.Namespace) -> plans.Plan:
    """Plan the hosts of all classes.

    :raises InvalidInput: for an invalid argument or file, or classes that
        contradict each other
    """
    return fleet_plan.merge_plans(plan_classes(args))


def plan_classes(args: argparse.Namespace) -> dict[str, plans.Plan]:
    """Plan each class separately.

    :raises InvalidInput: for an invalid argument or file
    """
    document = hosts.read(args)
    part = host_part.build(args.cpus, args.pages)
    machines = {}
    for name, own in document.classes.items():
        try:
            machines[name] = own.list_topologies()
        except exception.InvalidInput as exc:
            if not document.is_file:
                raise
            raise exception.InvalidInput(document.locate(name),
                                         str(exc)) from exc
    found = class_plans.plan_classes(document, machines, part)
    class_plans.check_flavors(document, found)
    return found


def plan_others(planned: dict[str, plans.Plan], args: argparse.Namespace,
                ) -> tuple[plan_document.Alternative, ...]:
    """Plan each class with the other built-in profile.

    With ``--cpus`` both profiles give guests the same CPUs.
    """
    if args.cpus is not None:
        return ()
    part = host_part.build(args.cpus, args.pages)
    return tuple(plan_document.plan_other(
        each, part, name if args.fleet is not None else '')
        for name, each in planned.items())
