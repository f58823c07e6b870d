# SPDX-License-Identifier: Apache-2.0

"""Estimate the effects of values from replicates of a design.

The effect of a value is the difference between the means of its trials and of
today's; the design balances all other choices. Its error comes from how much
trials of the same configuration differ between replicates. Whole plots have an
error of their own, because reboots differ too.
"""

import collections
import dataclasses
import itertools
import math
import operator
import statistics
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple

from hpcvirt.bench.analysis import power
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.analysis import stragglers
from hpcvirt.tune import design as designs
from hpcvirt.tune import experiment as experiments
from hpcvirt.tune import model

#: Confidence of each end of an interval.
LEVEL = 0.95
#: The deviation of reboots / that of boots, as a plan assumes it.
REBOOTS = 0.5
#: Two replicates show noise.
MIN_REPLICATES = 2
#: Replicates beyond this number would hardly tell more.
MAX_REPLICATES = 1000
#: The chance that any interaction counts although there is none.
_DOUBT = 0.05
#: If more trials than this part are far from their typical values, this is an
#: effect of several choices, and not a few odd boots.
_FEW = 0.1
_ROUNDS = 4

_Cell = tuple[int, ...]
_Pair = tuple[int, int]


class Replicate(NamedTuple):
    """A complete replicate.

    :ivar varied: the choices that were not decided before
    :ivar trials: one for each run of the design
    """

    varied: frozenset[int]
    trials: tuple[model.Trial, ...]


def find_complete(space: model.Space, trials: Sequence[model.Trial],
                  ) -> tuple[Replicate, ...]:
    """Find the complete replicates among trials."""
    design = designs.make(space)
    size = len(design.levels)
    screened = [each for each in trials
                if each.step.stage is model.Stage.SCREEN]
    found = []
    for end in range(size, len(screened) + 1, size):
        made = sorted(screened[end - size:end],
                      key=lambda each: each.step.levels)
        varied = frozenset(
            choice for choice in range(len(space.choices))
            if len({each.step.levels[choice] for each in made}) > 1)
        order = sorted(range(size), key=lambda run: [
            design.levels[run][choice] for choice in sorted(varied)])
        found.append(Replicate(varied, tuple(
            made[order.index(run)] for run in range(size))))
    return tuple(found)


def measure(space: model.Space, found: model.Trial) -> float | None:
    """Return the objective of a trial as a logarithm, higher if better.

    :returns: None if all runs of a program failed
    """
    total, programs = 0.0, space.experiment.programs
    is_time = space.experiment.objective is experiments.Objective.TIME
    for name, program in programs.items():
        known = [value for run in found.runs.get(name, ()) if (
            value := find_time(run) if is_time else run.speed) is not None]
        if not known:
            return None
        total += program.weight * statistics.median(known)
    return total / sum(program.weight for program in programs.values())


def find_time(run: model.TrialRun) -> float | None:
    """Return minus the logarithm of the time, the speed if it is unknown."""
    return (-math.log(run.time_s) if run.time_s and run.speed is not None
            else run.speed)


def _find_values(space: model.Space, replicates: Sequence[Replicate],
                 ) -> list[list[float]] | None:
    """Return the objective of each trial of each replicate, None without any.

    A trial without a value, and one of few that are far from their typical
    values, counts as a typical one; the guard counts its runs.
    """
    trials = list(itertools.chain.from_iterable(
        replicate.trials for replicate in replicates))
    keys = [(each.step.block, *each.step.levels) for each in trials]
    values = [measure(space, each) for each in trials]
    typical, most = fit_typical(keys, values)
    apart = [math.inf if value is None else abs(value - usual)
             for value, usual in zip(values, typical, strict=True)]
    count = len(apart) - apart.count(math.inf)
    if sum(most < each < math.inf for each in apart) > _FEW * count:
        most = math.inf
    kept = [value if each <= most else None
            for value, each in zip(values, apart, strict=True)]
    typical, _ = fit_typical(keys, kept, statistics.fmean)
    found = iter([usual if value is None else value
                  for value, usual in zip(kept, typical, strict=True)])
    return [[next(found) for _ in replicate.trials]
            for replicate in replicates] if count else None


def fit_typical(keys: Sequence[tuple[Hashable, ...]],
                values: Sequence[float | None],
                find_middle: Callable[[list[float]], float]
                = statistics.median) -> tuple[list[float], float]:
    """Fit a sum of effects.

    :param keys: the level of each factor, for each value
    :param find_middle: the median is not changed by a few odd values
    :returns: the typical value for each key, which is 0 without any value; and
        how far a value that is not odd is from it at most
    """
    typical = [0.0] * len(keys)
    for _ in range(_ROUNDS):
        for factor in zip(*((None, *key) for key in keys), strict=True):
            groups = collections.defaultdict[Hashable, list[int]](list)
            for place, level in enumerate(factor):
                groups[level].append(place)
            for places in groups.values():
                effect = find_middle([
                    value - typical[place] for place in places
                    if (value := values[place]) is not None] or [0.0])
                for place in places:
                    typical[place] += effect
    return typical, max(
        stragglers.MIN_LOSS,
        stragglers.DEVIATIONS * stats.robust_deviation([
            value - usual for value, usual in zip(values, typical, strict=True)
            if value is not None] or [0.0]))


@dataclasses.dataclass(frozen=True)
class Fit:
    """The effects on the objective.

    :ivar replicates: at least two
    :ivar values: the value of each trial of each replicate
    :ivar noise: for effects of whole plots and for others, variance of a trial
        and degrees of freedom
    """

    space: model.Space
    replicates: tuple[Replicate, ...]
    values: list[list[float]]
    noise: Mapping[bool, tuple[float, int]]

    def find_effect(self, choices: tuple[int, ...], values: _Cell,
                    others: _Cell = (0, 0)) -> stats.Normal:
        """Estimate the effect of values of one or two choices.

        The effect of two is their gain beyond the sum of their own effects.

        :param others: the values with which they are compared
        """
        design, means = designs.make(self.space), self.find_means(*choices)
        cells = [*itertools.product(*zip(values, others, strict=False))]
        runs = design.split(*choices)
        variance, freedom = self.noise[design.is_of_plots(*choices)]
        return stats.Normal(
            sum(means[cell] * (-1) ** sum(map(operator.ne, cell, values))
                for cell in cells),
            math.sqrt(variance * sum(1 / len(runs[cell]) for cell in cells)
                      / len(self._find_varied(choices))), freedom)

    def find_means(self, *choices: int) -> dict[_Cell, float]:
        """Return the mean of all trials with the same values of choices."""
        usual = [statistics.fmean(column) for column in zip(
            *self._find_varied(choices), strict=True)]
        return {cell: statistics.fmean([usual[run] for run in runs])
                for cell, runs in designs.make(self.space).split(
                    *choices).items()}

    def find_counting(self) -> dict[_Pair, dict[_Pair, stats.Normal]]:
        """Find the pairs of choices whose interaction is beyond doubt."""
        levels = [range(1, len(choice.values))
                  for choice in self.space.choices]
        pairs = list(itertools.combinations(range(len(levels)), 2))
        found = {}
        for one, other in pairs:
            cells = {cell: self.find_effect((one, other), cell) for cell in
                     itertools.product(levels[one], levels[other])}
            ends = [each.ends(1 - _DOUBT / 2 / len(pairs) / len(cells))
                    for each in cells.values()]
            if any(low > stats.EQUAL or high < -stats.EQUAL
                   for low, high in ends):
                found[one, other] = cells
        return found

    def _find_varied(self, choices: Sequence[int]) -> list[list[float]]:
        """Return the values of the replicates that vary choices."""
        return [values for each, values in zip(
            self.replicates, self.values, strict=True)
            if each.varied.issuperset(choices)]


def fit(space: model.Space, found: tuple[Replicate, ...]) -> Fit | None:
    """Estimate the effects on the objective.

    :returns: None with fewer than two replicates, or without any value
    """
    values = _find_values(space, found)
    return (Fit(space, found, values, _find_noise(space, found, values))
            if values and len(found) >= MIN_REPLICATES else None)


def _find_noise(space: model.Space, found: Sequence[Replicate],
                values: Sequence[Sequence[float]],
                ) -> dict[bool, tuple[float, int]]:
    """Find how much whole plots and trials differ between replicates."""
    count, plots = len(values[0]), len(designs.make(space).plots)
    squares, freedom = {False: 0.0, True: 0.0}, {False: 0, True: 0}
    for _, alike in itertools.groupby(
            zip(found, values, strict=True),
            lambda replicate: replicate[0].varied):
        rows = [row for _, row in alike]
        usual = [statistics.fmean(each) for each in zip(*rows, strict=True)]
        for row in rows:
            rest = [*map(operator.sub, row, usual)]
            means = [statistics.fmean(rest[plot::plots])
                     for plot in range(plots)]
            squares[True] += count * statistics.pvariance(means)
            squares[False] += sum((value - means[run % plots]) ** 2
                                  for run, value in enumerate(rest))
        freedom[True] += (len(rows) - 1) * (plots - 1)
        freedom[False] += (len(rows) - 1) * (count - plots)
    return {is_whole: (squares[is_whole] / number, number)
            for is_whole, number in freedom.items() if number}


def describe(estimate: stats.Normal) -> model.Effect:
    """Return an estimate of a gain as a finding."""
    return model.Effect(estimate.loss, *estimate.ends(LEVEL))


def smallest_effects(space: model.Space) -> tuple[float, ...]:
    """Return the smallest effect of each choice that is shown 4 of 5 times.

    :returns: logarithms; infinite with fewer than two replicates
    """
    count = space.replicates
    if count < MIN_REPLICATES:
        return (math.inf,) * len(space.choices)
    design = designs.make(space)
    size, plots = len(design.levels), len(design.plots)
    noise = math.log1p(space.experiment.noise_percent / 100)
    reboots = REBOOTS ** 2 * size / plots
    whole = Replicate(frozenset(range(len(space.choices))), ())
    found = Fit(space, (whole,) * count, [[0.0] * size] * count, {
        True: (noise ** 2 * (1 + reboots), (count - 1) * (plots - 1)),
        False: (noise ** 2, (count - 1) * (size - plots))})
    units = [found.find_effect((index,), (len(choice.values) - 1,))
             for index, choice in enumerate(space.choices)]
    return tuple(sum(unit.ends(level)[1] for level in (
        LEVEL, power.POWER)) for unit in units)
