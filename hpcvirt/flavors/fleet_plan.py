# SPDX-License-Identifier: Apache-2.0

"""Merge the plans of the classes of a fleet.

Nova knows no classes: a flavor that no trait keeps off a host fits there as
well. The merged plan therefore counts each flavor on the hosts of all classes.
"""

import dataclasses
from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt import words
from hpcvirt.fit import admission
from hpcvirt.fit import capacity
from hpcvirt.fit import guest as guests
from hpcvirt.fit import placement
from hpcvirt.fit import reasons
from hpcvirt.flavors import compiled_flavor
from hpcvirt.flavors import host_settings
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import warning
from hpcvirt.model import flavor as flavor_model


def set_traits(planned: Mapping[str, plans.Plan],
               traits: Mapping[str, frozenset[str]],
               isolated: Container[str] = (),
               ) -> dict[str, plans.Plan]:
    """Give the hosts of each class their traits.

    They are known if a class names traits, or plans flavors that require
    some: ``hpcvirt host config`` gives these to the hosts of the class.

    :param traits: class -> the traits that its hosts have
    :param isolated: the classes whose aggregates keep other flavors off
    """
    own = {}
    for name, plan in planned.items():
        required = frozenset[str]()
        for row in plan.flavors:
            required |= compiled_flavor.make(row.flavor).required
        own[name] = traits.get(name, frozenset()) | required
    if not any(own.values()):
        return dict(planned)
    found = {}
    for name, plan in planned.items():
        kept_for = traits[name] if name in isolated else frozenset[str]()
        found[name] = _replace_states(plan, own[name], kept_for)
    return found


def share_aliases(planned: Mapping[str, plans.Plan],
                  ) -> dict[str, plans.Plan]:
    """Let the devices of each host serve the aliases of all classes.

    nova-api makes requests for vendors and products of aliases, and knows no
    classes: an alias of one class gets devices of another if these are of the
    same product.
    """
    known: list[Mapping[str, str]] = []
    for plan in planned.values():
        for settings in plan.list_settings():
            known += [alias for alias in settings.pci_alias
                      if alias not in known]
    found = {}
    for name, plan in planned.items():
        # Hosts of one kind share their state.
        states: dict[int, placement.HostState] = {}
        hosts = []
        for host in plan.hosts:
            if id(host.state) not in states:
                states[id(host.state)] = _serve_aliases(host, known)
            hosts.append(dataclasses.replace(host,
                                             state=states[id(host.state)]))
        found[name] = dataclasses.replace(plan, hosts=tuple(hosts))
    return found


def _serve_aliases(host: plans.PlannedHost,
                   known: Iterable[Mapping[str, str]],
                   ) -> placement.HostState:
    own = host.settings.pci_alias
    foreign = [alias for alias in known if alias not in own]
    specs = host.settings.pci_device_spec
    # An item without a product is for the devices of its own plan only.
    if not foreign or not specs or any(
            'product_id' not in spec for spec in specs):
        return host.state
    return host_settings.make_empty_host(host.host, dataclasses.replace(
        host.settings, pci_alias=(*own, *foreign)))


def _replace_states(plan: plans.Plan, traits: frozenset[str],
                    kept_for: frozenset[str]) -> plans.Plan:
    # Hosts of one kind share their state.
    states = {id(host.state): dataclasses.replace(
        host.state, traits=traits, kept_for=kept_for) for host in plan.hosts}
    hosts = tuple(dataclasses.replace(host, state=states[id(host.state)])
                  for host in plan.hosts)
    return dataclasses.replace(plan, hosts=hosts)


def merge_plans(planned: Mapping[str, plans.Plan]) -> plans.Plan:
    """Merge the plans of the classes of a fleet.

    :param planned: class -> its plan
    :raises InvalidInput: if the plans of two classes contradict each other
    """
    hosts: list[plans.PlannedHost] = []
    warnings: list[warning.PlanWarning] = []
    for plan in planned.values():
        hosts += plan.hosts
        warnings += plan.warnings
    flavors = tuple(_count_on_others(row, hosts)
                    for row in join_flavors(planned))
    for name in planned:
        warnings += _warn_elsewhere(name, planned, flavors)
    return plans.Plan(tuple(hosts), flavors, warning.gather(warnings))


def _warn_elsewhere(name: str, planned: Mapping[str, plans.Plan],
                    flavors: Iterable[plans.PlannedFlavor],
                    ) -> Iterator[warning.PlanWarning]:
    """Say on which hosts of other classes the flavors of a class fit."""
    planned_by: dict[str, set[str]] = {}
    class_of = {}
    for own, plan in planned.items():
        for row in plan.flavors:
            planned_by.setdefault(row.flavor.name, set()).add(own)
        for host in plan.hosts:
            class_of[host.name] = own
    # The same hosts of other classes -> the flavors that fit there.
    found: dict[tuple[str, ...], list[str]] = {}
    for row in flavors:
        homes = planned_by[row.flavor.name]
        if name not in homes:
            continue
        fitting = tuple(host for host, number in row.per_host.items()
                        if number and class_of[host] not in homes)
        if fitting:
            found.setdefault(fitting, []).append(row.flavor.name)
    for hosts, names in found.items():
        others = list(dict.fromkeys(class_of[host] for host in hosts))
        fit = 'fits' if len(names) == 1 else 'fit'
        noun = 'class' if len(others) == 1 else 'classes'
        own_devices = _find_products(planned[name])
        differ = ''
        for own in others:
            there = _find_products(planned[own])
            if any(there.get(alias, product) != product
                   for alias, product in own_devices.items()):
                differ = ', with other devices of the same alias'
        advice = f'traits of the class {name}'
        if planned[name].hosts[0].state.traits:
            # The hosts on which its flavors fit have all of these.
            advice = f'a trait of the class {name} alone'
        yield warning.PlanWarning(
            warning.WarningCode.FITS_ELSEWHERE,
            f'planned for the class {name}, and also {fit} on '
            f'{words.count_noun(len(hosts), "host")} of the {noun} '
            f'{", ".join(others)}{differ}; {advice} would keep its flavors to '
            'its hosts', tuple(names))


def _find_products(plan: plans.Plan) -> dict[str, tuple[str | None, ...]]:
    """Find the vendor and the product of each alias of a class."""
    return {wanted.alias: (wanted.vendor_id, wanted.product_id)
            for wanted in plan.hosts[0].profile.devices if wanted.has_alias}


def join_flavors(planned: Mapping[str, plans.Plan],
                 ) -> list[plans.PlannedFlavor]:
    """Join the flavors of classes; equal flavors of two classes are one.

    :raises InvalidInput: if the plans of two classes contradict each other
    """
    rows: dict[str, tuple[str, plans.PlannedFlavor]] = {}
    aliases: dict[str, tuple[str, tuple[str, ...]]] = {}
    in_placement = any(plan.has_sets for plan in planned.values())
    for name, plan in planned.items():
        _check_packing(planned, name)
        for host in plan.hosts:
            for item in host.settings.pci_alias:
                _check_alias(aliases, name, item, in_placement)
        for row in plan.flavors:
            _add_flavor(rows, name, row)
    return [row for _, row in rows.values()]


def _check_packing(planned: Mapping[str, plans.Plan], name: str) -> None:
    first = next(iter(planned))
    packing = planned[name].packing
    if packing != planned[first].packing:
        raise exception.InvalidInput(
            f'class {name[:64]}', f'has pack_cells: {str(packing).lower()}, '
            f'unlike class {first[:64]}; '
            'packing_host_numa_cells_allocation_strategy must be the same on '
            'nova-scheduler and on all compute hosts, so give pack_cells the '
            'same value in all profiles')


def _check_alias(known: dict[str, tuple[str, tuple[str, ...]]], name: str,
                 item: Mapping[str, str], in_placement: bool) -> None:
    """Check that an alias means the same in all classes.

    :param known: alias -> the first class that has it, and what it means
    :param in_placement: whether Nova asks Placement for devices
    """
    # An operator's own alias may leave these to Nova.
    kind = [item.get('device_type', 'type-PCI'),
            item.get('numa_policy', 'legacy')]
    if in_placement:
        # Placement takes an alias for devices of one product.
        kind += [item.get('vendor_id', 'any vendor'),
                 item.get('product_id', 'any product')]
    other, first = known.setdefault(item['name'], (name, tuple(kind)))
    if tuple(kind) != first:
        raise exception.InvalidInput(
            f'class {name[:64]}', f'has a PCI alias {item["name"]} of '
            f'{" and ".join(kind)}, and class {other[:64]} one of '
            f'{" and ".join(first)}; Nova refuses that, so give each class an '
            'alias of its own')


def _add_flavor(rows: dict[str, tuple[str, plans.PlannedFlavor]], name: str,
                row: plans.PlannedFlavor) -> None:
    """Add a flavor to those of other classes.

    :param rows: flavor -> the first class that plans it, and its row
    """
    other, same = rows.setdefault(row.flavor.name, (name, row))
    if same.flavor != row.flavor:
        raise exception.InvalidInput(
            f'class {name[:64]}', f'plans a flavor {row.flavor.name}, and '
            f'class {other[:64]} one of this name with other content; give '
            'each class a name_prefix')
    rows[row.flavor.name] = other, dataclasses.replace(
        row, shares={**same.shares, **row.shares},
        per_host={**same.per_host, **row.per_host},
        unused={**same.unused, **row.unused})


def _count_on_others(row: plans.PlannedFlavor,
                     hosts: Sequence[plans.PlannedHost],
                     ) -> plans.PlannedFlavor:
    """Count a flavor on the hosts of classes that have not planned it."""
    per_host, unused = dict(row.per_host), dict(row.unused)
    guest = compiled_flavor.make(row.flavor)
    # Hosts of one kind share their state.
    counts: dict[int, tuple[int, plans.Unused]] = {}
    for host in hosts:
        if host.name in per_host:
            continue
        if id(host.state) not in counts:
            counts[id(host.state)] = _count(row, guest, host)
        per_host[host.name], unused[host.name] = counts[id(host.state)]
    return dataclasses.replace(row, per_host=per_host, unused=unused)


def recount(plan: plans.Plan) -> plans.Plan:
    """Count all flavors of a plan again, because the hosts have changed.

    Flavors that no host takes any more are left out.
    """
    kept = []
    left_out = []
    for row in plan.flavors:
        bare = dataclasses.replace(row, per_host={}, unused={})
        counted = _count_on_others(bare, plan.hosts)
        if any(counted.per_host.values()):
            kept.append(counted)
        else:
            left_out.append(_warn_left_out(row.flavor, plan.hosts[0]))
    return dataclasses.replace(plan, flavors=tuple(kept), warnings=(
        *plan.warnings, *left_out))


def _warn_left_out(flavor: flavor_model.Flavor,
                   host: plans.PlannedHost) -> warning.PlanWarning:
    placed = admission.predict(compiled_flavor.make(flavor), host.state)
    reason = placed.message if isinstance(placed, reasons.Misfit) else ''
    return warning.PlanWarning(
        warning.WarningCode.SIZE_NOT_PLACED,
        f'left out, because no host takes one: {reason}', (flavor.name,))


def _count(row: plans.PlannedFlavor, guest: guests.Guest,
           host: plans.PlannedHost) -> tuple[int, plans.Unused]:
    filling = capacity.fill(guest, host.state)
    return filling.count, plans.measure_left(host, row.guest, filling)
