# SPDX-License-Identifier: Apache-2.0

"""Experiments of tune whose truth is known."""

import itertools
import math
import random

from hpcvirt.tune import analysis
from hpcvirt.tune import experiment as experiments
from hpcvirt.tune import model

COST = model.HostCost(2, 32, 65536)


def make_experiment(*programs, **fields):
    """An experiment with some programs of equal weight, and no choices yet."""
    return experiments.Experiment(**{
        'kind': 'experiment', 'schema_version': 1,
        'name': '', 'fleet': '', 'host_class': '',
        'programs': {name: experiments.TunedProgram(benchmark=name, minutes=1)
                     for name in programs},
        'choices': {}, 'limits': experiments.Limits(hours=1), **fields})


def space(*sizes, whole=(), matters=0.01, replicates=4, programs=('p',),
          **fields):
    """A space of choices with so many values each, named a, b and so on.

    :param whole: indices of the choices that need a reboot
    """
    return model.Space(make_experiment(
        *programs, matters_percent=100 * math.expm1(matters), **fields), tuple(
        model.Choice(chr(ord('a') + index),
                     ('today', *map(str, range(1, size))), (COST,) * size,
                     index in whole)
        for index, size in enumerate(sizes)), {}, (), replicates)


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
    return model.Trial(step, {program: (model.TrialRun(
        value, math.exp(-value)),) * samples for program in programs},
        **fields)


def carry_out(found, speed, noise=0.0, seed='', make=measure):
    """Carry out an experiment and return its trials."""
    dice = random.Random(seed)
    trials = []
    while rest := analysis.next_steps(found, trials):
        trials += [make(step, speed, noise, dice) for step in rest]
    return trials
