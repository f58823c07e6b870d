# SPDX-License-Identifier: Apache-2.0

"""Plan the configurations of an experiment, and how much of it is measured.

A configuration is a flavor and settings of the host. Its profile is today's
with the changes of its values, from which the planner makes the settings and
the flavors. The guests have the largest flavor of which exactly the wanted
number of instances fits on a host.
"""

import bisect
import dataclasses
import functools
import itertools
import math
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt import exception
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.model import host as host_model
from hpcvirt.specs import vocabulary
from hpcvirt.tune import design as designs
from hpcvirt.tune import effects
from hpcvirt.tune import experiment as experiments
from hpcvirt.tune import model


def plan(experiment: experiments.Experiment,
         hosts: tuple[host_model.Host, ...], profile: Mapping[str, Any],
         where: str) -> model.Space:
    """Plan all configurations of an experiment.

    :param hosts: are alike; the flavors are those of the least memory that a
        cell has on any of them, so that they fit on all
    :param profile: the content of today's profile
    :raises InvalidInput: if one cannot be planned, naming its values, or a
        reboot needs the key ``apply``
    """
    choices = experiment.choices
    smallest = take_smallest(hosts)
    find_plan = functools.cache(lambda own: planner.plan((smallest,), own))
    planned = {}
    for levels in itertools.product(*(
            range(len(own) + 1) for own in choices.values())):
        try:
            planned[levels] = _plan(experiment, levels, profile, find_plan)
        except exception.InvalidInput as exc:
            raise exception.InvalidInput(
                f'{where}: {experiment.format_levels(levels)}', str(exc),
            ) from exc
    rebooting = _find_rebooting(choices, planned)
    if rebooting and not experiment.apply:
        raise exception.InvalidInput(
            f'{where}: choices[{min(rebooting)!r}]', 'changes the settings of '
            'hosts, which needs the key apply, the command that brings them '
            'to a host')
    return model.Space(experiment, tuple(
        model.Choice(name, (experiments.TODAY, *own), tuple(
            _find_cost(planned[tuple(level * (other == name)
                                     for other in choices)])
            for level in range(len(own) + 1)), name in rebooting)
        for name, own in choices.items()), planned, hosts)


def take_smallest(hosts: Sequence[host_model.Host]) -> host_model.Host:
    """Make a host whose cells have the least memory of those of the hosts.

    Equal machines differ by the memory that the kernel keeps for itself.
    """
    cells = [min(same, key=lambda cell: cell.memory_mib)
             for same in zip(*(host.cells for host in hosts), strict=True)]
    return dataclasses.replace(hosts[0], cells=tuple(cells))


def _plan(experiment: experiments.Experiment, levels: model.Levels,
          today: Mapping[str, Any],
          find_plan: Callable[[profiles.Profile], plans.Plan],
          ) -> model.Configuration:
    changes = [list(own.values())[level - 1] for own, level in zip(
        experiment.choices.values(), levels, strict=True) if level]
    content = _merge(change.profile for change in changes)
    # A profile with a base is a whole one.
    content = content if 'base' in content else {**today, **content}
    profile = profiles.build(content, 'profile')
    specs = _merge(change.extra_specs for change in changes)
    if specs:
        content['extra_specs'] = {**dict(profile.extra_specs), **specs}
        profile = profiles.build(content, 'profile')
    guests = next((change.guests_per_host for change in changes
                   if change.guests_per_host), experiment.guests_per_host)
    found = find_plan(profile)
    (host,) = found.hosts
    rows = {row.per_host[host.name]: row for row in sorted(
        found.flavors, key=lambda row: (row.guest.pcpus, row.guest.memory_mib))
        if row.per_host[host.name] >= experiment.never.fewer_guests_than}
    if guests not in rows:
        raise exception.InvalidInput(
            'guests_per_host', f'is {guests}, but the flavors of the profile '
            'and never.fewer_guests_than allow '
            + ', '.join(map(str, sorted(rows))))
    row = rows[guests]
    extra_specs = dict(row.flavor.extra_specs)
    del extra_specs[vocabulary.GENERATED_BY.name]
    return model.Configuration(
        content, host.settings, _merge(change.host for change in changes),
        dataclasses.replace(row.flavor, extra_specs=extra_specs), row.guest,
        guests)


def _find_rebooting(
        choices: Iterable[str],
        planned: Mapping[model.Levels, model.Configuration]) -> set[str]:
    """Find the choices that change the settings of hosts."""
    rebooting: set[str] = set()
    for place, name in enumerate(choices):
        for levels, own in planned.items():
            today = planned[*levels[:place], 0, *levels[place + 1:]]
            if own.host_state != today.host_state:
                rebooting.add(name)
    return rebooting


def _merge(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for part in parts:
        merged |= part
    return merged


def _find_cost(planned: model.Configuration) -> model.HostCost:
    guest, guests = planned.guest, planned.guests
    threads = guest.topology.threads if guest.topology else 1
    return model.HostCost(guests, guests * (guest.cpus // threads),
                          guests * guest.memory_mib)


def count(space: model.Space) -> dict[str, float]:
    """Count what an experiment takes at most, of one host after the other.

    A choice that is decided early takes less, and so do two boots in turn that
    need the same settings of the host.

    :returns: the numbers of ``runs`` besides the warm-ups, ``boots``,
        ``reboots`` and ``hours``
    """
    experiment, design = space.experiment, designs.make(space)
    pairs = experiment.confirm_boots
    boots = space.replicates * len(design.levels) + 2 * pairs
    trials = boots + (experiment.native is not None) * pairs
    reboots = any(choice.has_reboot for choice in space.choices) * (
        space.replicates * len(design.plots) + 2 * pairs + len(space.hosts))
    minutes = (
        trials * (experiment.samples + 1)
        * sum(program.minutes for program in experiment.programs.values())
        + boots * experiment.boot_minutes
        + reboots * experiment.reboot_minutes)
    return {'runs': trials * experiment.samples * len(experiment.programs),
            'boots': boots, 'reboots': reboots, 'hours': minutes / 60}


def plan_replicates(space: model.Space, where: str) -> model.Space:
    """Return the space with as many replicates as its limits allow.

    :raises InvalidInput: if they do not show a difference that matters, with
        what would be needed
    """
    experiment = space.experiment

    def repeat(replicates: int) -> model.Space:
        return dataclasses.replace(space, replicates=replicates)
    one, two = count(repeat(1)), count(repeat(2))
    most = min(effects.MAX_REPLICATES, *(
        1 + int((limit - one[key] + 1e-9) // (two[key] - one[key]))
        for key, limit in vars(experiment.limits).items()
        if two[key] > one[key]))
    wanted = bisect.bisect_left(
        range(effects.MAX_REPLICATES + 1), True, key=lambda number: max(
            effects.smallest_effects(repeat(number))) <= space.matters)
    if wanted <= most:
        return repeat(most)
    fault = ('are too tight for differences of '
             f'{experiment.matters_percent:g} %; ')
    if wanted > effects.MAX_REPLICATES:
        fault += (f'even {effects.MAX_REPLICATES} replicates are too few, so '
                  'let matters_percent be larger')
    else:
        needed = count(repeat(wanted))
        fault += (f'needed are hours: {math.ceil(10 * needed["hours"]) / 10:g}'
                  f' and reboots: {needed["reboots"]:g}')
    raise exception.InvalidInput(f'{where}: limits', fault)
