# SPDX-License-Identifier: Apache-2.0

"""Estimate the effects of values from replicates of a design.

In each replicate, the effect of a value is the difference between the means of
its trials and of today's; the design balances all other choices. The effect is
the mean over replicates. Its error comes from all contrasts of the design,
whether they belong to a choice or not: how much a contrast differs between
replicates is noise. Contrasts of whole plots differ more, because reboots
differ, and have an error of their own. Student's t distribution allows for the
number of contrasts and replicates.
"""

import bisect
import dataclasses
import itertools
import math
import statistics
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt.bench.analysis import interim_analyses
from hpcvirt.bench.analysis import stats
from hpcvirt.tune import design as designs
from hpcvirt.tune import findings
from hpcvirt.tune import replicates as replicate_finder
from hpcvirt.tune import space as spaces

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

_Cell = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class _Stratum:
    """The noise of whole plots or of single trials.

    :ivar variance: of the mean of a whole plot, or of a trial
    """

    variance: float
    freedom: int


@dataclasses.dataclass(frozen=True)
class Fit:
    """The effects on one figure.

    :ivar replicates: at least two
    :ivar values: the value of each trial of each replicate
    """

    space: spaces.Space
    replicates: tuple[replicate_finder.Replicate, ...]
    values: list[list[float]]
    _strata: Mapping[bool, _Stratum]

    @property
    def deviation(self) -> float:
        """Standard deviation between boots of a configuration."""
        return math.sqrt(self._strata[min(self._strata)].variance)

    def find_effect(self, choice: int, value: int,
                    other: int = 0) -> stats.Normal:
        """Estimate the effect of a value compared with another one."""
        return self._compare((choice,), {(value,): 1, (other,): -1})

    def find_interaction(self, pair: tuple[int, int],
                         values: tuple[int, int]) -> stats.Normal | None:
        """Estimate the gain of two values beyond the sum of their effects.

        :returns: None if the choices were never varied together
        """
        if not self._varied(pair):
            return None
        first, second = values
        return self._compare(pair, {values: 1, (first, 0): -1,
                                    (0, second): -1, (0, 0): 1})

    def find_terms(self, pair: tuple[int, int],
                   ) -> dict[tuple[int, int], float]:
        """Return what values of two choices add to the sum of their means."""
        found: dict[tuple[int, int], list[float]] = {}
        for number in self._varied(pair):
            cells, first, second = (
                _means(self.replicates[number], self.values[number], choices)
                for choices in (pair, pair[:1], pair[1:]))
            middle = statistics.fmean(self.values[number])
            for (one, two), (mean, _) in cells.items():
                found.setdefault((one, two), []).append(
                    mean - first[one,][0] - second[two,][0] + middle)
        return {cell: statistics.fmean(each) for cell, each in found.items()}

    def find_counting(self) -> tuple[tuple[int, int], ...]:
        """Return the pairs of choices whose interaction is beyond doubt."""
        pairs = list(itertools.combinations(range(len(self.space.choices)), 2))
        sizes = [len(choice.values) for choice in self.space.choices]
        found = []
        for pair in pairs:
            cells = list(itertools.product(range(1, sizes[pair[0]]),
                                           range(1, sizes[pair[1]])))
            level = 1 - _DOUBT / 2 / len(pairs) / len(cells)
            for cell in cells:
                effect = self.find_interaction(pair, cell)
                if effect is not None and not _includes_zero(effect, level):
                    found.append(pair)
                    break
        return tuple(found)

    def find_aliases(self, pair: tuple[int, int],
                     ) -> tuple[tuple[int, int], ...]:
        """Return the pairs that are confounded with this one."""
        numbers = self._varied(pair)
        return (self.replicates[numbers[0]].design.aliases(pair) if numbers
                else ())

    def _varied(self, choices: tuple[int, ...]) -> list[int]:
        """Return the replicates that tell the effect of one or two choices.

        For an interaction, these are the most that confound it with the same
        others.
        """
        alike: dict[object, list[int]] = {}
        for number, each in enumerate(self.replicates):
            if each.fixed.keys().isdisjoint(choices):
                key = (each.design.aliases((choices[0], choices[1]))
                       if choices[1:] else ())
                alike.setdefault(key, []).append(number)
        return max(reversed(alike.values()), key=len, default=[])

    def _compare(self, choices: tuple[int, ...],
                 signs: Mapping[_Cell, int]) -> stats.Normal:
        effects, total = [], 0.0
        is_whole = False
        for number in self._varied(choices):
            replicate = self.replicates[number]
            means = _means(replicate, self.values[number], choices)
            effects.append(sum(sign * means[cell][0]
                               for cell, sign in signs.items()))
            design = replicate.design
            is_whole = design.is_of_plots(*choices)
            total += sum(1 / means[cell][1] for cell in signs) * (
                design.count / len(design.plots) if is_whole else 1)
        stratum = self._strata[is_whole]
        return stats.Normal(
            statistics.fmean(effects),
            math.sqrt(stratum.variance * total) / len(effects),
            stratum.freedom)


def _means(replicate: replicate_finder.Replicate, values: Sequence[float],
           choices: tuple[int, ...]) -> dict[_Cell, tuple[float, int]]:
    """Return the mean and the number of the trials of each cell."""
    cells: dict[_Cell, list[float]] = {}
    for levels, value in zip(replicate.design.levels, values, strict=True):
        cells.setdefault(tuple(levels[choice] for choice in choices),
                         []).append(value)
    return {cell: (sum(each) / len(each), len(each))
            for cell, each in cells.items()}


def _includes_zero(effect: stats.Normal, level: float) -> bool:
    low, high = effect.ends(level)
    return low <= stats.EQUAL and high >= -stats.EQUAL


def fit(space: spaces.Space,
        found: tuple[replicate_finder.Replicate, ...],
        figure: replicate_finder.Figure) -> Fit | None:
    """Estimate effects on a figure.

    :returns: None with fewer than two replicates, or without any value
    """
    values = (replicate_finder.find_values(found, figure)
              if len(found) >= MIN_REPLICATES else None)
    return None if values is None else Fit(
        space, found, values, _find_strata(found, values))


def _find_strata(found: tuple[replicate_finder.Replicate, ...],
                 values: Sequence[Sequence[float]]) -> dict[bool, _Stratum]:
    """Estimate the noise from contrasts of replicates of the same design.

    :returns: whether it is that of whole plots -> noise
    """
    alike: dict[tuple[tuple[int, int], ...],
                tuple[designs.Design, list[list[float]]]] = {}
    for each, measured in zip(found, values, strict=True):
        alike.setdefault(tuple(sorted(each.fixed.items())),
                         (each.design, []))[1].append(_transform(measured))
    squares, freedom = {False: 0.0, True: 0.0}, {False: 0, True: 0}
    for design, contrasts in alike.values():
        plots = len(design.plots)
        for vector, repeated in enumerate(zip(*contrasts, strict=True)):
            if vector:
                is_whole = vector < plots
                mean = statistics.fmean(repeated)
                squares[is_whole] += sum(
                    (each - mean) ** 2 for each in repeated) / design.count * (
                        plots / design.count if is_whole else 1)
                freedom[is_whole] += len(repeated) - 1
    return {is_whole: _Stratum(squares[is_whole] / freedom[is_whole],
                               freedom[is_whole])
            for is_whole in (False, True) if freedom[is_whole]}


def _transform(values: Sequence[float]) -> list[float]:
    """Return all contrasts of a replicate: the Walsh-Hadamard transform."""
    found = list(values)
    step = 1
    while step < len(found):
        for start in range(0, len(found), 2 * step):
            for place in range(start, start + step):
                one, other = found[place], found[place + step]
                found[place], found[place + step] = one + other, one - other
        step *= 2
    return found


def describe(estimate: stats.Normal) -> findings.Effect:
    """Return an estimate of a gain as a finding."""
    return findings.Effect(estimate.loss, *estimate.ends(LEVEL))


def smallest_effects(space: spaces.Space, budget: spaces.Budget,
                     noise: float) -> tuple[float, ...]:
    """Return the smallest effect of each choice that is shown 4 of 5 times.

    An experiment is refused if one of them is larger than ``space.matters``.

    :param noise: standard deviation between boots, as a logarithm
    :returns: logarithms, in the order of the choices; infinite with fewer than
        two replicates
    """
    if budget.replicates < MIN_REPLICATES:
        return (math.inf,) * len(space.choices)
    design = designs.make(space)
    plots = len(design.plots)
    found = []
    for index in range(len(space.choices)):
        is_whole = design.is_of_plots(index)
        variance, units, contrasts = (
            (noise ** 2 * (REBOOTS ** 2 + plots / design.count), plots,
             plots - 1) if is_whole
            else (noise ** 2, design.count, design.count - plots))
        # The smallest value has a half or a quarter of the units.
        of_value = units >> len(design.columns[index])
        of_today = units / design.count * sum(
            levels[index] == 0 for levels in design.levels)
        unit = stats.Normal(0.0, 1.0, (budget.replicates - 1) * contrasts)
        reach = (unit.ends(LEVEL)[1] + unit.ends(interim_analyses.POWER)[1])
        found.append(reach * math.sqrt(
            variance * (1 / of_value + 1 / of_today) / budget.replicates))
    return tuple(found)


def find_replicates(space: spaces.Space, budget: spaces.Budget,
                    noise: float) -> int | None:
    """Return the smallest number of replicates that shows what matters.

    :returns: None if 1000 are too few
    """
    least = bisect.bisect_left(
        range(_MAX_REPLICATES + 1), True, key=lambda number: max(
            smallest_effects(space, dataclasses.replace(
                budget, replicates=number), noise)) <= space.matters)
    return least if least <= _MAX_REPLICATES else None
