# SPDX-License-Identifier: Apache-2.0

"""Choose the next trials of an experiment from those that were made.

After each replicate from the second on, choices that are decided beyond doubt
are dropped. The screening ends early if all choices are decided.
"""

import hashlib
from collections.abc import Iterable
from collections.abc import Sequence
from typing import TypeVar

from hpcvirt.tune import analysis
from hpcvirt.tune import space as spaces
from hpcvirt.tune import trial

_Item = TypeVar('_Item')


def next_steps(space: spaces.Space, budget: spaces.Budget,
               trials: Sequence[trial.Trial]) -> tuple[trial.Step, ...]:
    """Return the rest of the current block, in the order of measurement.

    The block is a replicate of the design or a pair of boots. It depends on
    nothing but the arguments, so that an experiment can be continued.

    :param trials: those made so far, in their order
    :returns: no steps at the end
    """
    found = analysis.screen(space, budget, trials)
    made = sum((each.step.stage is trial.Stage.SCREEN)
               == (found.winner is None) for each in trials)
    if found.winner is None:
        block, done = divmod(made, found.design.count)
        lot = f'{budget.lot} block {block}'
        sides = [(trial.Stage.SCREEN, levels) for number, plot in enumerate(
            _shuffle(lot, found.design.plots))
            for levels in _shuffle(f'{lot} plot {number}', plot)]
    else:
        sides = [*dict.fromkeys((trial.Stage.CONFIRM, levels)
                                for levels in (space.today, found.winner))]
        if budget.has_native:
            sides.append((trial.Stage.NATIVE, space.today))
        block, done = divmod(made, len(sides))
        if len(sides) < 2 or block >= budget.pairs:
            return ()
        sides = _shuffle(f'{budget.lot} pair {block}', sides)
    return tuple(trial.Step(stage, block, block % budget.hosts, levels)
                 for stage, levels in sides[done:])


def _shuffle(lot: str, items: Iterable[_Item]) -> list[_Item]:
    return [item for _, _, item in sorted(
        (hashlib.sha256(f'{lot} {place}'.encode()).digest(), place, item)
        for place, item in enumerate(items))]
