# SPDX-License-Identifier: Apache-2.0

"""Choose the simplest configuration that is near the best one.

The prediction for a configuration is the sum of the effects of its values and
of the interactions that are beyond doubt. An interaction that is confounded
with others is divided among them; those of choices with large effects get the
larger part, because they are more likely the cause.
"""

import collections
import itertools
from collections.abc import Collection
from collections.abc import Mapping

from hpcvirt.tune import effects
from hpcvirt.tune import space as spaces
from hpcvirt.tune import trial

#: The predicted objective of the recommended configuration is lower than that
#: of the best one by at most this part of the difference that matters.
NEAR = 0.25

_Pair = tuple[int, int]


def rank_values(choice: spaces.Choice) -> list[int]:
    """Return the levels of a choice, the simplest first.

    Today's is the simplest, then those with more guests, then those that
    leave more cores to guests.
    """
    return sorted(range(len(choice.values)), key=lambda level: (
        level != 0, -choice.costs[level].guests, -choice.costs[level].cores,
        -choice.costs[level].memory_mib, level))


class Predictor:
    """What is predicted for configurations, relative to a typical one."""

    def __init__(self, fit: effects.Fit) -> None:
        self._mains = [[
            fit.find_effect(choice, level).loss if level else 0.0
            for level in range(len(fit.space.choices[choice].values))]
            for choice in range(len(fit.space.choices))]
        self._terms: dict[_Pair, dict[_Pair, float]] = {}
        size = [max(map(abs, gains)) + fit.space.matters
                for gains in self._mains]
        for pair in fit.find_counting():
            likely = {each: size[each[0]] * size[each[1]]
                      for each in (pair, *fit.find_aliases(pair))}
            wanted = [each for each in likely
                      if each in fit.space.interactions]
            if wanted:
                likely = dict.fromkeys(wanted, 1.0)
            if pair in likely:
                part = likely[pair] / sum(likely.values())
                self._terms[pair] = {
                    cell: part * value
                    for cell, value in fit.find_terms(pair).items()}
        for (first, second), cells in self._terms.items():
            self._correct(fit, first, second, cells)
            self._correct(fit, second, first, {
                cell[::-1]: value for cell, value in cells.items()})

    def _correct(self, fit: effects.Fit, choice: int, other: int,
                 cells: Mapping[_Pair, float]) -> None:
        """Remove an interaction from the effects of a choice.

        It is part of them in replicates in which the other choice was fixed.
        """
        varied = [each.fixed for each in fit.replicates
                  if choice not in each.fixed]
        for fixed in varied:
            if other in fixed:
                for level, gain in enumerate(self._mains[choice]):
                    self._mains[choice][level] = gain - (
                        cells[level, fixed[other]]
                        - cells[0, fixed[other]]) / len(varied)

    def predict(self, levels: trial.Levels) -> float:
        """Return the predicted objective, up to a constant."""
        return sum(effects[level] for effects, level in zip(
            self._mains, levels, strict=True)) + sum(
                cells.get((levels[first], levels[second]), 0.0)
                for (first, second), cells in self._terms.items())

    def find_reach(self, choice: int) -> float:
        """Return how much other choices can change an effect of a choice."""
        return sum(max(map(abs, cells.values())) * 2
                   for pair, cells in self._terms.items() if choice in pair)


def recommend(fit: effects.Fit,
              refused: Collection[_Pair]) -> trial.Levels:
    """Return the simplest configuration near the best predicted one.

    :param refused: choices with a level that must not be recommended
    """
    prediction = Predictor(fit)
    allowed = [[level for level in rank_values(choice)
                if not level or (index, level) not in refused]
               for index, choice in enumerate(fit.space.choices)]
    best = _find_best(prediction, allowed)
    least = prediction.predict(best) - NEAR * fit.space.matters
    while True:
        simpler = [_replace(best, {choice: level})
                   for choice, levels in enumerate(allowed)
                   for level in levels[:levels.index(best[choice])]]
        found = max(simpler, key=prediction.predict, default=None)
        if found is None or prediction.predict(found) < least:
            return best
        best = found


def _find_best(prediction: Predictor,
               allowed: list[list[int]]) -> trial.Levels:
    """Return the best configuration: change up to two choices at a time."""
    best = tuple(levels[0] for levels in allowed)
    while True:
        changed = [
            _replace(best, dict(zip(pair, levels, strict=True)))
            for pair in itertools.combinations_with_replacement(
                range(len(allowed)), 2)
            for levels in itertools.product(*(allowed[choice]
                                              for choice in pair))]
        found = max(changed, key=prediction.predict)
        if prediction.predict(found) <= prediction.predict(best) + 1e-12:
            return best
        best = found


def _replace(levels: trial.Levels, new: Mapping[int, int]) -> trial.Levels:
    return tuple(collections.ChainMap(dict(new), dict(enumerate(levels)))[
        choice] for choice in range(len(levels)))
