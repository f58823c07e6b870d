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

_Pairs = list[tuple[trial.Trial, trial.Trial]]


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
    confirmation = None
    if winner is not None and winner != space.today:
        confirmation = _confirm(space, winner, trials)
    native = _describe(_estimate(space, _find_pairs(
        trials, (trial.Stage.NATIVE, space.today),
        (trial.Stage.CONFIRM, space.today))))
    recommended, reason = _recommend(space, budget, winner, confirmation)
    return findings.Findings(
        _list_values(screening, fit) if fit else (),
        _list_interactions(fit) if fit else (),
        native, winner, confirmation, recommended, reason)


def _recommend(space: spaces.Space, budget: spaces.Budget,
               winner: trial.Levels | None,
               confirmation: findings.Confirmation | None,
               ) -> tuple[trial.Levels, str]:
    """Return the recommended levels and the reason."""
    kept = "today's profile is kept"
    if winner is None:
        return space.today, f'{kept} until the screening has ended'
    if confirmation is None:
        return space.today, (
            f'{kept}, because no other configuration that the guard allows is '
            'predicted to be better by more than '
            + _percent(recommendation.NEAR * space.matters))
    found = confirmation.effect
    if confirmation.guard is not None:
        return space.today, (f'{kept}, because of the other configuration '
                             + confirmation.guard)
    if confirmation.pairs < budget.pairs or found is None:
        return space.today, (
            f'{kept} until the confirmation has ended, with '
            f'{confirmation.pairs} of {budget.pairs} pairs of boots so far')
    shown = (f'{_percent(found.gain)}, with an interval from '
             f'{_percent(found.low)} to {_percent(found.high)}')
    if confirmation.is_gain:
        return winner, f'the confirmation showed a gain of {shown}'
    if found.high > space.matters:
        return winner, ('the gain of this configuration is not beyond doubt: '
                        f'the confirmation showed {shown}')
    return space.today, (f'{kept}, because the confirmation of the other '
                         f'configuration showed {shown}')


def _percent(gain: float) -> str:
    return f'{100 * math.expm1(gain):.1f} %'


def _confirm(space: spaces.Space, levels: trial.Levels,
             trials: Sequence[trial.Trial]) -> findings.Confirmation:
    """Compare a configuration with today's in the pairs of boots so far."""
    pairs = _find_pairs(trials, (trial.Stage.CONFIRM, space.today),
                        (trial.Stage.CONFIRM, levels))
    found = _estimate(space, pairs)
    refused = guards.Guard(space, [
        each for each in trials if each.step.stage is not trial.Stage.NATIVE
        ]).refuse_winner(levels)
    return findings.Confirmation(
        levels, len(pairs), _describe(found),
        found is not None and not found.resemblance and refused is None
        and found.p_beyond(0.0) <= stats.ALPHA, refused)


def _find_pairs(trials: Sequence[trial.Trial],
                *sides: tuple[trial.Stage, trial.Levels]) -> _Pairs:
    """Return the trials of two sides that are in the same block."""
    first, second = ({
        each.step.block: each for each in trials
        if (each.step.stage, each.step.levels) == side} for side in sides)
    return [(first[block], second[block])
            for block in sorted(first.keys() & second.keys())]


def _estimate(space: spaces.Space, pairs: _Pairs) -> losses.Losses | None:
    """Estimate the loss of the second of each pair, None with too few."""
    values = [(math.exp(-first), math.exp(-second)) for first, second in (
        [effects.measure(space, each) for each in pair] for pair in pairs)
        if first is not None and second is not None]
    if len(values) < sample_pairs.MIN_PAIRS:
        return None
    native, guest = zip(*values, strict=True)
    return unit_losses.estimate(
        sample_pairs.MetricValues(native, guest, tuple(range(len(values)))),
        outcome.Direction.DOWN, (), losses.Caution(limit=0.0))


def _describe(found: losses.Losses | None) -> findings.Effect | None:
    if found is None:
        return None
    low, high = found.ends(effects.LEVEL)
    return findings.Effect(-found.loss, -high, -low)


def _list_values(screening: recommendation.Screening,
                 fit: effects.Fit) -> tuple[findings.ValueFinding, ...]:
    programs = {
        program: effects.fit(dataclasses.replace(
            fit.space, weights={program: 1.0}), fit.replicates)
        for program in fit.space.weights}
    time = effects.fit(dataclasses.replace(
        fit.space, objective=experiment.Objective.TIME), fit.replicates) or fit
    listed = []
    for index, choice in enumerate(fit.space.choices):
        for level in range(1, len(choice.values)):
            effect = effects.describe(fit.find_effect(index, level))
            listed.append(findings.ValueFinding(
                choice.name, choice.values[level], effect,
                {name: effects.describe(each.find_effect(index, level))
                 for name, each in programs.items() if each},
                effects.describe(time.find_effect(index, level)),
                _decide(effect, fit.space.matters),
                sum(levels[index] == level for replicate in fit.replicates
                    for levels in replicate.design.levels),
                *screening.guard.count(index, level),
                screening.guard.refuse_value(index, level)))
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
            effects.describe(fit.find_interaction(pair, cell)), names)
            for cell in itertools.product(
                range(1, len(one.values)), range(1, len(other.values)))]
    return tuple(listed)
