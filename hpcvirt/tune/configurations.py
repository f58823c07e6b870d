# SPDX-License-Identifier: Apache-2.0

"""The configurations of an experiment: a flavor and settings of the host."""

import dataclasses
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt.flavors import planned as plans
from hpcvirt.flavors import settings as host_settings
from hpcvirt.model import flavor as flavor_model
from hpcvirt.model import host as host_model
from hpcvirt.model import shape as shape_model
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

    def needs_change(self, other: 'Configuration') -> bool:
        """Tell whether a host must be changed to get from one to another."""
        return (self.settings, self.host_values) != (
            other.settings, other.host_values)


class Configurations:
    """The configurations of an experiment, each of which is planned once.

    :param hosts: the hosts, which differ only in their names
    :param profile: the content of today's profile
    :param where: the file, for errors
    """

    def __init__(self, experiment: experiments.Experiment,
                 hosts: Sequence[host_model.Host],
                 profile: Mapping[str, Any], where: str) -> None:
        raise NotImplementedError

    def plan(self, levels: trial.Levels) -> Configuration:
        """Plan a configuration.

        :raises InvalidInput: if it cannot be planned, naming its values
        """
        raise NotImplementedError

    def make_space(self) -> spaces.Space:
        """Make the space, with the cost of every value.

        :raises InvalidInput: if a value cannot be planned
        """
        raise NotImplementedError
