# SPDX-License-Identifier: Apache-2.0

"""Predict before a run what it can decide, and how long it takes."""

import dataclasses
from collections.abc import Iterator

from hpcvirt.bench.analysis import bounds
from hpcvirt.bench.analysis import interim_analyses
from hpcvirt.bench.analysis import power
from hpcvirt.bench.analysis import signed_rank
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.model import judgement
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
        known = bounds.foresee(run)
        if run.purpose is not record.Purpose.COMPARE or not known:
            continue
        figures = run.planned_figures
        units = plans.count_units(run)
        among = ('1 figure' if figures == 1 else
                 f'{figures} figures that are judged together')
        yield (f'plan {run.label}: {run.planned_pairs} pairs'
               + (f' in up to {units} boots' if run.relaunched else '')
               + f', {among}, {_duration(run)}')
        if units < signed_rank.find_least(1 / figures):
            yield (f'  cannot decide: {among} need '
                   f'{signed_rank.find_least(1 / figures)} '
                   f'{"boots" if run.relaunched else "pairs"}; give --pairs '
                   f'{plans.find_least(run, figures)}')
            continue
        metric, limit, direction = _find_tightest(run, known)
        yield (f'  {metric}, bound {stats.ratio_of_loss(limit, direction):.4g}'
               ': a guest passes in 4 of 5 cases')
        for variation in _VARIATIONS:
            yield (f'    if single runs vary by {variation:.0%}: '
                   + _prospect(run, variation, units, limit, direction))


def _find_tightest(run: record.Run, known: dict[str, judgement.Bound],
                   ) -> tuple[str, float, outcome.Direction]:
    """Return the figure that may lose least, its limit and direction."""
    directions = {figure.name: figure.direction
                  for figure in catalogue.get(run.benchmark).metrics}
    found = []
    for metric, bound in known.items():
        direction = directions.get(bounds.split(metric)[0])
        if direction is not None:
            found.append((stats.loss_of_ratio(
                bound.limit(direction), direction), metric, direction))
    limit, metric, direction = min(found)
    return metric, limit, direction


def _prospect(run: record.Run, variation: float, units: int, limit: float,
              direction: outcome.Direction) -> str:
    """Describe which guest passes with this noise, or the pairs it needs."""
    loss = limit - power.find_margin(variation, units, run.planned_figures,
                                     run.planned_pairs, limit)
    if loss >= 0:
        word = 'from' if direction is outcome.Direction.UP else 'up to'
        return f'{word} {stats.ratio_of_loss(loss, direction):.3f}'
    pairs = power.find_pairs(variation, limit, run.planned_figures)
    if pairs is None:
        return ('not even a guest that equals native, with '
                f'{interim_analyses.MAX_PAIRS} pairs')
    longer = dataclasses.replace(run, planned_pairs=pairs)
    return (f'no guest with {run.planned_pairs} pairs; a guest that equals '
            f'native with {pairs}, {_duration(longer)}')


def _duration(run: record.Run) -> str:
    """Describe how long the jobs take, without relaunches of the guest."""
    minutes = len(schedule.list_missing(run))
    return (f'about {schedule.format_seconds(60 * minutes)} if a job takes a '
            'minute')
