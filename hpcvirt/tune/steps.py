# SPDX-License-Identifier: Apache-2.0

"""Choose the next trials of an experiment from those that were made.

A replicate has the whole design, in a block. After each replicate from the
second on, choices that are decided beyond doubt are dropped. The screening
ends early if all choices are decided.
"""

import collections
import hashlib
from collections.abc import Iterable
from collections.abc import Sequence
from typing import TypeVar

from hpcvirt.tune import recommendation
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
    found = recommendation.screen(space, budget, trials)
    if found.winner is None:
        block = len(found.replicates)
        steps = _make_steps(budget, block, (
            (trial.Stage.SCREEN, levels)
            for number, plot in enumerate(_shuffle(
                f'{budget.lot} block {block}',
                found.design.plots))
            for levels in _shuffle(
                f'{budget.lot} block {block} plot {number}', plot)))
    else:
        sides = [*dict.fromkeys((trial.Stage.CONFIRM, levels)
                                for levels in (space.today, found.winner))]
        if budget.has_native:
            sides.append((trial.Stage.NATIVE, space.today))
        steps = [] if len(sides) < 2 else [
            step for pair in range(budget.pairs) for step in _make_steps(
                budget, pair, _shuffle(f'{budget.lot} pair {pair}', sides))]
    made = collections.Counter(each.step for each in trials)
    rest = []
    for step in steps:
        if made[step]:
            made[step] -= 1
        else:
            rest.append(step)
    return tuple(step for step in rest if step.block == rest[0].block)


def _make_steps(budget: spaces.Budget, block: int, sides: Iterable[
        tuple[trial.Stage, trial.Levels]]) -> list[trial.Step]:
    return [trial.Step(stage, block, block % budget.hosts, levels)
            for stage, levels in sides]


def _shuffle(lot: str, items: Iterable[_Item]) -> list[_Item]:
    return [item for _, _, item in sorted(
        (hashlib.sha256(f'{lot} {place}'.encode()).digest(), place, item)
        for place, item in enumerate(items))]
