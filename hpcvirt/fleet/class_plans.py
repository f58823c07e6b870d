# SPDX-License-Identifier: Apache-2.0

"""Plan the classes of a fleet document, and give each host its settings."""

import dataclasses
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.flavors import fleet_plan
from hpcvirt.flavors import host_part
from hpcvirt.flavors import host_settings
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import warning
from hpcvirt.fleet import classes
from hpcvirt.fleet import document as documents
from hpcvirt.model import host as host_model
from hpcvirt.specs import vocabulary


def plan_classes(document: documents.FleetDocument,
                 machines: Mapping[str, Sequence[host_model.Host]],
                 part: host_part.HostPart = host_part.WHOLE,
                 ) -> dict[str, plans.Plan]:
    """Plan each class, with the settings that the document gives its hosts.

    :param machines: class -> its hosts; classes without hosts are left out
    :param part: the part of each host that guests may have
    :raises InvalidInput: naming the class
    """
    found = {}
    for name, own in document.classes.items():
        if not machines.get(name):
            continue
        where = document.locate(name)
        profile = _require_traits(own.read_profile(where), own.traits)
        try:
            plan = planner.plan_hosts(machines[name], profile, part)
            if document.is_file:
                plan = _name_class(plan, name, own)
            found[name] = _use_settings(plan, own)
        except exception.InvalidInput as exc:
            if document.is_file:
                raise exception.InvalidInput(where, str(exc)) from exc
            raise
    return fleet_plan.set_traits(
        fleet_plan.share_aliases(found),
        {name: frozenset(own.traits)
         for name, own in document.classes.items()},
        {name for name, own in document.classes.items() if own.isolated})


def _name_class(plan: plans.Plan, name: str,
                own: classes.FleetClass) -> plans.Plan:
    hosts = tuple(dataclasses.replace(
        host, fleet_class=name, aggregates=own.name_aggregates(name))
        for host in plan.hosts)
    names = tuple(host.name for host in hosts)
    # A warning about all hosts is about those of the class.
    warnings = tuple(
        item if item.subjects or item.is_of_flavors
        else dataclasses.replace(item, subjects=names)
        for item in plan.warnings)
    return dataclasses.replace(plan, hosts=hosts, warnings=warnings)


def _require_traits(profile: profiles.Profile,
                    traits: Iterable[str]) -> profiles.Profile:
    """Let the flavors of a class require the traits of its hosts."""
    required = {vocabulary.TRAIT.at(group='', trait=trait):
                vocabulary.REQUIRED for trait in traits}
    specs = required | dict(profile.extra_specs)
    return dataclasses.replace(profile, extra_specs=tuple(specs.items()))


def check_flavors(document: documents.FleetDocument,
                  planned: Mapping[str, plans.Plan]) -> None:
    """Check that each class has flavors.

    :raises InvalidInput: naming the class
    """
    for name, plan in planned.items():
        try:
            planner.check_flavors(plan)
        except exception.InvalidInput as exc:
            if document.is_file:
                raise exception.InvalidInput(document.locate(name),
                                             str(exc)) from exc
            raise


def _use_settings(plan: plans.Plan, own: classes.FleetClass) -> plans.Plan:
    """Replace planned settings by those that the hosts have."""
    if own.settings == classes.PLANNED:
        return plan
    # Hosts of one kind share their settings and their empty state.
    known: dict[tuple[int, int], plans.PlannedHost] = {}
    hosts = []
    for host in plan.hosts:
        key = id(host.settings), id(host.host.cells)
        if key not in known:
            settings = _find_settings(host, own)
            known[key] = dataclasses.replace(
                host, settings=settings,
                state=host_settings.make_empty_host(host.host, settings))
        first = known[key]
        hosts.append(dataclasses.replace(host, settings=first.settings,
                                         state=first.state))
    return fleet_plan.recount(dataclasses.replace(plan, hosts=tuple(hosts)))


def _find_settings(planned: plans.PlannedHost,
                   own: classes.FleetClass) -> host_settings.HostSettings:
    # Few fleets have such settings.
    from hpcvirt.flavors import current_settings
    if own.conf is None:
        return current_settings.keep_pages(planned.host, planned.settings)
    return current_settings.read_settings(planned.host, own.conf,
                                          planned.settings)


def warn_planned(document: documents.FleetDocument,
                 planned: Mapping[str, plans.Plan],
                 ) -> Iterator[warning.PlanWarning]:
    """Warn of hosts for which answers are not about the pages they have."""
    for name, plan in planned.items():
        if document.classes[name].settings != classes.PLANNED:
            continue
        differing = [host.name for host in plan.hosts
                     if _differs(host.host, host.settings)]
        if differing:
            yield warning.PlanWarning(
                warning.WarningCode.PLANNED_ANEW,
                'CPUs and pages are planned anew, and the pages differ from '
                'the present ones; with "settings: current" in the class, '
                'answers are about the present ones', tuple(differing))


def _differs(host: host_model.Host,
             settings: host_settings.HostSettings) -> bool:
    """Whether a host is known to have other huge pages than planned."""
    if host_model.Unknown.PAGES in host.unknown:
        return False
    for cell in host.cells:
        sizes = [pool.size_kib for pool in cell.pages]
        smallest = min(sizes, default=0)
        now = {pool.size_kib: pool.total for pool in cell.pages
               if pool.size_kib != smallest and pool.total}
        planned = {size: total for size, total
                   in settings.pages[cell.id].items()
                   if size != smallest and total}
        if now != planned:
            return True
    return False
