# SPDX-License-Identifier: Apache-2.0

"""Predict before a run what it can decide, and how long it takes."""

import dataclasses
from collections.abc import Iterator

from hpcvirt.bench.analysis import power
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.run import plan as plans
from hpcvirt.bench.run import schedule

#: Coefficients of variation of a quiet, a typical and a shared machine.
_VARIATIONS = (0.01, 0.03, 0.10)


def describe(plan: plans.RunPlan) -> Iterator[str]:
    """Yield lines on which guests pass each comparison in 4 of 5 cases."""
    for planned in plan.runs:
        run = planned.run
        goals = plans.find_goals(run)
        if run.purpose is not record.Purpose.COMPARE or not goals:
            continue
        figures = run.planned_figures
        among = ('1 figure' if figures == 1 else
                 f'{figures} figures that are judged together')
        units = plans.count_units(run, run.planned_pairs)
        yield (f'plan {run.label}: {run.planned_pairs} pairs'
               + (f' in at least {units} boots' if run.relaunched else '')
               + f', {among}, {_duration(run)}')
        goal = goals[0]
        yield (f'  {goal.metric}, bound '
               f'{stats.ratio_of_loss(goal.limit, goal.direction):.4g}'
               ': a guest passes in 4 of 5 cases')
        for variation in _VARIATIONS:
            yield (f'    if single runs vary by {variation:.0%}: '
                   + _prospect(run, variation, units, goal))


def _prospect(run: record.Run, variation: float, units: int,
              goal: plans.Goal) -> str:
    """Describe which guest passes with this noise, or the pairs it needs."""
    loss = goal.limit - power.find_margin(
        variation, units, run.planned_figures, run.planned_pairs, goal.limit)
    good = goal.limit - goal.distance
    if loss >= good:
        word = 'from' if goal.direction is outcome.Direction.UP else 'up to'
        return f'{word} {stats.ratio_of_loss(loss, goal.direction):.3f}'
    pairs = power.find_pairs(variation, goal.distance, goal.limit,
                             run.planned_figures,
                             lambda pairs: plans.count_units(run, pairs))
    of_good = ('a guest that equals native' if good <= stats.EQUAL else
               'a guest as in the study')
    if pairs is None:
        return f'not even {of_good}, with {power.MAX_PAIRS} pairs'
    longer = dataclasses.replace(run, planned_pairs=pairs)
    return (f'hardly any with {run.planned_pairs} pairs; {of_good} with '
            f'{pairs}, {_duration(longer)}')


def _duration(run: record.Run) -> str:
    """Describe how long the jobs take, without relaunches of the guest."""
    minutes = len(schedule.list_missing(run))
    return (f'about {schedule.format_seconds(60 * minutes)} if a job takes a '
            'minute')
