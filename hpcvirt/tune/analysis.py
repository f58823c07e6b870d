# SPDX-License-Identifier: Apache-2.0

"""Analyse the trials of an experiment."""

import itertools
import math
import statistics
from collections.abc import Sequence

from hpcvirt.bench.analysis import stats
from hpcvirt.tune import confirmation as confirmations
from hpcvirt.tune import effects
from hpcvirt.tune import findings
from hpcvirt.tune import guard as guards
from hpcvirt.tune import replicates
from hpcvirt.tune import space as spaces
from hpcvirt.tune import steps
from hpcvirt.tune import trial


def analyse(space: spaces.Space, budget: spaces.Budget,
            trials: Sequence[trial.Trial]) -> findings.Findings:
    """Analyse the trials so far.

    Only complete blocks count for effects, and there are none before the
    second replicate. The recommended configuration is the one that the
    screening found, unless the guard refuses it or the confirmation finds it
    slower than today's.
    """
    found = replicates.find(space, trials)
    fit = effects.fit(space, found, replicates.measure_objective(space))
    guard = guards.Guard(space, trials)
    screened = confirmation = None
    if steps.has_screened(space, budget, trials):
        screened = steps.find_winner(space, budget, trials)
        if screened != space.today:
            confirmation = confirmations.confirm(space, screened, trials,
                                                 guard)
    recommended, reason = _recommend(space, budget, screened, confirmation)
    return findings.Findings(
        _list_values(space, found, fit, guard) if fit else (),
        _list_interactions(space, fit) if fit else (),
        fit.deviation if fit else None,
        _find_native(space, fit, trials) if fit else None,
        screened, confirmation, recommended, reason)


def _recommend(space: spaces.Space, budget: spaces.Budget,
               screened: trial.Levels | None,
               confirmation: findings.Confirmation | None,
               ) -> tuple[trial.Levels, str]:
    """Return the recommended levels and the reason."""
    if screened is None:
        return space.today, ("today's profile is kept until the screening "
                             'has ended')
    if confirmation is None:
        return space.today, (
            "today's profile is kept, because no other configuration is "
            f'better by more than {_percent(space.matters)}')
    found = confirmation.effect
    if confirmation.guard is not None:
        return space.today, ("today's profile is kept, because of the other "
                             f'configuration {confirmation.guard}')
    if confirmation.pairs < budget.pairs or found is None:
        return space.today, (
            "today's profile is kept until the confirmation has ended, with "
            f'{confirmation.pairs} of {budget.pairs} pairs of boots so far')
    shown = (f'{_percent(found.gain)}, with an interval from '
             f'{_percent(found.low)} to {_percent(found.high)}')
    if confirmation.is_gain:
        return screened, f'the confirmation showed a gain of {shown}'
    if found.gain > 0:
        return screened, (
            'the screening found this configuration, but its gain is not '
            f'confirmed: the confirmation showed {shown}')
    return space.today, ("today's profile is kept, because the confirmation "
                         f'of the other configuration showed {shown}')


def _percent(gain: float) -> str:
    return f'{100 * math.expm1(gain):.1f} %'


def _list_values(space: spaces.Space,
                 found: tuple[replicates.Replicate, ...], fit: effects.Fit,
                 guard: guards.Guard) -> tuple[findings.ValueFinding, ...]:
    programs = {
        program: effects.fit(space, found,
                             replicates.measure_program(space, program))
        for program in space.weights}
    time = effects.fit(space, found, replicates.measure_time(space))
    listed = []
    for index, choice in enumerate(space.choices):
        for level in range(1, len(choice.values)):
            effect = effects.describe(fit.find_effect(index, level))
            tail = guard.judge_value(index, level)
            listed.append(findings.ValueFinding(
                choice.name, choice.values[level], effect,
                {name: effects.describe(each.find_effect(index, level))
                 for name, each in programs.items() if each},
                effects.describe(time.find_effect(index, level))
                if time else findings.Effect(0.0, -math.inf, math.inf),
                _decide(effect, space.matters),
                sum(each.step.stage is trial.Stage.SCREEN
                    and each.step.levels[index] == level
                    for replicate in found for each in replicate.trials),
                tail.runs, tail.slow, tail.reason))
    return tuple(listed)


def _decide(effect: findings.Effect, matters: float) -> findings.Decision:
    if -matters <= effect.low and effect.high <= matters:
        return findings.Decision.SAME
    if effect.low > 0:
        return findings.Decision.BETTER
    return (findings.Decision.WORSE if effect.high < 0
            else findings.Decision.OPEN)


def _list_interactions(space: spaces.Space,
                       fit: effects.Fit) -> tuple[findings.Interaction, ...]:
    """List the wanted interactions, and those that count."""
    listed = []
    counting = fit.find_counting()
    for pair in sorted({*space.interactions, *counting}):
        one, other = (space.choices[choice] for choice in pair)
        names = tuple(
            ' x '.join(space.choices[choice].name for choice in alias)
            for alias in fit.find_aliases(pair))
        for cell in itertools.product(range(1, len(one.values)),
                                      range(1, len(other.values))):
            effect = fit.find_interaction(pair, cell)
            if effect is not None:
                listed.append(findings.Interaction(
                    (f'{one.name}={one.values[cell[0]]}',
                     f'{other.name}={other.values[cell[1]]}'),
                    effects.describe(effect), names, pair in counting))
    return tuple(listed)


def _find_native(space: spaces.Space, fit: effects.Fit,
                 trials: Sequence[trial.Trial]) -> findings.Effect | None:
    """Compare today's profile with native, None without native trials.

    In each replicate, the effects of the values tell what today's profile
    would have reached.
    """
    figure = replicates.measure_objective(space)
    natives = {each.step.block: figure(each) for each in trials
               if each.step.stage is trial.Stage.NATIVE}
    gains = []
    for replicate, values in zip(fit.replicates, fit.values, strict=True):
        native = natives.get(replicate.trials[0].step.block)
        if native is not None:
            gains.append(statistics.fmean(
                value - sum(fit.find_effect(choice, level).loss
                            for choice, level in enumerate(levels) if level)
                for levels, value in zip(replicate.design.levels, values,
                                         strict=True)) - native)
    if len(gains) < effects.MIN_REPLICATES:
        return None
    return effects.describe(stats.Normal(
        statistics.fmean(gains),
        statistics.stdev(gains) / math.sqrt(len(gains)), len(gains) - 1))
