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
from collections.abc import Callable
from collections.abc import Sequence

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

_Test = Callable[[trial.Step], bool]


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
        typical, most = effects.fit_typical(
            [self._trials[number].step.levels for number, _ in runs],
            [speed for _, speed in runs])
        limits = (-math.inf, most, math.log(self._space.slower_than))
        for (number, speed), usual in zip(runs, typical, strict=True):
            lost = math.inf if speed is None else usual - speed
            for place, limit in enumerate(limits):
                self._counts[number][place] += lost > limit

    def count(self, choice: int,
              level: int) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """Return the number of trials with a value, of runs and of stragglers.

        :returns: the latter with the value, and with the others of its choice
        """
        sides = self._split(lambda step: step.levels[choice] == level)
        runs, slow, _ = (tuple(
            sum(self._counts[number][place] for number in side)
            for side in sides) for place in range(3))
        return len(sides[0]), runs, slow

    def refuse_value(self, choice: int, level: int) -> str | None:
        """Return why a value must not be recommended, None if it may."""
        return self._refuse(lambda step: step.levels[choice] == level)

    def refuse_winner(self, levels: trial.Levels) -> str | None:
        """Likewise, compare a confirmed configuration with all others."""
        return self._refuse(lambda step: step.levels == levels
                            and step.stage is trial.Stage.CONFIRM)

    def _split(self, is_own: _Test) -> tuple[list[int], list[int]]:
        sides: tuple[list[int], list[int]] = [], []
        for number, each in enumerate(self._trials):
            sides[not is_own(each.step)].append(number)
        return sides

    def _refuse(self, is_own: _Test) -> str | None:
        own, others = self._split(is_own)
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
