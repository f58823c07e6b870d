# SPDX-License-Identifier: Apache-2.0

"""Find the complete replicates of a design, and the value of each trial."""

import collections
import dataclasses
import math
import statistics
from collections.abc import Callable
from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.bench.analysis import stats
from hpcvirt.bench.analysis import stragglers
from hpcvirt.tune import design as designs
from hpcvirt.tune import experiment
from hpcvirt.tune import space as spaces
from hpcvirt.tune import trial

#: Returns the value of a trial, higher if better; None if it has none.
Figure = Callable[[trial.Trial], float | None]

#: If more trials than this part are far from their typical values, this is an
#: effect of several choices, and not a few odd boots.
_FEW = 0.1
_ROUNDS = 4


@dataclasses.dataclass(frozen=True)
class Replicate:
    """A complete replicate.

    :ivar fixed: choices that were not varied -> their level
    :ivar trials: one for each run of the design, in the order of its runs
    """

    design: designs.Design
    fixed: Mapping[int, int]
    trials: tuple[trial.Trial, ...]


def find(space: spaces.Space,
         trials: Sequence[trial.Trial]) -> tuple[Replicate, ...]:
    """Find the complete replicates among trials."""
    count = designs.make(space).count
    blocks: dict[int, list[trial.Trial]] = {}
    for each in trials:
        if each.step.stage is trial.Stage.SCREEN:
            blocks.setdefault(each.step.block, []).append(each)
    return tuple(_sort(space, blocks[block], count) for block in sorted(blocks)
                 if len(blocks[block]) >= count)


def _sort(space: spaces.Space, trials: Sequence[trial.Trial],
          count: int) -> Replicate:
    fixed = {}
    for choice in range(len(space.choices)):
        levels = {each.step.levels[choice] for each in trials}
        if len(levels) == 1:
            fixed[choice] = levels.pop()
    design = designs.make(space, fixed, count)
    made = collections.defaultdict(list)
    for each in trials:
        made[each.step.levels].append(each)
    return Replicate(design, fixed, tuple(
        made[levels].pop(0) for levels in design.levels))


def measure_program(space: spaces.Space, program: str) -> Figure:
    """Return the figure of the objective for one program."""
    return (_measure_speed if space.objective
            is experiment.Objective.THROUGHPUT else _measure_time)(program)


def measure_objective(space: spaces.Space) -> Figure:
    """Return the figure of the objective over all programs."""
    return _weigh(space, lambda program: measure_program(space, program))


def measure_time(space: spaces.Space) -> Figure:
    """Return the figure of the time of one guest, minus its logarithm."""
    return _weigh(space, _measure_time)


def _weigh(space: spaces.Space, figure: Callable[[str], Figure]) -> Figure:
    figures = {program: figure(program) for program in space.weights}

    def value(found: trial.Trial) -> float | None:
        total = 0.0
        for program, weight in space.weights.items():
            part = figures[program](found)
            if part is None:
                return None
            total += weight * part
        return total
    return value


def _measure_speed(program: str) -> Figure:
    return lambda found: _median([run.speed
                                  for run in found.runs.get(program, ())])


def _measure_time(program: str) -> Figure:
    return lambda found: _median([
        -math.log(run.time_s) if run.time_s and run.speed is not None else None
        for run in found.runs.get(program, ())])


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def find_values(replicates: Sequence[Replicate],
                figure: Figure) -> list[list[float]] | None:
    """Return the value of each trial of each replicate.

    A trial without a value, and one of few that are far from their typical
    values, counts as a typical one; the guard counts its runs.

    :returns: None if no trial has a value
    """
    keys = [(number, *each.step.levels)
            for number, replicate in enumerate(replicates)
            for each in replicate.trials]
    values = [figure(each) for replicate in replicates
              for each in replicate.trials]
    if all(value is None for value in values):
        return None
    typical = fit_typical(keys, values)
    apart = [value - usual for value, usual in zip(values, typical,
                                                   strict=True)
             if value is not None]
    most = max(stragglers.MIN_LOSS,
               stragglers.DEVIATIONS * stats.robust_deviation(apart))
    if sum(abs(each) > most for each in apart) > _FEW * len(apart):
        most = math.inf
    kept = [None if value is None or abs(value - usual) > most else value
            for value, usual in zip(values, typical, strict=True)]
    typical = fit_typical(keys, kept, statistics.fmean)
    found = iter([usual if value is None else value
                  for value, usual in zip(kept, typical, strict=True)])
    return [[next(found) for _ in replicate.trials]
            for replicate in replicates]


def fit_typical(
        keys: Sequence[tuple[Hashable, ...]], values: Sequence[float | None],
        find_middle: Callable[[Iterable[float]], float] = statistics.median,
        ) -> list[float]:
    """Fit a sum of effects.

    :param keys: the level of each factor, for each value
    :param find_middle: the median is not changed by a few odd values
    :returns: the typical value for each key; 0 without any value
    """
    known = [place for place, value in enumerate(values) if value is not None]
    rest = {place: value for place, value in enumerate(values)
            if value is not None}
    middle = find_middle(rest.values()) if rest else 0.0
    rest = {place: value - middle for place, value in rest.items()}
    effects: dict[tuple[int, Hashable], float] = collections.defaultdict(float)
    for _ in range(_ROUNDS):
        for factor in range(len(keys[0])):
            groups: dict[Hashable, list[int]] = {}
            for place in known:
                groups.setdefault(keys[place][factor], []).append(place)
            for level, places in groups.items():
                effect = find_middle([rest[place] for place in places])
                effects[factor, level] += effect
                for place in places:
                    rest[place] -= effect
    return [middle + sum(effects.get((factor, level), 0.0)
                         for factor, level in enumerate(key))
            for key in keys]
