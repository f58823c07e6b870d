# SPDX-License-Identifier: Apache-2.0

"""Analyse the trials of an experiment.

The best of many configurations looks better than it is. Therefore only pairs
of fresh boots of the winner and of today's profile decide whether there is a
gain, by the rules of verdicts (:mod:`hpcvirt.bench.analysis.losses`).
"""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Any

from hpcvirt.bench.analysis import losses
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.analysis import unit_losses
from hpcvirt.bench.model import outcome
from hpcvirt.tune import design as designs
from hpcvirt.tune import effects
from hpcvirt.tune import experiment
from hpcvirt.tune import findings
from hpcvirt.tune import guard as guards
from hpcvirt.tune import recommendation
from hpcvirt.tune import space as spaces
from hpcvirt.tune import trial

_Side = tuple[trial.Stage, trial.Levels]


def analyse(space: spaces.Space, budget: spaces.Budget,
            trials: Sequence[trial.Trial]) -> findings.Findings:
    """Analyse the trials so far.

    Only complete blocks count for effects, and there are none before the
    second replicate. The recommended configuration is the one that the
    screening found, unless the guard refuses it or the confirmation shows that
    its gain does not matter.
    """
    screening = recommendation.screen(space, budget, trials)
    fit, winner = screening.fit, screening.winner
    today = (trial.Stage.CONFIRM, space.today)
    confirmation = None
    if winner is not None and winner != space.today:
        side = (trial.Stage.CONFIRM, winner)
        guard = guards.Guard(space, [
            each for each in trials
            if each.step.stage is not trial.Stage.NATIVE])
        refused = guard.refuse_winner(winner)
        pairs, effect, is_gain = _compare(space, trials, today, side)
        confirmation = findings.Confirmation(
            winner, pairs, effect, is_gain and refused is None, refused)
    _, native, _ = _compare(space, trials, (trial.Stage.NATIVE, space.today),
                            today)
    return findings.Findings(
        _list_values(screening, fit) if fit else (),
        _list_interactions(fit) if fit else (), native, winner, confirmation,
        *_recommend(space, budget, winner, confirmation))


def _recommend(space: spaces.Space, budget: spaces.Budget,
               winner: trial.Levels | None,
               confirmation: findings.Confirmation | None,
               ) -> tuple[trial.Levels, str]:
    """Return the recommended levels and the reason."""
    if winner is None:
        reason = 'until the screening has ended'
    elif confirmation is None:
        near = 100 * math.expm1(recommendation.NEAR * space.matters)
        reason = ('because no other configuration that the guard allows is '
                  f'predicted to be better by more than {near:.1f} %')
    elif confirmation.guard is not None:
        reason = f'because of the other configuration {confirmation.guard}'
    elif confirmation.pairs < budget.pairs or confirmation.effect is None:
        reason = (f'until the confirmation has ended, with '
                  f'{confirmation.pairs} of {budget.pairs} pairs of boots')
    elif confirmation.is_gain:
        return winner, 'the confirmation showed a gain'
    elif confirmation.effect.high > space.matters:
        return winner, ('the confirmation showed that a gain is possible, but '
                        'not beyond doubt')
    else:
        reason = 'because the confirmation excludes a gain that matters'
    return space.today, f"today's profile is kept, {reason}"


def _compare(space: spaces.Space, trials: Sequence[trial.Trial],
             first: _Side, second: _Side,
             ) -> tuple[int, findings.Effect | None, bool]:
    """Compare two sides, each in trials of the same blocks.

    :returns: number of pairs, the effect of the second side, which is None
        with too few pairs, and whether it is a gain beyond doubt
    """
    sides = [{
        each.step.block: effects.measure(space, each) for each in trials
        if (each.step.stage, each.step.levels) == side}
        for side in (first, second)]
    blocks = sorted(sides[0].keys() & sides[1].keys())
    pairs = [[math.exp(-value) for side in sides
              if (value := side[block]) is not None] for block in blocks]
    pairs = [pair for pair in pairs if len(pair) == len(sides)]
    if len(pairs) < sample_pairs.MIN_PAIRS:
        return len(blocks), None, False
    native, guest = zip(*pairs, strict=True)
    found = unit_losses.estimate(
        sample_pairs.MetricValues(native, guest, tuple(range(len(pairs)))),
        outcome.Direction.DOWN, (), losses.Caution(limit=0.0))
    low, high = found.ends(effects.LEVEL)
    return (len(blocks), findings.Effect(-found.loss, -high, -low),
            not found.resemblance and found.p_beyond(0.0) <= stats.ALPHA)


def _list_values(screening: recommendation.Screening,
                 fit: effects.Fit) -> tuple[findings.ValueFinding, ...]:
    space, guard = fit.space, screening.guard

    def refit(**changes: Any) -> effects.Fit:
        return effects.fit(dataclasses.replace(space, **changes),
                           fit.replicates) or fit
    time = refit(objective=experiment.Objective.TIME)
    programs = {program: refit(weights={program: 1.0})
                for program in space.weights}
    listed = []
    for index, choice in enumerate(space.choices):
        for level in range(1, len(choice.values)):
            effect, of_time, *others = (
                effects.describe(each.find_effect((index,), (level,)))
                for each in (fit, time, *programs.values()))
            listed.append(findings.ValueFinding(
                choice.name, choice.values[level], choice.costs[level], effect,
                dict(zip(programs, others, strict=True)), of_time,
                _decide(effect, space.matters), *guard.count(index, level),
                guard.refuse_value(index, level)))
    return tuple(listed)


def _decide(effect: findings.Effect, matters: float) -> findings.Decision:
    if -matters <= effect.low and effect.high <= matters:
        return findings.Decision.SAME
    if effect.low > 0:
        return findings.Decision.BETTER
    return (findings.Decision.WORSE if effect.high < 0
            else findings.Decision.OPEN)


def _list_interactions(fit: effects.Fit) -> tuple[findings.Interaction, ...]:
    """List the interactions that are beyond doubt."""
    choices, design = fit.space.choices, designs.make(fit.space)
    listed = []
    for pair in fit.find_counting():
        one, other = (choices[choice] for choice in pair)
        names = tuple(' x '.join(choices[choice].name for choice in alias)
                      for alias in design.aliases(pair))
        listed += [findings.Interaction(
            (f'{one.name}={one.values[cell[0]]}',
             f'{other.name}={other.values[cell[1]]}'),
            effects.describe(fit.find_effect(pair, cell)), names)
            for cell in itertools.product(
                range(1, len(one.values)), range(1, len(other.values)))]
    return tuple(listed)
