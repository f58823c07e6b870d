# SPDX-License-Identifier: Apache-2.0

"""Choose the next trials of an experiment from those that were made.

A replicate has the whole design, in a block. After each replicate from the
second on, choices that are decided beyond doubt are dropped: the later
replicates have as many trials, which then tell more about the other choices.
The screening ends early if all choices are decided.
"""

import collections
import hashlib
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Sequence
from typing import TypeVar

from hpcvirt.tune import design as designs
from hpcvirt.tune import effects
from hpcvirt.tune import guard as guards
from hpcvirt.tune import recommendation
from hpcvirt.tune import replicates
from hpcvirt.tune import space as spaces
from hpcvirt.tune import trial

#: Confidence that a dropped value is worse than another.
SURE = 0.999
#: Values whose difference is within this part of what matters are the same.
_SAME = 0.5

_Item = TypeVar('_Item')


def next_steps(space: spaces.Space, budget: spaces.Budget,
               trials: Sequence[trial.Trial]) -> tuple[trial.Step, ...]:
    """Return the rest of the current block, in the order of measurement.

    The block is a replicate of the design or a pair of boots. It depends on
    nothing but the arguments, so that an experiment can be continued. Without
    replicates, the last values of all choices are confirmed.

    :param trials: those made so far, in their order
    :returns: no steps at the end
    """
    if not has_screened(space, budget, trials):
        found = replicates.find(space, trials)
        steps = _screen(space, budget, len(found), designs.make(
            space, find_fixed(space, found), designs.make(space).count))
    else:
        winner = find_winner(space, budget, trials)
        steps = () if winner == space.today else tuple(
            trial.Step(trial.Stage.CONFIRM, pair, pair % budget.hosts, levels)
            for pair in range(budget.pairs)
            for levels in _shuffle(f'{budget.lot} pair {pair}',
                                   (space.today, winner)))
    made = collections.Counter(each.step for each in trials)
    rest = []
    for step in steps:
        if made[step]:
            made[step] -= 1
        else:
            rest.append(step)
    return tuple(step for step in rest if step.block == rest[0].block)


def _screen(space: spaces.Space, budget: spaces.Budget, block: int,
            design: designs.Design) -> tuple[trial.Step, ...]:
    host, lot = block % budget.hosts, f'{budget.lot} block {block}'
    native = ((trial.Stage.NATIVE, space.today),) if budget.has_native else ()
    return tuple(trial.Step(stage, block, host, levels) for stage, levels in (
        *native, *((trial.Stage.SCREEN, levels)
                   for number, plot in enumerate(_shuffle(lot, design.plots))
                   for levels in _shuffle(f'{lot} plot {number}', plot))))


def _shuffle(lot: str, items: Iterable[_Item]) -> list[_Item]:
    return [item for _, _, item in sorted(
        (hashlib.sha256(f'{lot} {place}'.encode()).digest(), place, item)
        for place, item in enumerate(items))]


def find_fixed(space: spaces.Space,
               found: tuple[replicates.Replicate, ...]) -> dict[int, int]:
    """Return the choices that are decided beyond doubt, with their level.

    :param found: the complete replicates
    """
    fixed = dict(found[-1].fixed) if found else {}
    fit = effects.fit(space, found, replicates.measure_objective(space))
    if fit is None:
        return fixed
    refused = _find_refused(space, found)
    prediction = recommendation.Predictor(fit)
    for choice in range(len(space.choices)):
        level = _decide(fit, choice, refused, prediction.find_reach(choice))
        if level is not None:
            fixed.setdefault(choice, level)
    return fixed


def _decide(fit: effects.Fit, choice: int,
            refused: Collection[tuple[int, int]],
            reach: float) -> int | None:
    """Return the level that is beyond doubt, None if there is none.

    :param reach: how much other choices can change an effect
    """
    allowed = [level for level in recommendation.rank_values(
        fit.space.choices[choice])
        if not level or (choice, level) not in refused]
    best = max(allowed, key=lambda level: fit.find_effect(
        choice, level).loss if level else 0.0)
    behind = {level: fit.find_effect(choice, best, level)
              for level in allowed if level != best}
    rest = [level for level in allowed if level not in behind
            or behind[level].ends(SURE)[0] <= reach]
    most = _SAME * fit.space.matters - reach
    are_same = all(-most <= low <= high <= most for low, high in (
        behind[level].ends(effects.LEVEL) for level in rest if level != best))
    return rest[0] if are_same else None


def has_screened(space: spaces.Space, budget: spaces.Budget,
                 trials: Sequence[trial.Trial]) -> bool:
    """Whether the screening has ended."""
    if any(each.step.stage is trial.Stage.CONFIRM for each in trials):
        return True
    found = replicates.find(space, trials)
    return len(found) >= budget.replicates or (
        len(find_fixed(space, found)) == len(space.choices))


def find_winner(space: spaces.Space, budget: spaces.Budget,
                trials: Sequence[trial.Trial]) -> trial.Levels:
    """Return the best configuration of a screening that has ended.

    If the confirmation has begun, this is the one that it confirms.
    """
    for each in trials:
        if (each.step.stage is trial.Stage.CONFIRM
                and each.step.levels != space.today):
            return each.step.levels
    found = replicates.find(space, trials)
    if not budget.replicates:
        return tuple(len(choice.values) - 1 for choice in space.choices)
    fit = effects.fit(space, found, replicates.measure_objective(space))
    return space.today if fit is None else recommendation.recommend(
        fit, _find_refused(space, found))


def _find_refused(space: spaces.Space,
                  found: tuple[replicates.Replicate, ...],
                  ) -> frozenset[tuple[int, int]]:
    return guards.Guard(space, [each for replicate in found
                                for each in replicate.trials]).find_refused()
