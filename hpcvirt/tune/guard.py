# SPDX-License-Identifier: Apache-2.0

"""Refuse values that win on average but make some jobs very slow.

A run is a straggler if it failed, or took much longer than is typical for its
configuration. A value is refused if its runs have more stragglers than those
of the other values of its choice and the difference is significant, or if its
trials have as many TLB shoot-downs as a slow host [CERN-HEPiX-2015] and those
of the other values do not.
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

#: The chance that a value is refused whose runs are like those of the others,
#: by all stragglers and by those that must not happen.
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
    :ivar never: numbers of runs that must not happen
    :ivar shootdowns: medians of the shoot-downs, None if unknown
    """

    runs: tuple[int, int]
    slow: tuple[int, int]
    never: tuple[int, int]
    shootdowns: tuple[float | None, float | None]
    slower_than: float

    @property
    def reason(self) -> str | None:
        """Why these trials are refused, None if they are not."""
        never = f'failed or took {self.slower_than:g} times as long as usual'
        for (own, other), level, what in (
                (self.never, NEVER_LEVEL, never),
                (self.slow, LEVEL, 'were stragglers')):
            if own and stragglers.find_chance(
                    other, own, *self.runs[::-1]) <= level:
                return (f'{own} of {self.runs[0]} runs {what}, but only '
                        f'{other} of {self.runs[1]} others')
        own_rate, other_rate = self.shootdowns
        if own_rate is not None and own_rate > MAX_SHOOTDOWNS and not (
                other_rate is not None and other_rate > MAX_SHOOTDOWNS):
            return (f'{own_rate:.0f} TLB shoot-downs in a second for each CPU,'
                    f' and more than {MAX_SHOOTDOWNS:.0f} make jobs slow')
        return None


class Guard:
    """The slow runs of all trials."""

    def __init__(self, space: spaces.Space,
                 trials: Sequence[trial.Trial]) -> None:
        self._space = space
        self._trials = [each for each in trials
                        if each.step.stage is not trial.Stage.NATIVE]
        #: Number of runs, of stragglers, and of runs that must not happen.
        self._counts = [[0, 0, 0] for _ in self._trials]
        for program in space.weights:
            self._count(program)

    def _count(self, program: str) -> None:
        runs = [(number, run) for number, each in enumerate(self._trials)
                for run in each.runs.get(program, ())]
        values = [_find_speed(run) for _, run in runs]
        typical = replicates.fit_medians(
            [self._trials[number].step.levels for number, _ in runs], values)
        lost = [math.inf if value is None else usual - value
                for value, usual in zip(values, typical, strict=True)]
        most = max(stragglers.MIN_LOSS, stragglers.DEVIATIONS
                   * stats.robust_deviation([each for each in lost
                                             if each < math.inf] or [0.0]))
        for (number, _), each in zip(runs, lost, strict=True):
            counts = self._counts[number]
            counts[0] += 1
            counts[1] += each > most
            counts[2] += each > max(most, math.log(self._space.slower_than))

    def judge_value(self, choice: int, level: int) -> SlowRuns:
        """Compare the trials of a value with those of its choice's others."""
        return self._compare([
            None if each.step.stage is not trial.Stage.SCREEN
            else each.step.levels[choice] == level for each in self._trials])

    def judge_winner(self, levels: trial.Levels) -> SlowRuns:
        """Compare a confirmed configuration with all other trials."""
        return self._compare([
            each.step.stage is trial.Stage.CONFIRM
            and each.step.levels == levels for each in self._trials])

    def find_refused(self) -> frozenset[tuple[int, int]]:
        """Return the choices with the levels that are refused."""
        return frozenset(
            (index, level)
            for index, choice in enumerate(self._space.choices)
            for level in range(1, len(choice.values))
            if self.judge_value(index, level).reason)

    def _compare(self, sides: Sequence[bool | None]) -> SlowRuns:
        sums = {side: [0, 0, 0] for side in (True, False)}
        rates: dict[bool, list[float]] = {True: [], False: []}
        for each, counts, side in zip(self._trials, self._counts, sides,
                                      strict=True):
            if side is not None:
                sums[side] = [one + other for one, other in zip(
                    sums[side], counts, strict=True)]
                if each.shootdowns is not None:
                    rates[side].append(each.shootdowns)
        runs, slow, never = zip(sums[True], sums[False], strict=True)
        own, other = (statistics.median(rates[side]) if rates[side] else None
                      for side in (True, False))
        return SlowRuns(runs, slow, never, (own, other),
                        self._space.slower_than)


def _find_speed(run: trial.TrialRun) -> float | None:
    """Return the speed of the slowest guest, None if the run failed."""
    if run.speed is None:
        return None
    return -math.log(run.time_s) if run.time_s else run.speed
