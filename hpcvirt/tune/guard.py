# SPDX-License-Identifier: Apache-2.0

"""Refuse values that win on average but make some jobs very slow.

A run is a straggler if it failed, or took much longer than is typical for its
configuration. A value is refused if more of its trials have stragglers than
those of the other values of its choice and the difference is significant.
Trials count instead of runs, because one bad boot may slow down all of its
runs. A value is refused too if its trials have as many TLB shoot-downs as a
slow host [CERN-HEPiX-2015] and those of the other values do not.
"""

import math
import statistics
from collections.abc import Sequence

from hpcvirt.bench.analysis import stats
from hpcvirt.bench.analysis import stragglers
from hpcvirt.health import host_sample
from hpcvirt.health import signature
from hpcvirt.tune import effects
from hpcvirt.tune import space as spaces
from hpcvirt.tune import trial

#: The chance that a value is refused whose trials are like the others: by all
#: stragglers, and by those that must not happen.
LEVEL = stragglers.ALPHA
NEVER_LEVEL = 0.01
#: TLB shoot-downs in a second for each CPU.
MAX_SHOOTDOWNS = next(
    sign.limits[host_sample.Quantity.SHOOTDOWNS]
    for sign in signature.SIGNS if sign.name == 'cpu-shootdowns')


class Guard:
    """The slow runs of trials."""

    def __init__(self, space: spaces.Space,
                 trials: Sequence[trial.Trial]) -> None:
        self._space, self._trials = space, trials
        #: Number of runs, stragglers, and runs that must not happen.
        self._counts = [[0, 0, 0] for _ in trials]
        for program in space.weights:
            self._count(program)

    def _count(self, program: str) -> None:
        runs = [(number, effects.find_time(run))
                for number, each in enumerate(self._trials)
                for run in each.runs.get(program, ())]
        typical = effects.fit_typical(
            [self._trials[number].step.levels for number, _ in runs],
            [speed for _, speed in runs])
        lost = [math.inf if speed is None else usual - speed
                for (_, speed), usual in zip(runs, typical, strict=True)]
        most = max(stragglers.MIN_LOSS, stragglers.DEVIATIONS
                   * stats.robust_deviation([
                       each for each in lost if each < math.inf] or [0.0]))
        for (number, _), each in zip(runs, lost, strict=True):
            for place, least in enumerate((-math.inf, most, math.log(
                    self._space.slower_than))):
                self._counts[number][place] += each > least

    def count(self, choice: int,
              level: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the numbers of runs and of stragglers.

        :returns: each with a value, and with the other values of its choice
        """
        sides = self._split(choice, level)
        runs, slow, _ = (tuple(
            sum(self._counts[number][place] for number in side)
            for side in sides) for place in range(3))
        return runs, slow

    def refuse_value(self, choice: int, level: int) -> str | None:
        """Return why a value must not be recommended, None if it may."""
        return self._refuse(*self._split(choice, level))

    def refuse_winner(self, levels: trial.Levels) -> str | None:
        """Likewise, compare a confirmed configuration with all others."""
        numbers = range(len(self._trials))
        own = [number for number in numbers
               if self._trials[number].step.stage is trial.Stage.CONFIRM
               and self._trials[number].step.levels == levels]
        return self._refuse(own, [*{*numbers} - {*own}])

    def _split(self, choice: int, level: int) -> tuple[list[int], list[int]]:
        sides: tuple[list[int], list[int]] = [], []
        for number, each in enumerate(self._trials):
            sides[each.step.levels[choice] != level].append(number)
        return sides

    def _refuse(self, own: Sequence[int],
                others: Sequence[int]) -> str | None:
        times = f'{self._space.slower_than:g} times'
        for place, level, what in (
                (2, NEVER_LEVEL, f'failed or took {times} as long as usual'),
                (1, LEVEL, 'were much slower than usual')):
            struck, other = (sum(self._counts[number][place] > 0
                                 for number in side) for side in (own, others))
            if stragglers.find_chance(other, struck, len(others),
                                      len(own)) <= level:
                return (f'runs {what} in {struck} of {len(own)} boots, but in '
                        f'{other} of {len(others)} others')
        rate, other_rate = (statistics.median(
            [self._trials[number].shootdowns or 0.0 for number in side]
            or [0.0]) for side in (own, others))
        if rate > MAX_SHOOTDOWNS >= other_rate:
            return (f'{rate:.0f} TLB shoot-downs in a second for each CPU, and'
                    f' more than {MAX_SHOOTDOWNS:.0f} make jobs slow')
        return None
