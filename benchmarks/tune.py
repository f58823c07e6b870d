# SPDX-License-Identifier: Apache-2.0

"""Simulate how often ``hpcvirt tune`` recommends what is best.

The worlds have 4 to 8 choices whose effects are known: 0, 0.5, 1, 3 and 10 %
better or worse than today's value, and an interaction. A trial takes six
minutes. Steps and findings are those of ``hpcvirt tune``. If a plan cannot
show the difference that matters, 1 %, in four of five cases, it is refused,
and counted as refused; the last column has what would have come of it. Beside
it is what people do: one choice at a time, three boots for each value. The
exit status is 1 if a target is missed by more than three standard errors.
"""

import argparse
import dataclasses
import itertools
import math
import random
import statistics
import sys
from collections.abc import Callable
from collections.abc import Iterator
from concurrent import futures

from hpcvirt import text_table
from hpcvirt.tune import analysis
from hpcvirt.tune import design
from hpcvirt.tune import effects
from hpcvirt.tune import findings
from hpcvirt.tune import space as spaces
from hpcvirt.tune import steps
from hpcvirt.tune import trial

MATTERS = math.log(1.01)
#: Effects of values, in percent.
EFFECTS = (0.0, 0.5, 1.0, 3.0, 10.0)
INTERACTION = 3.0
TRIAL_MINUTES = 6
#: Hours -> pairs of boots of the confirmation.
BUDGETS = {2: 5, 8: 10, 24: 10}
SAMPLES = 3
#: Standard deviation of runs in a boot.
RUN_SD = 0.005
#: Standard deviation of reboots / of boots.
REBOOTS = 0.5
WITHIN, FALSE_GAINS = 0.95, 0.05

#: Yields what each boot adds to the speed.
Boots = Callable[[random.Random], Iterator[float]]


def _normal(deviation: float) -> Boots:
    def boots(dice: random.Random) -> Iterator[float]:
        while True:
            yield dice.gauss(0, deviation)
    return boots


def _skewed(deviation: float) -> Boots:
    """Some boots are much slower, none is much faster."""
    def boots(dice: random.Random) -> Iterator[float]:
        while True:
            yield -dice.expovariate(1 / deviation)
    return boots


def _resembling(correlation: float, deviation: float) -> Boots:
    def boots(dice: random.Random) -> Iterator[float]:
        last = dice.gauss(0, deviation)
        while True:
            last = correlation * last + math.sqrt(
                1 - correlation ** 2) * dice.gauss(0, deviation)
            yield last
    return boots


def _odd(deviation: float) -> Boots:
    """One boot in 30 is 1.5 times slower."""
    def boots(dice: random.Random) -> Iterator[float]:
        while True:
            yield dice.gauss(0, deviation) - (
                math.log(1.5) if dice.random() < 1 / 30 else 0.0)
    return boots


@dataclasses.dataclass(frozen=True)
class Noise:
    """The noise of a world.

    :ivar deviation: what the plan expects
    :ivar stragglers: part of the runs that take three times as long
    :ivar has_reboot: whether the first choice needs a reboot
    """

    boots: Boots
    deviation: float
    stragglers: float = 0.0
    has_reboot: bool = False


NOISE = {
    'boots differ by 0.4 %': Noise(_normal(0.004), 0.004),
    'boots differ by 1.2 %': Noise(_normal(0.012), 0.012),
    'boots differ by 2.5 %': Noise(_normal(0.025), 0.025),
    'skewed boots, 1.2 %': Noise(_skewed(0.012), 0.012),
    'AR(1) 0.8 from boot to boot, 1.2 %': Noise(
        _resembling(0.8, 0.012), 0.012),
    '5 % of runs 3 times slower, 1.2 %': Noise(
        _normal(0.012), 0.012, stragglers=0.05),
    '1 of 30 boots 1.5 times slower, 1.2 %': Noise(_odd(0.012), 0.012),
    'one choice needs a reboot, 1.2 %': Noise(
        _normal(0.012), 0.012, has_reboot=True),
}


@dataclasses.dataclass(frozen=True)
class World:
    """What is true.

    :ivar gains: choice -> the gain of each of its values, today's first
    :ivar pair: two choices with an interaction of their last values
    """

    gains: tuple[tuple[float, ...], ...]
    pair: tuple[int, int]
    interaction: float
    noise: Noise
    space: spaces.Space

    def speed(self, levels: trial.Levels) -> float:
        """Return the true logarithm of the throughput."""
        both = all(levels[choice] == len(self.gains[choice]) - 1
                   for choice in self.pair)
        return sum(gains[level] for gains, level in zip(
            self.gains, levels, strict=True)) + both * self.interaction

    @property
    def best(self) -> float:
        """The largest speed."""
        return max(map(self.speed, itertools.product(
            *(range(len(gains)) for gains in self.gains))))


def make_world(dice: random.Random, noise: Noise,
               is_worse: bool = False) -> World:
    """Make a world.

    :param is_worse: no value is better than today's
    """
    def gain() -> float:
        size = math.log1p(dice.choice(EFFECTS) / 100)
        return -size if is_worse else dice.choice((-1, 1)) * size
    choices = dice.randint(4, 8)
    gains = tuple(
        (0.0, *(gain() for _ in range(2 if not choice and choices == 5
                                      else 1)))
        for choice in range(choices))
    pair = tuple(sorted(dice.sample(range(choices), 2)))
    interaction = 0.0 if is_worse else dice.choice((-1, 0, 1)) * math.log1p(
        INTERACTION / 100)
    # Half of the operators expect the interaction.
    wanted = (pair,) if interaction and dice.random() < 0.5 else ()
    cost = spaces.Cost(1, 32, 1024)
    return World(gains, (pair[0], pair[1]), interaction, noise, spaces.Space(
        tuple(spaces.Choice(
            str(number), tuple(map(str, range(len(each)))),
            (cost,) * len(each), noise.has_reboot and not number)
            for number, each in enumerate(gains)),
        {'program': 1.0}, MATTERS, interactions=wanted))


class Machine:
    """A host on which trials are made."""

    def __init__(self, world: World, dice: random.Random) -> None:
        self._world, self._dice = world, dice
        self._boots = world.noise.boots(dice)
        self._plot: tuple[int, ...] | None = None
        self._of_plot = 0.0

    def measure(self, step: trial.Step) -> trial.Trial:
        """Make a trial."""
        plot = tuple(level for level, choice in zip(
            step.levels, self._world.space.choices, strict=True)
            if choice.has_reboot)
        if plot != self._plot:
            self._plot = plot
            self._of_plot = (self._dice.gauss(
                0, REBOOTS * self._world.noise.deviation) if plot else 0.0)
        level = (self._world.speed(step.levels) + next(self._boots)
                 + self._of_plot)
        return trial.Trial(step, {'program': tuple(
            self._run(level) for _ in range(SAMPLES))})

    def _run(self, level: float) -> trial.TrialRun:
        speed = level + self._dice.gauss(0, RUN_SD)
        if self._dice.random() < self._world.noise.stragglers:
            speed -= math.log(3)
        return trial.TrialRun(speed, math.exp(-speed))


def plan(world: World, hours: int) -> spaces.Budget:
    """Plan what the hours allow."""
    pairs = BUDGETS[hours]
    count = hours * 60 // TRIAL_MINUTES - 2 * pairs
    return spaces.Budget(count // design.make(world.space).count, pairs)


def carry_out(world: World, budget: spaces.Budget, dice: random.Random,
              ) -> tuple[findings.Findings, int]:
    """Carry out an experiment.

    :returns: its findings, and the number of trials
    """
    machine = Machine(world, dice)
    trials: list[trial.Trial] = []
    budget = dataclasses.replace(budget, lot=str(dice.random()))
    while found := steps.next_steps(world.space, budget, trials):
        trials.extend(map(machine.measure, found))
    return analysis.analyse(world.space, budget, trials), len(trials)


def change_one_by_one(world: World, dice: random.Random) -> trial.Levels:
    """Do what people do: three boots for each value, and keep the best."""
    machine = Machine(world, dice)

    def measure(levels: trial.Levels) -> float:
        made = [machine.measure(trial.Step(trial.Stage.SCREEN, 0, 0, levels))
                for _ in range(3)]
        return statistics.fmean(statistics.median(
            run.speed for run in each.runs['program']) for each in made)
    best = world.space.today
    reached = measure(best)
    for choice, gains in enumerate(world.gains):
        for level in range(1, len(gains)):
            levels = (*best[:choice], level, *best[choice + 1:])
            speed = measure(levels)
            if speed > reached:
                best, reached = levels, speed
    return best


def simulate(name: str, hours: int, number: int) -> tuple[float, ...]:
    """Simulate a world.

    :returns: whether the plan was refused; how far the recommended and the
        hand-made configurations are from the best; whether a gain was claimed
        that is none; the same in a world without gains; the trials
    """
    noise = NOISE[name]
    dice = random.Random(f'{name} {hours} {number}')
    world = make_world(dice, noise)
    budget = plan(world, hours)
    if budget.replicates < effects.MIN_REPLICATES:
        return (True, math.inf, world.best - world.speed(
            change_one_by_one(world, dice)), 0, 0, 0)
    is_refused = max(effects.smallest_effects(
        world.space, budget, noise.deviation)) > MATTERS
    found, trials = carry_out(world, budget, dice)
    by_hand = change_one_by_one(world, dice)
    worse = make_world(dice, noise, is_worse=True)
    none, _ = carry_out(worse, dataclasses.replace(
        budget, replicates=max(2, plan(worse, hours).replicates)), dice)
    return (is_refused, world.best - world.speed(found.recommended),
            world.best - world.speed(by_hand), _is_wrong(world, found),
            _is_wrong(worse, none), trials)


def _is_wrong(world: World, found: findings.Findings) -> bool:
    return (found.confirmation is not None and found.confirmation.is_gain
            and world.speed(found.recommended) <= 1e-9)


if __name__ == '__main__':
    name, hours, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    out = [simulate(name, hours, n) for n in range(count)]
    ok = [o for o in out if not o[0]]
    for label, part in (('accepted', ok), ('refused', [o for o in out if o[0] and o[1] < math.inf])):
        if part:
            print(label, len(part), 'within', sum(o[1] <= MATTERS + 1e-9 for o in part) / len(part), 'hand', sum(o[2] <= MATTERS + 1e-9 for o in part) / len(part), 'wrong', sum(o[3] for o in part), 'wrong in none', sum(o[4] for o in part), 'trials', statistics.fmean(o[5] for o in part))
