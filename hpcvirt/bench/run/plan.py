# SPDX-License-Identifier: Apache-2.0

"""A plan: what is to be measured, where, how many times.

``hpcvirt bench run`` and the Tempest plugin make it from requests
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
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.model import judgement
from hpcvirt.bench.model import record
from hpcvirt.bench.run import run_request as requests
from hpcvirt.bench.run import run_spec
from hpcvirt.bench.run import sides


@dataclasses.dataclass(frozen=True)
class PlannedRun:
    """One run of a plan.

    :ivar jobs: what each side starts for a sample, at once; an unpaired run
        needs those of the guest only
    :ivar hosts: the compute hosts that the guests are on
    :ivar bounds: the user's; those of the definition hold for other metrics
    :ivar launch: state that the guest has to be in
    :ivar until_decided: stop before ``pairs`` if the pairs so far decide
    :ivar controls: number of pairs with a further native sample
    :ivar relaunched: the guest is relaunched several times
    :ivar of_launch: the guest is judged as it runs, and no other launch
    """

    jobs: sides.Jobs
    pairs: int
    warm_ups: int
    purpose: record.Purpose
    hosts: tuple[str, ...] = ()
    shape: str = ''
    bounds: Mapping[str, judgement.Bound] = dataclasses.field(
        default_factory=dict)
    launch: record.Launch | None = None
    study: str | None = None
    case: str | None = None
    until_decided: bool = False
    controls: int = 0
    relaunched: bool = False
    of_launch: bool = False

    @property
    def guest_jobs(self) -> tuple[run_spec.JobSpec, ...]:
        return self.jobs[record.Side.GUEST]

    @property
    def all_jobs(self) -> tuple[run_spec.JobSpec, ...]:
        """Those of both sides, native first."""
        return (*self.jobs.get(record.Side.NATIVE, ()), *self.guest_jobs)

    @property
    def spec(self) -> run_spec.RunSpec:
        """What is run, in the first guest if there are several."""
        return self.guest_jobs[0].run

    @property
    def host(self) -> str:
        """The compute hosts, as they are kept with the run."""
        return ', '.join(self.hosts)


@dataclasses.dataclass(frozen=True)
class RunPlan:
    """The runs of one invocation, in their order."""

    runs: tuple[PlannedRun, ...]

    @property
    def fingerprint(self) -> str:
        """The identity of the plan: two equal plans have the same digest.

        A plan that was interrupted is continued under its fingerprint.
        """
        text = json.dumps([_identity(run) for run in self.runs],
                          sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def make(wanted: Iterable[requests.RunRequest], pairs: Sequence[sides.Pair],
         purpose: record.Purpose, pair_count: int, *, warm_ups: int = 1,
         shape: str = '', launch: str = '', until_decided: bool = False,
         of_launch: bool = False,
         bounds: Mapping[str, judgement.Bound] | None = None) -> RunPlan:
    """Plan the runs of benchmarks.

    :param pair_count: samples of each side that count, besides ``warm_ups``
    :param shape: instances x cores; by default that of the guests, or the
        flavor of a single guest
    :param launch: ``warm``, ``cold`` or ``both``; by default that of the
        request
    :param until_decided: stop before ``pair_count`` if the pairs so far decide
    :param of_launch: judge the guest as it runs; without it, a warm guest that
        is compared is relaunched several times if it can be
    :raises InvalidInput: for an unknown setting, a guest too small, or a
        guest that cannot be rebooted and would have to be
    :raises Unreachable: if a target does not answer
    """
    hosts = tuple(dict.fromkeys(pair.host for pair in pairs))
    return RunPlan(tuple(
        PlannedRun(
            sides.jobs(pairs, request), pairs=pair_count, warm_ups=warm_ups,
            purpose=purpose, hosts=hosts,
            shape=shape or _shape(request, pairs), bounds=bounds or {},
            launch=state, study=request.study, case=request.case,
            until_decided=until_decided,
            controls=_controls(purpose, pair_count),
            relaunched=not of_launch and _is_relaunched(pairs, purpose, state),
            of_launch=of_launch)
        for request in wanted
        for state in launches(launch or request.launch or '', pairs, purpose,
                              of_launch=of_launch)))


def launches(word: str, pairs: Sequence[sides.Pair], purpose: record.Purpose,
             *, of_launch: bool = False) -> tuple[record.Launch | None, ...]:
    """The states of the guest that each benchmark is run in.

    :param word: ``warm``, ``cold`` or ``both``; empty for any state
    :returns: None for any state, and for a machine that is compared with
        itself: it is no guest
    :param of_launch: the guest must not be rebooted
    :raises InvalidInput: if a guest would have to be rebooted and cannot be
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
    """Choose the number of controls: the least that allow a verdict.

    In a short run they would be too large a part of its time.
    """
    least = sample_pairs.MIN_PAIRS
    is_worth_it = purpose is record.Purpose.COMPARE and pair_count >= 2 * least
    return least if is_worth_it else 0


def _is_relaunched(pairs: Sequence[sides.Pair], purpose: record.Purpose,
                   state: record.Launch | None) -> bool:
    """Whether a guest is compared in several boots, with samples of each."""
    return (purpose is record.Purpose.COMPARE
            and state is record.Launch.WARM
            and all(pair.guest.rebooter is not None for pair in pairs))


def _shape(request: requests.RunRequest, pairs: Sequence[sides.Pair]) -> str:
    flavor = pairs[0].guest.flavor if len(pairs) == 1 else ''
    instances = sides.instances(pairs)
    if request.study is not None:
        return instances or flavor
    return flavor if len(pairs) == 1 else instances


def _identity(run: PlannedRun) -> dict[str, Any]:
    return {
        'benchmark': run.spec.definition.name,
        'parts': {side: [_job_identity(job) for job in jobs]
                  for side, jobs in run.jobs.items()},
        'pairs': run.pairs,
        'warm_ups': run.warm_ups,
        'purpose': run.purpose,
        'host': run.host,
        'shape': run.shape,
        'launch': run.launch,
        'bounds': serialization.dump(run.bounds),
        'case': [run.study, run.case],
        'until_decided': run.until_decided,
        'controls': run.controls,
        'launches': [run.relaunched, run.of_launch],
    }


def _job_identity(job: run_spec.JobSpec) -> dict[str, Any]:
    return {
        'command': job.command,
        'parameters': job.run.parameters,
        'products': job.run.builds,
        'places': [target.place.name for target in job.targets],
    }
