# SPDX-License-Identifier: Apache-2.0

"""Choose how much is measured within the limits of an experiment."""

import bisect
import dataclasses
import math

from hpcvirt import exception
from hpcvirt.tune import design as designs
from hpcvirt.tune import effects
from hpcvirt.tune import experiment as experiments
from hpcvirt.tune import space as spaces

#: Replicates beyond this number would hardly tell more.
_MAX_REPLICATES = 1000


def count(experiment: experiments.Experiment, space: spaces.Space,
          budget: spaces.Budget) -> dict[str, float]:
    """Count what a budget takes at most, of one host after the other.

    A choice that is decided early takes less, and so do two boots in turn that
    need the same settings of the host.

    :returns: the numbers of ``runs`` besides the warm-ups, ``boots``,
        ``reboots`` and ``hours``
    """
    design = designs.make(space)
    boots = budget.replicates * design.count + 2 * budget.pairs
    trials = boots + budget.has_native * budget.pairs
    reboots = any(choice.has_reboot for choice in space.choices) * (
        budget.replicates * len(design.plots) + 2 * budget.pairs
        + budget.hosts)
    minutes = (
        trials * (experiment.samples + 1)
        * sum(program.minutes for program in experiment.programs.values())
        + boots * experiment.boot_minutes
        + reboots * experiment.reboot_minutes)
    return {'runs': trials * experiment.samples * len(experiment.programs),
            'boots': boots, 'reboots': reboots, 'hours': minutes / 60}


def make(experiment: experiments.Experiment, space: spaces.Space, hosts: int,
         where: str) -> spaces.Budget:
    """Make the largest budget within the limits.

    :param hosts: number of hosts
    :param where: the file, for errors
    :raises InvalidInput: if it does not show a difference that matters, with
        what would be needed
    """
    budget = spaces.Budget(
        0, experiment.confirm_boots, hosts, experiment.name,
        experiment.native is not None)

    def repeat(replicates: int) -> dict[str, float]:
        return count(experiment, space, dataclasses.replace(
            budget, replicates=replicates))
    most = bisect.bisect_left(
        range(1, _MAX_REPLICATES + 1), True, key=lambda replicates: any(
            repeat(replicates)[key] > limit + 1e-9
            for key, limit in vars(experiment.limits).items()))
    wanted = effects.find_replicates(
        space, budget, math.log1p(experiment.noise_percent / 100))
    if wanted is not None and wanted <= most:
        return dataclasses.replace(budget, replicates=most)
    fault = ('are too tight for differences of '
             f'{experiment.matters_percent:g} %')
    if wanted is None:
        raise exception.InvalidInput(
            f'{where}: limits', f'{fault}; even {_MAX_REPLICATES} replicates '
            'are too few, so let matters_percent be larger')
    needed = repeat(wanted)
    raise exception.InvalidInput(
        f'{where}: limits', f'{fault}; needed are hours: '
        f'{math.ceil(10 * needed["hours"]) / 10:g} and reboots: '
        f'{needed["reboots"]:g}')
