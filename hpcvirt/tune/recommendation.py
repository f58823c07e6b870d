# SPDX-License-Identifier: Apache-2.0

"""Tell what the screening has decided, and which configuration is best.

The prediction for a configuration is the sum of the effects of its values and
of the interactions that are beyond doubt. If several interactions are
confounded, that of the choices with the largest effects is taken as the cause.
"""

import dataclasses
import itertools
from collections.abc import Sequence

from hpcvirt.tune import design as designs
from hpcvirt.tune import effects
from hpcvirt.tune import guard as guards
from hpcvirt.tune import space as spaces
from hpcvirt.tune import trial

#: The predicted objective of the recommended configuration is lower than that
#: of the best one by at most this part of the difference that matters.
NEAR = 0.25
#: Confidence that a dropped value is worse than another.
SURE = 0.999
#: Values whose difference is within this part of what matters are the same.
_SAME = 0.5

#: One or two choices -> what their values add to the prediction.
_Terms = dict[tuple[int, ...], dict[tuple[int, ...], float]]


@dataclasses.dataclass(frozen=True)
class Screening:
    """The complete replicates, and what they tell.

    :ivar fit: None with fewer than two replicates
    :ivar design: that of the next replicate, in which choices that are decided
        beyond doubt are fixed
    :ivar winner: the best configuration; None before the end
    """

    replicates: tuple[effects.Replicate, ...]
    fit: effects.Fit | None
    guard: guards.Guard
    design: designs.Design
    winner: trial.Levels | None


def screen(space: spaces.Space, budget: spaces.Budget,
           trials: Sequence[trial.Trial]) -> Screening:
    """Judge the complete replicates among trials.

    Without replicates in the budget, the last values of all choices win.
    """
    found = effects.find_complete(space, trials)
    fit = effects.fit(space, found)
    guard = guards.Guard(space, [
        each for replicate in found for each in replicate.trials])
    fixed: dict[int, int] = {}
    is_end = len(found) >= budget.replicates
    winner = space.today if is_end else None
    if not budget.replicates:
        winner = tuple(len(choice.values) - 1 for choice in space.choices)
    elif fit is not None:
        allowed = [[
            level for level in rank_values(choice)
            if not level or guard.refuse_value(index, level) is None]
            for index, choice in enumerate(space.choices)]
        terms = _find_terms(fit)
        fixed = _find_fixed(fit, allowed, terms)
        if is_end or len(fixed) == len(allowed):
            winner = _find_winner(space, allowed, terms)
    return Screening(found, fit, guard, designs.make(space).fix(fixed), winner)


def rank_values(choice: spaces.Choice) -> list[int]:
    """Return the levels of a choice, the simplest first.

    Today's is the simplest, then those with more guests, then those that
    leave more cores to guests.
    """
    return sorted(range(len(choice.values)), key=lambda level: (
        level != 0, -choice.costs[level].guests, -choice.costs[level].cores,
        -choice.costs[level].memory_mib))


def _find_terms(fit: effects.Fit) -> _Terms:
    """Find the terms of the prediction."""
    space, design = fit.space, designs.make(fit.space)
    terms: _Terms = {(choice,): fit.find_means(choice)
                     for choice in range(len(space.choices))}
    sizes = [max(means.values()) - min(means.values()) + space.matters
             for means in terms.values()]
    for pair in fit.find_counting():
        if pair == max((pair, *design.aliases(pair)), key=lambda alias:
                       sizes[alias[0]] * sizes[alias[1]]):
            terms[pair] = {
                cell: mean - sum(terms[choice,][level,] for choice, level
                                 in zip(pair, cell, strict=True))
                for cell, mean in fit.find_means(*pair).items()}
    return terms


def _find_fixed(fit: effects.Fit, allowed: Sequence[Sequence[int]],
                terms: _Terms) -> dict[int, int]:
    """Find the choices that are decided beyond doubt.

    The simplest of several levels is, if they are the same and all others are
    worse. A choice whose effect depends on another one is not decided.
    """
    last = fit.replicates[-1].design
    fixed = {choice: last.levels[0][choice] for choice in range(len(allowed))
             if choice not in last.columns}
    most = _SAME * fit.space.matters
    for choice in last.columns:
        if any(choice in pair for pair in terms if len(pair) == 2):
            continue
        best, = max(((level,) for level in allowed[choice]),
                    key=terms[choice,].__getitem__)
        behind = {level: fit.find_effect((choice,), (best,), (level,))
                  for level in allowed[choice] if level != best}
        rest = [level for level in allowed[choice] if level == best
                or behind[level].ends(SURE)[0] <= 0.0]
        if all(-most <= low <= high <= most for low, high in (
                behind[level].ends(effects.LEVEL)
                for level in rest if level != best)):
            fixed[choice] = rest[0]
    return fixed


def _find_winner(space: spaces.Space, allowed: Sequence[list[int]],
                 terms: _Terms) -> trial.Levels:
    """Return the simplest configuration near the best predicted one."""
    gains = {levels: sum(
        own[tuple(levels[choice] for choice in choices)]
        for choices, own in terms.items())
        for levels in itertools.product(*allowed)}
    least = max(gains.values()) - NEAR * space.matters
    return min((levels for levels, gain in gains.items() if gain >= least),
               key=lambda levels: (sum(map(list.index, allowed, levels)),
                                   -gains[levels]))
