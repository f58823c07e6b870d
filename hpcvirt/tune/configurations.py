# SPDX-License-Identifier: Apache-2.0

"""The configurations of an experiment: a flavor and settings of the host.

The profile of a configuration is today's with the changes of its values. The
planner makes its flavors and the settings of the host; the guests have the
largest flavor of which exactly the wanted number of instances fits on a host.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable
from collections.abc import Mapping
from typing import Any

from hpcvirt import exception
from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import planner
from hpcvirt.flavors import profile as profiles
from hpcvirt.flavors import settings as host_settings
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import host as host_model
from hpcvirt.model import shape as shape_model
from hpcvirt.specs import vocabulary
from hpcvirt.tune import experiment as experiments
from hpcvirt.tune import space as spaces
from hpcvirt.tune import trial


@dataclasses.dataclass(frozen=True)
class Configuration:
    """A configuration of a host and its guests.

    :ivar content: the profile, as ``flavor plan`` takes it from a file
    :ivar settings: the settings that the host needs
    :ivar host_values: the names and values of ``host``, for ``apply``
    :ivar flavor: the flavor of the guests, without the extra spec that marks
        flavors of a plan, so that "hpcvirt flavor apply" ignores it
    :ivar guests: how many instances of the flavor fill a host
    """

    content: Mapping[str, Any]
    settings: host_settings.HostSettings
    host_values: Mapping[str, str]
    flavor: flavor_model.Flavor
    guest: shape_model.Shape
    guests: int

    @property
    def cost(self) -> spaces.HostCost:
        """What a host gives to its guests."""
        threads = self.guest.topology.threads if self.guest.topology else 1
        return spaces.HostCost(self.guests,
                               self.guests * (self.guest.cpus // threads),
                               self.guests * self.guest.memory_mib)


def plan(experiment: experiments.Experiment, host: host_model.Host,
         profile: Mapping[str, Any], where: str,
         ) -> dict[trial.Levels, Configuration]:
    """Plan all configurations of an experiment.

    :param profile: the content of today's profile
    :param where: the file, for errors
    :raises InvalidInput: if one cannot be planned, naming its values
    """
    find_plan = functools.cache(lambda profile: planner.plan([host], profile))
    found = {}
    for levels in itertools.product(*map(range, map(
            len, experiment.values.values()))):
        try:
            found[levels] = _plan(experiment, levels, profile, find_plan)
        except exception.InvalidInput as exc:
            raise exception.InvalidInput(
                f'{where}: {experiment.format_levels(levels)}', str(exc),
            ) from exc
    return found


def _plan(experiment: experiments.Experiment, levels: trial.Levels,
          today: Mapping[str, Any],
          find_plan: Callable[[profiles.Profile], plans.Plan],
          ) -> Configuration:
    changes = [list(own.values())[level - 1] for own, level in zip(
        experiment.choices.values(), levels, strict=True) if level]
    # A profile with a base is a whole one.
    content = {} if any('base' in change.profile for change in changes
                        ) else dict(today)
    for change in changes:
        content.update(change.profile)
    profile = profiles.build(content, 'profile')
    specs = {key: item for change in changes
             for key, item in change.extra_specs.items()}
    if specs:
        content['extra_specs'] = {**dict(profile.extra_specs), **specs}
        profile = profiles.build(content, 'profile')
    guests = next((change.guests_per_host for change in changes
                   if change.guests_per_host), experiment.guests_per_host)
    if guests < experiment.never.fewer_guests_than:
        raise exception.InvalidInput(
            'guests_per_host', f'is {guests}, and never.fewer_guests_than is '
            f'{experiment.never.fewer_guests_than}')
    found = find_plan(profile)
    (host,) = found.hosts
    rows: dict[int, list[plans.PlannedFlavor]] = {}
    for row in found.flavors:
        rows.setdefault(row.per_host[host.name], []).append(row)
    if guests not in rows:
        raise exception.InvalidInput(
            'guests_per_host', f'is {guests}, but the flavors of the profile '
            f'fit {", ".join(map(str, sorted(rows.keys() - {0})))} times on a '
            'host')
    row = max(rows[guests], key=lambda row: (row.guest.pcpus,
                                             row.guest.memory_mib))
    extra_specs = dict(row.flavor.extra_specs)
    del extra_specs[vocabulary.GENERATED_BY.name]
    return Configuration(
        content, host.settings, {key: item for change in changes
                                 for key, item in change.host.items()},
        dataclasses.replace(row.flavor, extra_specs=extra_specs), row.guest,
        guests)


def make_space(experiment: experiments.Experiment,
               planned: Mapping[trial.Levels, Configuration],
               where: str) -> spaces.Space:
    """Make the space of an experiment.

    A choice has a reboot if a change of its value changes the settings of the
    host in any configuration.

    :raises InvalidInput: if a reboot needs the key ``apply``
    """
    choices = experiment.values
    rebooting = {
        name for levels, own in planned.items()
        for place, name in enumerate(choices)
        for other in [planned[*levels[:place], 0, *levels[place + 1:]]]
        if (own.settings, own.host_values) != (other.settings,
                                               other.host_values)}
    if rebooting and not experiment.apply:
        raise exception.InvalidInput(
            f'{where}: choices[{min(rebooting)!r}]', 'changes the settings of '
            'hosts, which needs the key apply, the command that brings them '
            'to a host')
    weights = sum(each.weight for each in experiment.programs.values())
    return spaces.Space(
        tuple(spaces.Choice(name, values, tuple(
            planned[tuple(level * (other == name) for other in choices)].cost
            for level in range(len(values))), name in rebooting)
            for name, values in choices.items()),
        {name: each.weight / weights
         for name, each in experiment.programs.items()},
        math.log1p(experiment.matters_percent / 100),
        experiment.never.slower_than, experiment.objective,
        tuple((one, other) for one, other in (
            sorted(map(list(choices).index, pair))
            for pair in experiment.interactions)))
