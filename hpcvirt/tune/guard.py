# SPDX-License-Identifier: Apache-2.0

"""Refuse values that win on average but make some jobs very slow.

A run is a straggler if it failed, or took much longer than is typical for its
configuration. A value is refused if more of its trials have stragglers than
those of the other values of its choice and the difference is significant.
Trials count instead of runs, because one bad boot may slow down all of its
runs. A value is refused too if its trials have as many TLB shoot-downs as a
slow host [CERN-HEPiX-2015] and those of the other values do not.
"""

import dataclasses
import math
import statistics
from collections.abc import Sequence

from hpcvirt.bench.analysis import stats
from hpcvirt.bench.analysis import stragglers
from hpcvirt.health import host_sample
from hpcvirt.health import signature
from hpcvirt.tune import replicates
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


@dataclasses.dataclass(frozen=True)
class SlowRuns:
    """The slow runs of some trials and of others.

    :ivar runs: numbers of runs of these and of the others
    :ivar slow: numbers of stragglers
    :ivar reason: why these trials are refused, None if they are not
    """

    runs: tuple[int, int]
    slow: tuple[int, int]
    reason: str | None


class Guard:
    """The slow runs of all trials."""

    def __init__(self, space: spaces.Space,
                 trials: Sequence[trial.Trial]) -> None:
        self._space = space
        self._trials = [each for each in trials
                        if each.step.stage is not trial.Stage.NATIVE]
        #: Number of runs, stragglers, and runs that must not happen.
        self._counts = [[0, 0, 0] for _ in self._trials]
        for program in space.weights:
            self._count(program)

    def _count(self, program: str) -> None:
        runs = [(number, _find_speed(run))
                for number, each in enumerate(self._trials)
                for run in each.runs.get(program, ())]
        typical = replicates.fit_typical(
            [self._trials[number].step.levels for number, _ in runs],
            [speed for _, speed in runs])
        lost = [math.inf if speed is None else usual - speed
                for (_, speed), usual in zip(runs, typical, strict=True)]
        ended = [each for each in lost if each < math.inf] or [0.0]
        most = max(stragglers.MIN_LOSS,
                   stragglers.DEVIATIONS * stats.robust_deviation(ended))
        for (number, _), each in zip(runs, lost, strict=True):
            for place, least in enumerate((-math.inf, most, math.log(
                    self._space.slower_than))):
                self._counts[number][place] += each > least

    def judge_value(self, choice: int, level: int) -> SlowRuns:
        """Compare the trials of a value with those of its choice's others."""
        screened = [number for number, each in enumerate(self._trials)
                    if each.step.stage is trial.Stage.SCREEN]
        return self._judge(screened, [
            number for number in screened
            if self._trials[number].step.levels[choice] == level])

    def judge_winner(self, levels: trial.Levels) -> SlowRuns:
        """Compare a confirmed configuration with all other trials."""
        return self._judge(range(len(self._trials)), [
            number for number, each in enumerate(self._trials)
            if each.step.stage is trial.Stage.CONFIRM
            and each.step.levels == levels])

    def find_refused(self) -> frozenset[tuple[int, int]]:
        """Return the choices with the levels that are refused."""
        return frozenset(
            (index, level)
            for index, choice in enumerate(self._space.choices)
            for level in range(1, len(choice.values))
            if self.judge_value(index, level).reason)

    def _judge(self, numbers: Sequence[int], own: Sequence[int]) -> SlowRuns:
        """Compare some of the trials with the others."""
        sides = own, [*set(numbers) - set(own)]
        runs, slow, _ = ([
            sum(self._counts[number][place] for number in side)
            for side in sides] for place in range(3))
        return SlowRuns((runs[0], runs[1]), (slow[0], slow[1]),
                        self._find_reason(*sides))

    def _find_reason(self, own: Sequence[int],
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
        rate, other_rate = map(self._find_shootdowns, (own, others))
        if rate > MAX_SHOOTDOWNS >= other_rate:
            return (f'{rate:.0f} TLB shoot-downs in a second for each CPU, and'
                    f' more than {MAX_SHOOTDOWNS:.0f} make jobs slow')
        return None

    def _find_shootdowns(self, numbers: Sequence[int]) -> float:
        known = [rate for number in numbers
                 if (rate := self._trials[number].shootdowns) is not None]
        return statistics.median(known) if known else 0.0


def _find_speed(run: trial.TrialRun) -> float | None:
    """Return the speed of the slowest guest, None if the run failed."""
    if run.speed is None:
        return None
    return -math.log(run.time_s) if run.time_s else run.speed
