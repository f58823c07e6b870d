# SPDX-License-Identifier: Apache-2.0

"""Analyse the trials of an experiment, and choose the next ones.

After each replicate from the second on, choices that are decided beyond doubt
are dropped. The screening ends early if all choices are decided.

The prediction for a configuration is the sum of the effects of its values and
of the interactions that are beyond doubt. If several interactions are
confounded, that of the choices with the largest effects is taken as the cause.

The best of many configurations looks better than it is. Therefore only pairs
of fresh boots of the winner and of today's profile decide whether there is a
gain, by the rules of verdicts (:mod:`hpcvirt.bench.analysis.losses`).
"""

import dataclasses
import hashlib
import itertools
import math
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple
from typing import TypeVar

from hpcvirt.bench.analysis import losses
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.analysis import unit_losses
from hpcvirt.bench.model import outcome
from hpcvirt.tune import design as designs
from hpcvirt.tune import effects
from hpcvirt.tune import experiment as experiments
from hpcvirt.tune import guard as guards
from hpcvirt.tune import model

#: The part of what matters by which the best prediction may be better.
NEAR = 0.25
#: Confidence that a dropped value is worse than another.
SURE = 0.999
#: Values whose difference is within this part of what matters are the same.
_SAME = 0.5

#: One or two choices -> what their values add to the prediction.
_Terms = dict[tuple[int, ...], dict[tuple[int, ...], float]]
_Side = tuple[model.Stage, model.Levels]
_Item = TypeVar('_Item')


class Screening(NamedTuple):
    """What the complete replicates tell.

    :ivar fit: None with fewer than two replicates
    :ivar fixed: choice that is decided beyond doubt -> its level
    :ivar winner: the best configuration; None before the end
    """

    fit: effects.Fit | None
    guard: guards.Guard
    fixed: dict[int, int]
    winner: model.Levels | None


def next_steps(space: model.Space,
               trials: Sequence[model.Trial]) -> tuple[model.Step, ...]:
    """Return the rest of the current block, in the order of measurement.

    The block is a replicate of the design or a pair of boots. It depends on
    nothing but the arguments, so that an experiment can be continued.

    :returns: no steps at the end
    """
    found = screen(space, trials)
    made = sum((each.step.stage is model.Stage.SCREEN)
               == (found.winner is None) for each in trials)
    if found.winner is None:
        design = designs.make(space)
        block, done = divmod(made, len(design.levels))
        lot = f'{space.experiment.name} block {block}'
        sides: list[tuple[model.Stage, model.Levels]] = []
        for number, plot in enumerate(_shuffle(lot, design.plots)):
            for levels in _shuffle(f'{lot} plot {number}', plot):
                own = tuple(found.fixed.get(choice, level)
                            for choice, level in enumerate(levels))
                sides.append((model.Stage.SCREEN, own))
    else:
        sides = [*dict.fromkeys((model.Stage.CONFIRM, levels)
                                for levels in (space.today, found.winner))]
        if space.replicates and space.experiment.native is not None:
            sides.append((model.Stage.NATIVE, space.today))
        block, done = divmod(made, len(sides))
        if len(sides) < 2 or block >= space.experiment.confirm_boots:
            return ()
        sides = _shuffle(f'{space.experiment.name} pair {block}', sides)
    return tuple(model.Step(stage, block, levels)
                 for stage, levels in sides[done:])


def _shuffle(lot: str, items: Iterable[_Item]) -> list[_Item]:
    return [item for _, _, item in sorted(
        (hashlib.sha256(f'{lot} {place}'.encode()).digest(), place, item)
        for place, item in enumerate(items))]


def analyse(space: model.Space,
            trials: Sequence[model.Trial]) -> model.Findings:
    """Analyse the trials so far.

    The recommended configuration is the one that the screening found, unless
    the guard refuses it or the confirmation excludes a gain that matters.
    """
    screening = screen(space, trials)
    fit, winner = screening.fit, screening.winner
    today = (model.Stage.CONFIRM, space.today)
    confirmation = None
    if winner is not None and winner != space.today:
        fresh = (model.Stage.CONFIRM, winner)
        found = _compare(space, trials, today, fresh)
        refused = guards.Guard(space, trials).refuse(
            lambda step: (step.stage, step.levels) == fresh)
        confirmation = found._replace(
            is_gain=found.is_gain and refused is None, guard=refused)
    native = _compare(space, trials, (model.Stage.NATIVE, space.today), today)
    return model.Findings(
        _list_values(screening, fit) if fit else (),
        _list_interactions(fit) if fit else (), native.effect, confirmation,
        *_recommend(space, winner, confirmation))


def _recommend(space: model.Space, winner: model.Levels | None,
               confirmation: model.Confirmation | None,
               ) -> tuple[model.Levels, str]:
    boots = space.experiment.confirm_boots
    if winner is None:
        reason = 'until the screening has ended'
    elif confirmation is None:
        near = 100 * math.expm1(NEAR * space.matters)
        reason = ('because no other configuration that the guard allows is '
                  f'predicted to be better by more than {near:.1f} %')
    elif confirmation.guard is not None:
        reason = f'because of the other configuration {confirmation.guard}'
    elif confirmation.pairs < boots or confirmation.effect is None:
        reason = ('until the confirmation has ended, with '
                  f'{confirmation.pairs} of {boots} pairs of boots')
    elif confirmation.is_gain:
        return winner, 'the confirmation showed a gain'
    elif confirmation.effect.high > space.matters:
        return winner, ('the confirmation showed that a gain is possible, but '
                        'not beyond doubt')
    else:
        reason = 'because the confirmation excludes a gain that matters'
    return space.today, f"today's profile is kept, {reason}"


def _compare(space: model.Space, trials: Sequence[model.Trial],
             first: _Side, second: _Side) -> model.Confirmation:
    """Compare two sides, each in trials of the same blocks."""
    sides = [{
        each.step.block: effects.measure(space, each) for each in trials
        if (each.step.stage, each.step.levels) == side}
        for side in (first, second)]
    blocks = sorted(sides[0].keys() & sides[1].keys())
    pairs = [[math.exp(-value) for side in sides
              if (value := side[block]) is not None] for block in blocks]
    pairs = [pair for pair in pairs if len(pair) == len(sides)]
    if len(pairs) < sample_pairs.MIN_PAIRS:
        return model.Confirmation(second[1], len(blocks), None)
    native, guest = zip(*pairs, strict=True)
    found = unit_losses.estimate(
        sample_pairs.MetricValues(native, guest, tuple(range(len(pairs)))),
        outcome.Direction.DOWN, (), losses.JudgingContext(limit=0.0))
    low, high = found.ends(effects.LEVEL)
    return model.Confirmation(
        second[1], len(blocks), model.Effect(-found.loss, -high, -low),
        not found.correlation_obstacle and found.p_beyond(0.0) <= stats.ALPHA)


def _list_values(screening: Screening,
                 fit: effects.Fit) -> tuple[model.ValueFinding, ...]:
    space, guard = fit.space, screening.guard

    def refit(**changes: Any) -> effects.Fit:
        return effects.fit(dataclasses.replace(
            space, experiment=dataclasses.replace(
                space.experiment, **changes)), fit.replicates) or fit
    time = refit(objective=experiments.Objective.TIME)
    programs = {name: refit(programs={name: program})
                for name, program in space.experiment.programs.items()}
    listed = []
    for index, choice in enumerate(space.choices):
        for level in range(1, len(choice.values)):
            effect, of_time, *others = (
                effects.describe(each.find_effect((index,), (level,)))
                for each in (fit, time, *programs.values()))
            listed.append(model.ValueFinding(
                choice.name, choice.values[level], choice.costs[level], effect,
                dict(zip(programs, others, strict=True)), of_time,
                _decide(effect, space.matters), *guard.count(index, level),
                guard.refuse_value(index, level)))
    return tuple(listed)


def _decide(effect: model.Effect, matters: float) -> model.Decision:
    if -matters <= effect.low and effect.high <= matters:
        return model.Decision.SAME
    if effect.low > 0:
        return model.Decision.BETTER
    return model.Decision.WORSE if effect.high < 0 else model.Decision.OPEN


def _list_interactions(fit: effects.Fit) -> tuple[model.Interaction, ...]:
    choices, design = fit.space.choices, designs.make(fit.space)
    interactions: list[model.Interaction] = []
    for pair, cells in fit.find_counting().items():
        aliases = tuple(' x '.join(choices[choice].name for choice in alias)
                        for alias in design.aliases(pair))
        for cell, estimate in cells.items():
            values = tuple(
                f'{choices[choice].name}={choices[choice].values[level]}'
                for choice, level in zip(pair, cell, strict=True))
            interactions.append(model.Interaction(
                values, effects.describe(estimate), aliases))
    return tuple(interactions)


def screen(space: model.Space, trials: Sequence[model.Trial]) -> Screening:
    """Judge the complete replicates among trials.

    Without replicates in the space, the last values of all choices win.
    """
    found = effects.find_complete(space, trials)
    fit = effects.fit(space, found)
    guard = guards.Guard(space, list(itertools.chain.from_iterable(
        replicate.trials for replicate in found)))
    fixed: dict[int, int] = {}
    is_end = len(found) >= space.replicates
    winner = space.today if is_end else None
    if not space.replicates:
        winner = tuple(len(choice.values) - 1 for choice in space.choices)
    elif fit is not None:
        allowed = [[
            level for level in _rank(choice.costs)
            if not level or guard.refuse_value(index, level) is None]
            for index, choice in enumerate(space.choices)]
        terms = _find_terms(fit)
        fixed = _find_fixed(fit, allowed, terms)
        if is_end or len(fixed) == len(allowed):
            winner = _find_winner(space, allowed, terms)
    return Screening(fit, guard, fixed, winner)


def _rank(costs: Sequence[model.HostCost]) -> list[int]:
    """Rank levels: today's, then by guests, by their cores and memory."""
    return [0, *sorted(range(1, len(costs)), reverse=True, key=lambda level: (
        costs[level].guests, costs[level].cores, costs[level].memory_mib,
        -level))]


def _find_terms(fit: effects.Fit) -> _Terms:
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


def _find_fixed(fit: effects.Fit, allowed: Sequence[list[int]],
                terms: _Terms) -> dict[int, int]:
    """Find the choices that are decided beyond doubt.

    The simplest of several levels is, if they are the same and all others are
    worse. A choice whose effect depends on another one is not decided.
    """
    last = fit.replicates[-1]
    fixed = {choice: level for choice, level
             in enumerate(last.trials[0].step.levels)
             if choice not in last.varied}
    for choice in last.varied:
        if any(choice in pair for pair in terms if len(pair) == 2):
            continue
        levels = allowed[choice]
        best, = max(((level,) for level in levels),
                    key=terms[choice,].__getitem__)
        rest = {level: gain for level in levels if level != best and (
            gain := fit.find_effect((choice,), (best,), (level,))
            ).ends(SURE)[0] <= 0.0}
        if all(high <= _SAME * fit.space.matters for _, high in (
                gain.ends(effects.LEVEL) for gain in rest.values())):
            fixed[choice] = min([best, *rest], key=levels.index)
    return fixed


def _find_winner(space: model.Space, allowed: Sequence[list[int]],
                 terms: _Terms) -> model.Levels:
    """Return the simplest configuration near the best predicted one."""
    gains = {levels: sum(
        own[tuple(levels[choice] for choice in choices)]
        for choices, own in terms.items())
        for levels in itertools.product(*allowed)}
    least = max(gains.values()) - NEAR * space.matters
    return min((levels for levels, gain in gains.items() if gain >= least),
               key=lambda levels: (sum(map(list.index, allowed, levels)),
                                   -gains[levels]))
