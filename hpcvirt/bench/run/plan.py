# SPDX-License-Identifier: Apache-2.0

"""Plan what to measure, where, and how many times.

``hpcvirt bench run`` and the Tempest plugin make a plan from requests
(:mod:`hpcvirt.bench.run.run_request`) and pairs of a guest and a native target
(:mod:`hpcvirt.bench.run.sides`); :mod:`hpcvirt.bench.run.runner` executes it.
"""

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from hpcvirt import exception
from hpcvirt import serialization
from hpcvirt.bench.analysis import boots
from hpcvirt.bench.analysis import bounds as all_bounds
from hpcvirt.bench.analysis import power
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import stats
from hpcvirt.bench.catalogue import catalogue
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import metric_definition
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.results import aggregation
from hpcvirt.bench.run import run_request as requests
from hpcvirt.bench.run import run_spec
from hpcvirt.bench.run import sides
from hpcvirt.bench.run import target as targets

#: The most pairs that are planned unless the user asks for more.
MAX_USUAL_PAIRS = 40
#: The pairs that are planned for a bound of a study: 16 pass 9 of 10 guests as
#: in the study even if single runs vary by 2 %, and 10 pairs pass 7.
STUDY_PAIRS = 16


@dataclasses.dataclass(frozen=True)
class PlannedRun:
    """One run of a plan.

    :ivar jobs: the jobs that each side starts together for a sample; an
        unpaired run needs only those of the guest
    :ivar run: the record, still without an id, an identity and samples
    """

    jobs: sides.Jobs
    run: record.Run

    @property
    def guest_jobs(self) -> tuple[run_spec.JobSpec, ...]:
        return self.jobs[record.Side.GUEST]

    @property
    def all_jobs(self) -> tuple[run_spec.JobSpec, ...]:
        """The jobs of both sides, native first."""
        return (*self.jobs.get(record.Side.NATIVE, ()), *self.guest_jobs)


@dataclasses.dataclass(frozen=True)
class RunPlan:
    """The runs of one invocation, in their order."""

    runs: tuple[PlannedRun, ...]

    @property
    def targets(self) -> tuple[targets.Target, ...]:
        """The machines of all jobs, each once."""
        found: dict[tuple[str, str], targets.Target] = {}
        for planned in self.runs:
            for job in planned.all_jobs:
                for target in job.targets:
                    found.setdefault((target.place.name, target.directory),
                                     target)
        return tuple(found.values())

    @property
    def fingerprint(self) -> str:
        """The digest of the plan, which identifies it when it is continued."""
        text = json.dumps([_identity(run) for run in self.runs],
                          sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def make(wanted: Iterable[requests.RunRequest], pairs: Sequence[sides.Pair],
         purpose: record.Purpose, pair_count: int | None, *, warm_ups: int = 1,
         shape: str = '', launch: str = '', of_launch: bool = False,
         relaunch: bool = False,
         bounds: Mapping[str, judgement.Bound] | None = None,
         overhead_percent: float | None = None,
         figures: int | None = None) -> RunPlan:
    """Plan the runs of benchmarks.

    :param pair_count: samples of each side, besides ``warm_ups``; None for
        :func:`find_least`
    :param shape: instances x cores; by default that of the guests, or the
        flavor of a single guest
    :param launch: ``warm``, ``cold`` or ``both``; by default that of the
        request
    :param of_launch: judge the current launch of the guest only. By default a
        warm guest that is compared is relaunched several times, if hpcvirt
        can reboot it.
    :param relaunch: relaunch a guest that is measured unpaired, too
    :param bounds: bounds of the user, which take precedence
    :param overhead_percent: how much slower the guest may be in every other
        primary metric; None for the bounds of the benchmarks
    :param figures: number of figures that are judged together, if further
        plans are judged with this one
    :raises InvalidInput: for an unknown setting, for a guest that is too
        small, or if the launch needs reboots of a guest that has no rebooter
    :raises Unreachable: if a target does not answer
    """
    planned: list[PlannedRun] = []
    for request in wanted:
        for state in launches(launch or request.launch or '', pairs, purpose,
                              of_launch=of_launch):
            run = record.Run(
                id='', benchmark=request.definition.name,
                variant=request.variant.name,
                samples=(), purpose=purpose,
                host=', '.join(dict.fromkeys(pair.host for pair in pairs)),
                shape=shape or _shape(request, pairs),
                planned_warm_ups=warm_ups, bounds=bounds or {},
                overhead_percent=overhead_percent, launch=state,
                relaunched=not of_launch and _is_relaunched(
                    pairs, purpose, state, unpaired=relaunch),
                of_launch=of_launch, study=request.study, case=request.case)
            planned.append(_plan_run(request, pairs, run))
    runs = set_counts([each.run for each in planned], pair_count, figures)
    return RunPlan(tuple(
        dataclasses.replace(each, run=run)
        for each, run in zip(planned, runs, strict=True)))


def set_counts(runs: Sequence[record.Run], pair_count: int | None,
               figures: int | None = None) -> tuple[record.Run, ...]:
    """Set the numbers of figures, pairs and controls of runs.

    :param pair_count: None for :func:`find_least`
    :param figures: number of figures that are judged together, None for those
        of these runs
    :raises InvalidInput: if more pairs are needed than are usual
    """
    if figures is None:
        figures = max(1, sum(len(all_bounds.foresee(run)) for run in runs))
    counted = [dataclasses.replace(run, planned_figures=figures)
               for run in runs]
    count = pair_count or max(
        (_choose_pairs(run) for run in counted),
        default=sample_pairs.MIN_PASS_PAIRS)
    return tuple(dataclasses.replace(
        run, planned_pairs=count,
        planned_controls=_controls(run.purpose, count)) for run in counted)


def _choose_pairs(run: record.Run) -> int:
    """Choose the number of pairs of a run by its bounds.

    :raises InvalidInput: if it is more than :data:`MAX_USUAL_PAIRS`
    """
    pairs = find_least(run)
    if pairs > MAX_USUAL_PAIRS:
        raise exception.InvalidInput(
            run.label, f'its bounds need {pairs} pairs; ask for {pairs} '
            'pairs, or for a wider bound')
    if any(goal.is_of_study for goal in find_goals(run)):
        pairs = max(pairs, STUDY_PAIRS)
    return pairs


def find_least(run: record.Run) -> int:
    """Return the least number of pairs that pass a good guest, 4 of 5 times.

    A good guest is as in the study that a bound comes from, or as native.

    :raises InvalidInput: if it is more than hpcvirt suggests
    """
    least = sample_pairs.MIN_PASS_PAIRS
    if run.purpose is not record.Purpose.COMPARE:
        return least
    for goal in find_goals(run):
        pairs = power.find_pairs(
            power.PLANNED_VARIATION, goal.distance, goal.limit,
            run.planned_figures, lambda pairs: count_units(run, pairs))
        if pairs is None:
            bound = stats.ratio_of_loss(goal.limit, goal.direction)
            raise exception.InvalidInput(
                run.label, f'not even {power.MAX_PAIRS} pairs pass a good '
                f'guest within the bound of {goal.metric}, {bound:.4g}; give '
                'a wider bound')
        least = max(least, pairs)
    return least


@dataclasses.dataclass(frozen=True)
class Goal:
    """What a guest must reach in a figure.

    :ivar limit: the largest acceptable loss
    :ivar distance: how far a good guest is from the limit
    :ivar is_of_study: the bound comes from a study
    """

    metric: str
    limit: float
    distance: float
    direction: outcome.Direction
    is_of_study: bool


def find_goals(run: record.Run) -> list[Goal]:
    """Find the goals of a run that has no samples yet, the nearest first."""
    directions = {figure.name: figure.direction
                  for figure in catalogue.get(run.benchmark).metrics}
    found = []
    for metric, bound in all_bounds.foresee(run).items():
        direction = directions.get(metric_definition.split(metric)[0])
        if direction is None:
            continue
        limit = stats.loss_of_ratio(bound.limit(direction), direction)
        good = 0.0
        if bound.is_of_study:
            good = stats.loss_of_ratio(bound.ratio, direction)
        found.append(Goal(metric, limit, limit - max(0.0, good), direction,
                          bound.is_of_study))
    return sorted(found, key=lambda goal: goal.distance)


def count_units(run: record.Run, pairs: int) -> int:
    """Return the least sample size of the rank test: boots or pairs."""
    return (boots.count_least(pairs, run.planned_figures) if run.relaunched
            else pairs)


def _plan_run(request: requests.RunRequest, pairs: Sequence[sides.Pair],
              run: record.Run) -> PlannedRun:
    """Add the parameters of the jobs to the record."""
    jobs = sides.jobs(pairs, request)
    of_guest = jobs[record.Side.GUEST]
    return PlannedRun(jobs, dataclasses.replace(
        run, parameters=aggregation.merge(
            [job.label for job in of_guest],
            [job.run.parameters for job in of_guest])))


def launches(word: str, pairs: Sequence[sides.Pair], purpose: record.Purpose,
             *, of_launch: bool = False) -> tuple[record.Launch | None, ...]:
    """Return the states of the guest that each benchmark is run in.

    :param word: ``warm``, ``cold`` or ``both``; empty for any state
    :param of_launch: the guest must not be rebooted
    :returns: None stands for any state; a machine that is compared with
        itself has only that
    :raises InvalidInput: if a guest must be rebooted, but cannot
    """
    is_aa = purpose is record.Purpose.AA
    if not word:
        return (None,)
    if word == 'warm':
        return (None,) if is_aa else (record.Launch.WARM,)
    if is_aa:
        raise exception.InvalidInput(
            f'launch {word}', 'the native place is the guest itself, and '
            'there is no reboot before native runs')
    if of_launch:
        raise exception.InvalidInput(
            f'launch {word}', 'relaunches the guest, but only this launch '
            'is to be judged')
    for pair in pairs:
        if pair.guest.rebooter is None:
            raise exception.InvalidInput(
                f'launch {word}', f'{pair.guest.place.name} cannot be '
                'rebooted: it is not given as server:')
    if word == 'cold':
        return (record.Launch.COLD,)
    return record.Launch.WARM, record.Launch.COLD


def _controls(purpose: record.Purpose, pair_count: int) -> int:
    """Return the number of controls: the least that allow a verdict.

    A short run has none, since they would take too much of its time.
    """
    least = sample_pairs.MIN_PAIRS
    is_worth_it = purpose is record.Purpose.COMPARE and pair_count >= 2 * least
    return least if is_worth_it else 0


def _is_relaunched(pairs: Sequence[sides.Pair], purpose: record.Purpose,
                   state: record.Launch | None, *, unpaired: bool) -> bool:
    """Whether a guest is measured in several boots, with samples of each."""
    return ((purpose is record.Purpose.COMPARE
             or (unpaired and purpose is record.Purpose.UNPAIRED))
            and state is not record.Launch.COLD
            and all(pair.guest.rebooter is not None for pair in pairs))


def _shape(request: requests.RunRequest, pairs: Sequence[sides.Pair]) -> str:
    return name_shape(request, len(pairs), sides.instances(pairs),
                      pairs[0].guest.flavor)


def name_shape(request: requests.RunRequest, count: int, instances: str,
               flavor: str) -> str:
    """Name the shape of the guests of a run.

    :param count: number of guests
    :param instances: instances x cores, empty if they differ
    :param flavor: of a single guest
    """
    # A study counts the cores even of a single guest.
    if count == 1 and (request.study is None or not instances):
        return flavor
    return instances


def _identity(planned: PlannedRun) -> dict[str, Any]:
    run = serialization.dump(planned.run)
    if planned.run.overhead_percent is None:
        # Plans from before there was an overhead can still be continued.
        del run['overhead_percent']
    return {
        'run': run,
        'parts': {side: [{
            'command': job.command,
            'parameters': job.run.parameters,
            'products': job.run.builds,
            'places': [target.place.name for target in job.targets],
        } for job in jobs] for side, jobs in planned.jobs.items()},
    }
