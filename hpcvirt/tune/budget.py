# SPDX-License-Identifier: Apache-2.0

"""Choose how much is measured within the limits of an experiment.

The figures are upper limits: a choice that is decided early is not measured
any more, and two boots in turn may need the same settings of the host.
"""

import bisect
import math
from typing import NamedTuple

from hpcvirt import exception
from hpcvirt.tune import design as designs
from hpcvirt.tune import effects
from hpcvirt.tune import experiment as experiments
from hpcvirt.tune import space as spaces

#: Replicates beyond this number would hardly tell more.
_MAX_REPLICATES = 1000


class Consumption(NamedTuple):
    """What an experiment takes, at most.

    :ivar runs: of programs, besides the warm-ups
    :ivar reboots: changes of the settings of a host, and back
    """

    runs: int
    boots: int
    reboots: int
    hours: float


def count(experiment: experiments.Experiment, space: spaces.Space,
          budget: spaces.Budget) -> Consumption:
    """Count what a budget takes, of one host after the other."""
    design = designs.make(space)
    pairs, replicates = budget.pairs, budget.replicates
    boots = replicates * design.count + 2 * pairs
    trials = boots + budget.has_native * pairs
    reboots = (replicates * len(design.plots) + 2 * pairs + budget.hosts
               if any(choice.has_reboot for choice in space.choices) else 0)
    minutes = (
        trials * (experiment.samples + 1)
        * sum(program.minutes for program in experiment.programs.values())
        + boots * experiment.boot_minutes
        + reboots * experiment.reboot_minutes)
    return Consumption(
        trials * experiment.samples * len(experiment.programs), boots, reboots,
        minutes / 60)


def make(experiment: experiments.Experiment, space: spaces.Space, hosts: int,
         where: str) -> spaces.Budget:
    """Make the largest budget within the limits.

    :param hosts: number of hosts
    :param where: the file, for errors
    :raises InvalidInput: if it does not show a difference that matters, with
        what would be needed
    """
    def repeat(replicates: int) -> spaces.Budget:
        return spaces.Budget(
            replicates, experiment.confirm_boots, hosts, experiment.name,
            experiment.native is not None)

    def is_too_much(replicates: int) -> bool:
        taken = count(experiment, space, repeat(replicates))
        return (taken.hours > experiment.limits.hours + 1e-9
                or taken.reboots > experiment.limits.reboots)
    budget = repeat(bisect.bisect_left(
        range(1, _MAX_REPLICATES + 1), True, key=is_too_much))
    wanted = effects.find_replicates(
        space, budget, math.log1p(experiment.noise_percent / 100))
    if wanted is not None and wanted <= budget.replicates:
        return budget
    fault = ('are too tight for differences of '
             f'{experiment.matters_percent:g} %')
    if wanted is None:
        raise exception.InvalidInput(
            f'{where}: limits', f'{fault}; even {_MAX_REPLICATES} replicates '
            'are too few, so let matters_percent be larger')
    needed = count(experiment, space, repeat(wanted))
    raise exception.InvalidInput(
        f'{where}: limits', f'{fault}; needed are hours: '
        f'{math.ceil(needed.hours * 10) / 10:g} and reboots: {needed.reboots}')
