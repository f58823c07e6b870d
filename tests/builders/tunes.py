# SPDX-License-Identifier: Apache-2.0

"""Experiments of tune whose truth is known."""

import itertools
import math
import random

from hpcvirt.tune import space as spaces
from hpcvirt.tune import steps
from hpcvirt.tune import trial

COST = spaces.HostCost(2, 32, 65536)


def space(*sizes, whole=(), matters=0.01, **fields):
    """A space of choices with so many values each, named a, b and so on.

    :param whole: indices of the choices that need a reboot
    """
    return spaces.Space(tuple(
        spaces.Choice(chr(ord('a') + index),
                      ('today', *map(str, range(1, size))), (COST,) * size,
                      index in whole)
        for index, size in enumerate(sizes)),
        matters=matters, **{'weights': {'p': 1.0}, **fields})


def sum_gains(gains, interactions=None):
    """The speed of configurations.

    :param gains: of each choice, the gain of each value over today's
    :param interactions: pair of choices -> the gain of both last values
    """
    def speed(levels):
        both = sum(gain for pair, gain in (interactions or {}).items()
                   if all(levels[choice] == len(gains[choice])
                          for choice in pair))
        return both + sum(gains[choice][level - 1] for choice, level
                          in enumerate(levels) if level)
    return speed


def find_best(found, speed):
    return max(itertools.product(*(range(len(choice.values))
                                   for choice in found.choices)), key=speed)


def measure(step, speed, noise=0.0, dice=None, samples=3, programs=('p',),
            **fields):
    """Make a trial; the runs of a trial are alike."""
    value = speed(step.levels) + (dice.gauss(0, noise) if noise else 0.0)
    return trial.Trial(step, {program: (trial.TrialRun(
        value, math.exp(-value)),) * samples for program in programs},
        **fields)


def carry_out(found, budget, speed, noise=0.0, seed='', make=measure):
    """Carry out an experiment and return its trials."""
    dice = random.Random(seed)
    trials = []
    while rest := steps.next_steps(found, budget, trials):
        trials += [make(step, speed, noise, dice) for step in rest]
    return trials
