# SPDX-License-Identifier: Apache-2.0

"""Refuse values that win on average but make some jobs very slow.

A run is a straggler if it failed, or took much longer than is typical for its
configuration, in any case if it took ``slower_than`` times as long. A value is
refused if significantly more of its trials have stragglers than those of the
other values of its choice; the runs of a trial are not independent. A value is
refused too if its trials have as many TLB shoot-downs as a slow host
[CERN-HEPiX-2015] and those of the other values do not.
"""

import math
import statistics
from collections.abc import Callable
from collections.abc import Sequence

from hpcvirt.bench.analysis import stragglers
from hpcvirt.health import signature
from hpcvirt.tune import effects
from hpcvirt.tune import model

#: The chance that a value is refused whose trials are like the others.
LEVEL = 0.005
#: TLB shoot-downs in a second for each CPU.
MAX_SHOOTDOWNS = next(
    sign.limits[signature.Quantity.SHOOTDOWNS]
    for sign in signature.SIGNS if sign.name == 'cpu-shootdowns')

_Row = tuple[model.Trial, list[int]]


class Guard:
    """The slow runs of trials in guests."""

    def __init__(self, space: model.Space,
                 trials: Sequence[model.Trial]) -> None:
        #: Each trial with its number of runs and of stragglers.
        self._counted = [(each, [0, 0]) for each in trials
                         if each.step.stage is not model.Stage.NATIVE]
        for program in space.experiment.programs:
            runs: list[tuple[tuple[model.Trial, list[int]], float | None]] = []
            for row in self._counted:
                runs += [(row, effects.find_time(run))
                         for run in row[0].runs.get(program, ())]
            typical, most = effects.fit_typical(
                [each.step.levels for (each, _), _ in runs],
                [speed for _, speed in runs])
            most = min(most, math.log(space.experiment.never.slower_than))
            for ((_, counts), speed), usual in zip(runs, typical, strict=True):
                counts[0] += 1
                counts[1] += speed is None or usual - speed > most

    def count(self, choice: int, level: int) -> tuple[int, int, int]:
        """Count the trials with a value, their runs, and the stragglers."""
        own = [counts for each, counts in self._counted
               if each.step.levels[choice] == level]
        runs, slow = map(sum, zip(*own, strict=True))
        return len(own), runs, slow

    def refuse_value(self, choice: int, level: int) -> str | None:
        """Return why a value must not be recommended, None if it may."""
        return self.refuse(lambda step: step.levels[choice] == level)

    def refuse(self, is_own: Callable[[model.Step], bool]) -> str | None:
        """Likewise, compare some trials with all others."""
        sides: tuple[list[_Row], list[_Row]] = [], []
        for row in self._counted:
            sides[not is_own(row[0].step)].append(row)
        own, others = sides
        struck, other = (sum(slow > 0 for _, (_, slow) in side)
                         for side in sides)
        if stragglers.find_chance(other, struck, len(others),
                                  len(own)) <= LEVEL:
            return ('runs failed or were much slower than usual in '
                    f'{struck} of {len(own)} boots, but in {other} of '
                    f'{len(others)} others')
        rate, other_rate = (statistics.median(
            [each.shootdowns or 0.0 for each, _ in side] or [0.0])
            for side in sides)
        if rate > MAX_SHOOTDOWNS >= other_rate:
            return (f'{rate:.0f} TLB shoot-downs in a second for each CPU, and'
                    f' more than {MAX_SHOOTDOWNS:.0f} make jobs slow')
        return None
