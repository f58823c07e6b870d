# SPDX-License-Identifier: Apache-2.0

"""Choose how much is measured within the limits of an experiment.

The figures are upper limits: a choice that is decided early is not measured
any more, and two boots in turn may need the same settings of the host.
"""

import dataclasses
import math

from hpcvirt import exception
from hpcvirt.tune import design as designs
from hpcvirt.tune import effects
from hpcvirt.tune import experiment as experiments
from hpcvirt.tune import space as spaces

#: Replicates beyond this number would hardly tell more.
_MAX_REPLICATES = 1000


@dataclasses.dataclass(frozen=True)
class Consumption:
    """What an experiment takes, at most.

    :ivar trials: with those of the confirmation and on the native side
    :ivar boots: of a host full of guests
    :ivar reboots: changes of the settings of a host, and back
    """

    trials: int
    boots: int
    reboots: int
    hours: float


def count(experiment: experiments.Experiment, space: spaces.Space,
          budget: spaces.Budget) -> Consumption:
    """Count what a budget takes, of one host after the other."""
    design = designs.make(space)
    native = budget.pairs if budget.has_native else 0
    boots = budget.replicates * design.count + 2 * budget.pairs
    reboots = 0
    if any(choice.has_reboot for choice in space.choices):
        reboots = (budget.replicates * len(design.plots) + 2 * budget.pairs
                   + budget.hosts)
    minutes = (
        (boots + native) * (experiment.samples + 1)
        * sum(program.minutes for program in experiment.programs)
        + boots * experiment.boot_minutes
        + reboots * experiment.reboot_minutes)
    return Consumption(boots + native, boots, reboots, minutes / 60)


def make(experiment: experiments.Experiment, space: spaces.Space, hosts: int,
         where: str, *, has_native: bool = False,
         has_screening: bool = True) -> spaces.Budget:
    """Make the largest budget within the limits.

    :param hosts: number of hosts
    :param where: the file, for errors
    :raises InvalidInput: if it does not show a difference that matters, with
        what would be needed
    """
    budget = spaces.Budget(0, experiment.confirm_boots, hosts,
                           experiment.name, has_native)
    none = count(experiment, space, budget)
    one = count(experiment, space, dataclasses.replace(budget, replicates=1))
    limits = experiment.limits
    fitting = [_MAX_REPLICATES] + [
        math.floor((limit - least) / (more - least) + 1e-9)
        for limit, least, more in (
            (limits.hours, none.hours, one.hours),
            (limits.reboots, none.reboots, one.reboots)) if more > least]
    noise = math.log1p(experiment.noise_percent / 100)
    if has_screening:
        budget = dataclasses.replace(budget, replicates=max(0, min(fitting)))
        smallest = max(effects.smallest_effects(space, budget, noise))
        if smallest <= space.matters:
            return budget
        wanted = effects.find_replicates(space, budget, noise)
        fault = (f'are too tight for differences of '
                 f'{experiment.matters_percent:g} %')
        if math.isfinite(smallest):
            fault += (' (they suffice for matters_percent: '
                      f'{math.ceil(math.expm1(smallest) * 1000) / 10:g})')
        if wanted is None:
            raise exception.InvalidInput(
                f'{where}: limits', f'{fault}; even 1000 replicates are too '
                'few, so let matters_percent be larger')
        none = count(experiment, space,
                     dataclasses.replace(budget, replicates=wanted))
    elif none.hours <= limits.hours and none.reboots <= limits.reboots:
        return budget
    else:
        fault = 'are too tight to confirm a profile'
    raise exception.InvalidInput(
        f'{where}: limits', f'{fault}; needed are hours: '
        f'{math.ceil(none.hours * 10) / 10:g} and reboots: {none.reboots}')
