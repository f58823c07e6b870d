# SPDX-License-Identifier: Apache-2.0

"""The configurations of an experiment: a flavor and settings of the host.

The profile of a configuration is today's with the changes of its values. The
planner makes its flavors and the settings of the host; the guests have the
largest flavor of which exactly the wanted number of instances fits on a host.
"""

import dataclasses
import itertools
import math
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
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
    :ivar planned: the first host with its settings
    :ivar flavor: the flavor of the guests, without the extra spec that marks
        flavors of a plan, so that "hpcvirt flavor apply" ignores it
    :ivar guests: how many instances of the flavor fill a host
    :ivar host_values: the names and values of ``host``, for ``apply``
    """

    levels: trial.Levels
    content: Mapping[str, Any]
    planned: plans.PlannedHost
    flavor: flavor_model.Flavor
    guest: shape_model.Shape
    guests: int
    host_values: Mapping[str, str]

    @property
    def settings(self) -> host_settings.HostSettings:
        """The settings that the host needs."""
        return self.planned.settings

    @property
    def cost(self) -> spaces.HostCost:
        """What a host gives to its guests."""
        threads = self.guest.topology.threads if self.guest.topology else 1
        return spaces.HostCost(self.guests,
                               self.guests * (self.guest.cpus // threads),
                               self.guests * self.guest.memory_mib)


class Configurations:
    """The configurations of an experiment, each of which is planned once.

    :param hosts: the hosts, which differ only in their names
    :param profile: the content of today's profile
    :param where: the file, for errors
    :param given: the content of a profile that replaces today's in the second
        value of the only choice
    :raises InvalidInput: if the hosts differ in more than their names, or
        today's profile is wrong
    """

    def __init__(self, experiment: experiments.Experiment,
                 hosts: Sequence[host_model.Host],
                 profile: Mapping[str, Any], where: str,
                 given: Mapping[str, Any] | None = None) -> None:
        kinds = host_model.group_twins(hosts)
        if len(kinds) > 1:
            raise exception.InvalidInput(
                f'{where}: hosts', f'{kinds[0][0].name} and '
                f'{kinds[1][0].name} are not alike; an experiment needs hosts '
                'with the same topology')
        profiles.build(profile, f'{where}: profile')
        self._experiment = experiment
        self._host = hosts[0]
        self._today = profile
        self._given = given
        self._where = where
        self._plans: dict[profiles.Profile, plans.Plan] = {}
        self._known: dict[trial.Levels, Configuration] = {}

    def plan(self, levels: trial.Levels) -> Configuration:
        """Plan a configuration.

        :raises InvalidInput: if it cannot be planned, naming its values
        """
        if levels not in self._known:
            where = f'{self._where}: {self.format_levels(levels)}'
            try:
                self._known[levels] = self._make(levels)
            except exception.InvalidInput as exc:
                raise exception.InvalidInput(where, str(exc)) from exc
        return self._known[levels]

    def format_levels(self, levels: trial.Levels) -> str:
        """Write ``CHOICE=VALUE, CHOICE=VALUE``, or ``today``."""
        return ', '.join(
            f'{name}={values[level]}' for level, (name, values) in zip(
                levels, self._experiment.values.items(), strict=True)
            if level) or experiments.TODAY

    def make_space(self) -> spaces.Space:
        """Make the space, with the cost of every value.

        A choice has a reboot if one of its values changes the settings of the
        host, alone or together with a value of another choice.

        :raises InvalidInput: if one or two values together cannot be planned
        """
        experiment = self._experiment
        names = list(experiment.choices)
        today = (0,) * len(names)
        rebooting = set()
        for levels in self._list_pairs():
            for place in range(len(names)):
                own, other = map(self.plan, (
                    levels, (*levels[:place], 0, *levels[place + 1:])))
                if (own.settings, own.host_values) != (
                        other.settings, other.host_values):
                    rebooting.add(place)
        for place in sorted(rebooting):
            if not experiment.apply:
                raise exception.InvalidInput(
                    f'{self._where}: choices[{names[place]!r}]', 'changes the '
                    'settings of hosts, which needs the key apply, the '
                    'command that brings them to a host')
        weights = sum(each.weight for each in experiment.programs)
        return spaces.Space(
            tuple(spaces.Choice(name, values, tuple(
                self.plan((*today[:place], level, *today[place + 1:])).cost
                for level in range(len(values))), place in rebooting)
                for place, (name, values) in enumerate(
                    experiment.values.items())),
            {each.label: each.weight / weights
             for each in experiment.programs},
            math.log1p(experiment.matters_percent / 100),
            experiment.never.slower_than, experiment.objective,
            tuple((names.index(one), names.index(other))
                  for one, other in experiment.interactions))

    def _list_pairs(self) -> Iterator[trial.Levels]:
        """List the configurations with one or two values but today's."""
        choices = self._experiment.choices.values()
        for pair in itertools.combinations_with_replacement((
                (place, level) for place, own in enumerate(choices)
                for level in range(1, len(own) + 1)), 2):
            levels = dict(pair)
            yield tuple(levels.get(place, 0) for place in range(len(choices)))

    def _make(self, levels: trial.Levels) -> Configuration:
        changes = [own[values[level]] for own, values, level in zip(
            self._experiment.choices.values(),
            self._experiment.values.values(), levels, strict=True) if level]
        content = dict(self._today if self._given is None or not any(levels)
                       else self._given)
        specs = dict(content.get('extra_specs', {}))
        wanted = self._experiment.guests_per_host
        host_values: dict[str, str] = {}
        for change in changes:
            content.update(change.profile)
            specs.update(change.extra_specs)
            host_values.update(change.host)
            wanted = change.guests_per_host or wanted
        if specs:
            content['extra_specs'] = specs
        profile = profiles.build(content, 'profile')
        if profile not in self._plans:
            self._plans[profile] = planner.plan([self._host], profile)
        plan = self._plans[profile]
        row = self._choose(plan, wanted)
        extra_specs = dict(row.flavor.extra_specs)
        del extra_specs[vocabulary.GENERATED_BY.name]
        return Configuration(
            levels, content, plan.hosts[0],
            dataclasses.replace(row.flavor, extra_specs=extra_specs),
            row.guest, wanted, host_values)

    def _choose(self, plan: plans.Plan, wanted: int) -> plans.PlannedFlavor:
        """Choose the largest flavor that fills a host with a number."""
        least = self._experiment.never.fewer_guests_than
        if wanted < least:
            raise exception.InvalidInput(
                'guests_per_host', f'is {wanted}, and never.fewer_guests_than '
                f'is {least}')
        rows = [row for row in plan.flavors
                if row.per_host[self._host.name] == wanted]
        if not rows:
            known = sorted({row.per_host[self._host.name]
                            for row in plan.flavors} - {0})
            raise exception.InvalidInput(
                'guests_per_host', f'is {wanted}, but the flavors of the '
                f'profile fit {", ".join(map(str, known))} times on a host')
        return max(rows, key=lambda row: (row.guest.pcpus,
                                          row.guest.memory_mib))
