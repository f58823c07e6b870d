# SPDX-License-Identifier: Apache-2.0

"""Estimate the effects of values from replicates of a design.

In each replicate, the effect of a value is the difference between the means of
its trials and of today's; the design balances all other choices. The effect is
the mean over replicates. Its error comes from how much all trials of the same
configuration differ between replicates. Whole plots differ more, because
reboots differ, and have an error of their own.
"""

import collections
import dataclasses
import itertools
import math
import statistics
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.bench.analysis import interim_analyses
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.analysis import stragglers
from hpcvirt.tune import design as designs
from hpcvirt.tune import experiment
from hpcvirt.tune import findings
from hpcvirt.tune import space as spaces
from hpcvirt.tune import trial

#: Confidence of each end of an interval.
LEVEL = 0.95
#: For a plan, reboots are assumed to differ by this part of the deviation of
#: boots.
REBOOTS = 0.5
#: Two replicates show noise.
MIN_REPLICATES = 2
_MAX_REPLICATES = 1000
#: The chance that any interaction counts although there is none.
_DOUBT = 0.05
#: If more trials than this part are far from their typical values, this is an
#: effect of several choices, and not a few odd boots.
_FEW = 0.1
_ROUNDS = 4

_Cell = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Replicate:
    """A complete replicate.

    :ivar trials: one for each run of the design, in the order of its runs
    """

    design: designs.Design
    trials: tuple[trial.Trial, ...]


def find_complete(space: spaces.Space, trials: Sequence[trial.Trial],
                  ) -> tuple[Replicate, ...]:
    """Find the complete replicates among trials."""
    design = designs.make(space)
    blocks = collections.defaultdict[int, list[trial.Trial]](list)
    for each in trials:
        if each.step.stage is trial.Stage.SCREEN:
            blocks[each.step.block].append(each)
    return tuple(_sort(design, block) for _, block in sorted(blocks.items())
                 if len(block) >= design.count)


def _sort(design: designs.Design, trials: Sequence[trial.Trial]) -> Replicate:
    made = collections.defaultdict[trial.Levels, list[trial.Trial]](list)
    for each in trials:
        made[each.step.levels].append(each)
    design = design.fix({
        choice: levels[0] for choice, levels in enumerate(zip(
            *made, strict=True)) if len(set(levels)) == 1})
    return Replicate(design, tuple(made[levels].pop()
                                   for levels in design.levels))


def measure(space: spaces.Space, found: trial.Trial) -> float | None:
    """Return the objective of a trial as a logarithm, higher if better.

    :returns: None if all runs of a program failed
    """
    total = 0.0
    for program, weight in space.weights.items():
        known = [value for run in found.runs.get(program, ()) if (value := (
            find_time(run) if space.objective is experiment.Objective.TIME
            else run.speed)) is not None]
        if not known:
            return None
        total += weight * statistics.median(known)
    return total


def find_time(run: trial.TrialRun) -> float | None:
    """Return minus the logarithm of the time of the slowest guest.

    :returns: the speed if the time is unknown; None if the run failed
    """
    return (-math.log(run.time_s) if run.time_s and run.speed is not None
            else run.speed)


def _find_values(space: spaces.Space, replicates: Sequence[Replicate],
                ) -> list[list[float]] | None:
    """Return the objective of each trial of each replicate.

    A trial without a value, and one of few that are far from their typical
    values, counts as a typical one; the guard counts its runs.

    :returns: None if no trial has a value
    """
    trials = [each for replicate in replicates for each in replicate.trials]
    keys = [(each.step.block, *each.step.levels) for each in trials]
    values = [measure(space, each) for each in trials]
    typical = fit_typical(keys, values)
    apart = [value - usual for value, usual in zip(values, typical,
                                                   strict=True)
             if value is not None]
    if not apart:
        return None
    most = max(stragglers.MIN_LOSS,
               stragglers.DEVIATIONS * stats.robust_deviation(apart))
    if sum(abs(each) > most for each in apart) > _FEW * len(apart):
        most = math.inf
    kept = [None if value is None or abs(value - usual) > most else value
            for value, usual in zip(values, typical, strict=True)]
    found = iter([usual if value is None else value for value, usual in zip(
        kept, fit_typical(keys, kept, statistics.fmean), strict=True)])
    return [[next(found) for _ in replicate.trials]
            for replicate in replicates]


def fit_typical(keys: Sequence[tuple[Hashable, ...]],
                values: Sequence[float | None],
                find_middle: Callable[[Iterable[float]], float]
                = statistics.median) -> list[float]:
    """Fit a sum of effects.

    :param keys: the level of each factor, for each value
    :param find_middle: the median is not changed by a few odd values
    :returns: the typical value for each key; 0 without any value
    """
    typical = [0.0] * len(keys)
    for _ in range(_ROUNDS):
        for factor in zip(*((None, *key) for key in keys), strict=True):
            groups = collections.defaultdict[Hashable, list[int]](list)
            for place, level in enumerate(factor):
                groups[level].append(place)
            for places in groups.values():
                rest = [value - typical[place] for place in places
                        if (value := values[place]) is not None]
                effect = find_middle(rest) if rest else 0.0
                for place in places:
                    typical[place] += effect
    return typical


@dataclasses.dataclass(frozen=True)
class Fit:
    """The effects on the objective.

    :ivar replicates: at least two
    :ivar values: the value of each trial of each replicate
    :ivar noise: for effects of whole plots and for others, variance of a trial
        and degrees of freedom
    """

    space: spaces.Space
    replicates: tuple[Replicate, ...]
    values: list[list[float]]
    noise: Mapping[bool, tuple[float, int]]

    def find_effect(self, choice: int, value: int,
                    other: int = 0) -> stats.Normal:
        """Estimate the effect of a value compared with another one."""
        return self._compare((choice,), {(value,): 1, (other,): -1})

    def find_interaction(self, pair: tuple[int, int],
                         values: tuple[int, int]) -> stats.Normal:
        """Estimate the gain of two values beyond the sum of their effects."""
        first, second = values
        return self._compare(pair, {values: 1, (first, 0): -1,
                                    (0, second): -1, (0, 0): 1})

    def find_terms(self, *choices: int) -> dict[_Cell, float]:
        """Return what values of one or two choices add to a typical value.

        Those of two choices are what they add to the sum of their own ones.
        """
        found = collections.defaultdict[_Cell, list[float]](list)
        for design, values in self._find_varied(choices):
            rest = [*values]
            for size in range(len(choices) + 1):
                for part in itertools.combinations(choices, size):
                    for cell, runs in design.split(*part).items():
                        mean = statistics.fmean([rest[run] for run in runs])
                        for run in runs:
                            rest[run] -= mean
                        if part == choices:
                            found[cell].append(mean)
        return {cell: statistics.fmean(each) for cell, each in found.items()}

    def find_counting(self) -> tuple[tuple[int, int], ...]:
        """Return the pairs of choices whose interaction is beyond doubt."""
        levels = [range(1, len(choice.values))
                  for choice in self.space.choices]
        pairs = list(itertools.combinations(range(len(levels)), 2))
        found = []
        for one, other in pairs:
            cells = list(itertools.product(levels[one], levels[other]))
            ends = [self.find_interaction((one, other), cell).ends(
                1 - _DOUBT / 2 / len(pairs) / len(cells)) for cell in cells]
            if any(low > stats.EQUAL or high < -stats.EQUAL
                   for low, high in ends):
                found.append((one, other))
        return tuple(found)

    def _find_varied(self, choices: Sequence[int],
                     ) -> list[tuple[designs.Design, list[float]]]:
        """Return the designs that vary choices, with the values."""
        return [(each.design, values) for each, values in zip(
            self.replicates, self.values, strict=True)
            if each.design.columns.keys() >= {*choices}]

    def _compare(self, choices: tuple[int, ...],
                 signs: Mapping[_Cell, int]) -> stats.Normal:
        design = designs.make(self.space)
        terms = self.find_terms(*choices)
        variance, freedom = self.noise[design.is_of_plots(*choices)]
        runs = design.split(*choices)
        return stats.Normal(
            sum(sign * terms[cell] for cell, sign in signs.items()),
            math.sqrt(variance * sum(1 / len(runs[cell]) for cell in signs)
                      / len(self._find_varied(choices))), freedom)


def fit(space: spaces.Space, found: tuple[Replicate, ...]) -> Fit | None:
    """Estimate the effects on the objective.

    :returns: None with fewer than two replicates, or without any value
    """
    if len(found) < MIN_REPLICATES:
        return None
    values = _find_values(space, found)
    return None if values is None else Fit(
        space, found, values, _find_noise(found, values))


def _find_noise(found: Sequence[Replicate],
                values: Sequence[Sequence[float]],
                ) -> dict[bool, tuple[float, int]]:
    """Find how much whole plots and trials differ between replicates."""
    count, plots = found[0].design.count, len(found[0].design.plots)
    alike = collections.defaultdict[object, list[Sequence[float]]](list)
    for replicate, measured in zip(found, values, strict=True):
        alike[replicate.design.levels].append(measured)
    squares, freedom = {False: 0.0, True: 0.0}, {False: 0, True: 0}
    for rows in alike.values():
        usual = [statistics.fmean(column) for column in zip(*rows,
                                                            strict=True)]
        for row in rows:
            rest = [value - own for value, own in zip(row, usual, strict=True)]
            middle = statistics.fmean(rest)
            for plot in range(plots):
                own = rest[plot::plots]
                mean = statistics.fmean(own)
                squares[True] += len(own) * (mean - middle) ** 2
                squares[False] += sum((value - mean) ** 2 for value in own)
        freedom[True] += (len(rows) - 1) * (plots - 1)
        freedom[False] += (len(rows) - 1) * (count - plots)
    return {is_whole: (squares[is_whole] / number, number)
            for is_whole, number in freedom.items() if number}


def describe(estimate: stats.Normal) -> findings.Effect:
    """Return an estimate of a gain as a finding."""
    return findings.Effect(estimate.loss, *estimate.ends(LEVEL))


def smallest_effects(space: spaces.Space, budget: spaces.Budget,
                     noise: float) -> tuple[float, ...]:
    """Return the smallest effect of each choice that is shown 4 of 5 times.

    :param noise: standard deviation between boots, as a logarithm
    :returns: logarithms, in the order of the choices; infinite with fewer than
        two replicates
    """
    if budget.replicates < MIN_REPLICATES:
        return (math.inf,) * len(space.choices)
    design = designs.make(space)
    plots = len(design.plots)
    found = []
    for index, choice in enumerate(space.choices):
        variance, contrasts = (
            (REBOOTS ** 2 * design.count / plots + 1, plots - 1)
            if design.is_of_plots(index) else (1, design.count - plots))
        runs = design.split(index)
        error = noise * math.sqrt(variance / budget.replicates * (
            1 / len(runs[0,]) + 1 / len(runs[len(choice.values) - 1,])))
        unit = stats.Normal(0.0, error, (budget.replicates - 1) * contrasts)
        found.append(unit.ends(LEVEL)[1]
                     + unit.ends(interim_analyses.POWER)[1])
    return tuple(found)


def find_replicates(space: spaces.Space, budget: spaces.Budget,
                    noise: float) -> int | None:
    """Return the smallest number of replicates that shows what matters.

    :returns: None if 1000 are too few
    """
    return next((number for number in range(_MAX_REPLICATES + 1) if max(
        smallest_effects(space, dataclasses.replace(
            budget, replicates=number), noise)) <= space.matters), None)
