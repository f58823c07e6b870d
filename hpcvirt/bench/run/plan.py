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
from hpcvirt.bench.analysis import interim_analyses
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.analysis import signed_rank
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from hpcvirt.bench.results import aggregation
from hpcvirt.bench.run import run_request as requests
from hpcvirt.bench.run import run_spec
from hpcvirt.bench.run import sides


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
    def fingerprint(self) -> str:
        """The digest of the plan, which identifies it when it is continued."""
        text = json.dumps([_identity(run) for run in self.runs],
                          sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def make(wanted: Iterable[requests.RunRequest], pairs: Sequence[sides.Pair],
         purpose: record.Purpose, pair_count: int | None, *, warm_ups: int = 1,
         shape: str = '', launch: str = '', until_decided: bool = False,
         of_launch: bool = False, relaunch: bool = False,
         bounds: Mapping[str, judgement.Bound] | None = None,
         overhead_percent: float | None = None) -> RunPlan:
    """Plan the runs of benchmarks.

    :param pair_count: samples of each side, besides ``warm_ups``; None for
        ``sample_pairs.USUAL_PAIRS``, or more if the figures need more
    :param shape: instances x cores; by default that of the guests, or the
        flavor of a single guest
    :param launch: ``warm``, ``cold`` or ``both``; by default that of the
        request
    :param until_decided: stop before ``pair_count`` if the pairs so far decide
    :param of_launch: judge the current launch of the guest only. By default a
        warm guest that is compared is relaunched several times, if hpcvirt
        can reboot it.
    :param relaunch: relaunch a guest that is measured unpaired, too
    :param bounds: bounds of the user, which take precedence
    :param overhead_percent: how much slower the guest may be in every other
        primary metric; None for the bounds of the benchmarks
    :raises InvalidInput: for an unknown setting, for a guest that is too
        small, or if the launch needs reboots of a guest that has no rebooter
    :raises Unreachable: if a target does not answer
    """
    planned = [
        _plan_run(request, pairs, record.Run(
            id='', benchmark=request.definition.name,
            variant=request.definition.variant(request.variant).name,
            samples=(), purpose=purpose,
            host=', '.join(dict.fromkeys(pair.host for pair in pairs)),
            shape=shape or _shape(request, pairs),
            planned_warm_ups=warm_ups, bounds=bounds or {},
            overhead_percent=overhead_percent, launch=state,
            relaunched=not of_launch and _is_relaunched(
                pairs, purpose, state, unpaired=relaunch),
            of_launch=of_launch, study=request.study, case=request.case))
        for request in wanted
        for state in launches(launch or request.launch or '', pairs, purpose,
                              of_launch=of_launch)]
    figures = max(1, sum(len(all_bounds.foresee(each.run))
                         for each in planned))
    count = pair_count or max(
        (find_least(each.run, figures) for each in planned),
        default=sample_pairs.USUAL_PAIRS)
    return RunPlan(tuple(dataclasses.replace(each, run=_with_pairs(
        dataclasses.replace(each.run, planned_pairs=count,
                            planned_figures=figures),
        until_decided=until_decided)) for each in planned))


def find_least(run: record.Run, figures: int) -> int:
    """Return the least number of pairs of a run that can decide all figures.

    :returns: at least ``sample_pairs.USUAL_PAIRS``
    """
    pairs = sample_pairs.USUAL_PAIRS
    while count_units(dataclasses.replace(
            run, planned_pairs=pairs)) < signed_rank.find_least(1 / figures):
        pairs += 1
    return pairs


def count_units(run: record.Run) -> int:
    """Return the sample size of the rank test: boots or pairs."""
    return len(boots.sizes(run)) if run.relaunched else run.planned_pairs


def _plan_run(request: requests.RunRequest, pairs: Sequence[sides.Pair],
              run: record.Run) -> PlannedRun:
    """Add the parameters of the jobs to the record."""
    jobs = sides.jobs(pairs, request)
    of_guest = jobs[record.Side.GUEST]
    return PlannedRun(jobs, dataclasses.replace(
        run, parameters=aggregation.merge(
            [job.label for job in of_guest],
            [job.run.parameters for job in of_guest])))


def _with_pairs(run: record.Run, *, until_decided: bool) -> record.Run:
    """Add the interim analyses and controls for the number of pairs."""
    looks: tuple[int, ...] = ()
    if until_decided:
        looks = interim_analyses.plan(
            run.planned_pairs, boots.MIN_PAIRS_WITH_PILOT if run.relaunched
            else sample_pairs.MIN_PAIRS)
    return dataclasses.replace(
        run, interim_analyses=looks,
        planned_controls=_controls(run.purpose, run.planned_pairs))


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
            f'--launch {word}', 'the native place is the guest itself, and '
            'there is no reboot before native runs')
    if of_launch:
        raise exception.InvalidInput(
            f'--launch {word}', 'relaunches the guest, which --this-launch '
            'does not allow')
    for pair in pairs:
        if pair.guest.rebooter is None:
            raise exception.InvalidInput(
                f'--launch {word}', f'{pair.guest.place.name} cannot be '
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
            and state is record.Launch.WARM
            and all(pair.guest.rebooter is not None for pair in pairs))


def _shape(request: requests.RunRequest, pairs: Sequence[sides.Pair]) -> str:
    flavor = pairs[0].guest.flavor if len(pairs) == 1 else ''
    instances = sides.instances(pairs)
    if request.study is not None:
        return instances or flavor
    return flavor if len(pairs) == 1 else instances


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
