# SPDX-License-Identifier: Apache-2.0

"""Take one sample: start its jobs, wait for them, read their outputs.

A sample is one job, or one job on each of several machines. Such jobs start
at the same moment, and :mod:`hpcvirt.bench.results.aggregation` combines their
figures.
"""

import datetime
import enum
import posixpath
import time
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from concurrent import futures

from hpcvirt import child_environment
from hpcvirt import exception
from hpcvirt import printable
from hpcvirt.bench.analysis import boots
from hpcvirt.bench.analysis import sample_pairs
from hpcvirt.bench.execute import cpu_affinity
from hpcvirt.bench.execute import environment
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import job as jobs
from hpcvirt.bench.execute import job_scripts
from hpcvirt.bench.execute import reboot
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.parsers import parser
from hpcvirt.bench.parsers import text
from hpcvirt.bench.results import aggregation
from hpcvirt.bench.run import identity
from hpcvirt.bench.run import run_spec
from hpcvirt.bench.run import schedule
from hpcvirt.bench.run import target as targets

#: How long a machine is retried that does not answer and only needs cleaning.
CLEAN_S = 20.0
#: Pauses between two polls: short at first, since small benchmarks end soon,
#: then longer, so that polls do not disturb long benchmarks.
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 10.0
#: A job that has not begun after this time was lost while it started.
STARTING_S = 30.0
#: How many times a job is started if it is lost (its machine went down).
ATTEMPTS = 3
#: The exit statuses of a shell for a program that it cannot execute, and the
#: messages of Open MPI for it, which uses various exit statuses.
NO_PROGRAM = (126, 127)
NO_PROGRAM_OF_MPI = (b'unable to find the specified executable',
                     b'unable to launch the specified application')

Tick = Callable[[float], None]
Keep = Callable[[str, bytes], record.RawOutput]


class Unfinished(enum.Enum):
    """Why a job did not end by itself.

    ``STOPPED``: the sampler stopped it, since another job of the sample was
    lost.
    """

    LOST = enum.auto()
    STOPPED = enum.auto()


End = jobs.Ended | Unfinished


class JobNotStarted(exception.NotInstalled):
    """The program of a job could not be executed."""


def sample(specs: Sequence[run_spec.JobSpec], run_id: str,
           due: schedule.PlannedSample,
           products: Sequence[Mapping[str, bytes]],
           environments: environment.Environments, keep: Keep,
           tick: Tick = lambda _elapsed: None,
           launch: record.Launch | None = None,
           is_launched: bool = False) -> record.Sample:
    """Take a sample, or wait for its jobs if they were started before.

    :param specs: the jobs of the side
    :param products: for each job, the binaries to put into its directory
    :param environments: those of the run
    :param keep: stores a raw output
    :param tick: called at each poll with the seconds since the start
    :param launch: state of the guest
    :param is_launched: the run relaunches the guest, so that the sample is
        recorded with its boot
    :raises Unreachable: if a machine does not answer again in time
    :raises JobNotStarted: if a program cannot be executed; its outputs are
        stored
    """
    used: list[targets.Target] = []
    for spec in specs:
        used += spec.targets
    places = [executor.RetryingExecutor(target.place) for target in used]
    start_facts: dict[str, str] = {}
    relaunched: dict[str, str] = {}
    started_at = read_clock()
    for attempt in range(ATTEMPTS):
        running = _jobs(specs, run_id, f'{due.position:04d}.{attempt}')
        states = [job.poll() for job in running]
        must_start = _must_start(states)
        if must_start and due.relaunch:
            begin = time.monotonic()
            _reboot(used)
            relaunched = {
                boots.RELAUNCH_S: f'{time.monotonic() - begin:.3f}'}
        before = identity.capture(specs, places, environments)
        if must_start:
            start_facts = _start(specs, running, states, products)
        ends = _wait(running, tick)
        if not any(isinstance(end, Unfinished) for end in ends):
            break
    after = [environment.load(place) for place in places]
    described = identity.describe(specs, before, after)
    raw = [_collect(job, spec.run.output)
           for job, spec in zip(running, specs, strict=True)]
    outputs = _keep_outputs(specs, raw, keep)
    for spec, contents, end in zip(specs, raw, ends, strict=True):
        if _is_missing(contents, end):
            # When the program is installed, the job must start anew.
            for job in running:
                job.remove()
            raise JobNotStarted(
                f'{spec.target.place.name}: {spec.run.definition.name} could '
                f'not be started{_errors(contents)}')
    outcomes = [_judge(*job)
                for job in zip(specs, raw, ends, strict=True)]
    return record.Sample(
        side=due.side, pair=due.pair, position=due.position,
        outcome=aggregation.combine([spec.label for spec in specs], outcomes),
        warm_up=due.warm_up, control=due.control, launch=launch,
        launch_id=sample_pairs.boot(described) if is_launched else '',
        started_at=started_at,
        elapsed_s=_longest(ends), exit_status=_status(ends),
        command=specs[0].command,
        environment={**relaunched, **start_facts, **described,
                     **_describe_binding(raw)},
        outputs=outputs)


def _keep_outputs(specs: Sequence[run_spec.JobSpec],
                  raw: Sequence[Mapping[str, bytes]],
                  keep: Keep) -> tuple[record.RawOutput, ...]:
    """Store the raw outputs of the jobs of a sample.

    :param raw: for each job, the name and the content of each output
    """
    outputs: list[record.RawOutput] = []
    for spec, contents in zip(specs, raw, strict=True):
        prefix = '' if len(specs) == 1 else f'{spec.label}.'
        for name, content in contents.items():
            outputs.append(keep(prefix + name, content))
    return tuple(outputs)


def clean(spec: run_spec.JobSpec, run_id: str) -> tuple[str, ...]:
    """Remove the directories of a run's jobs.

    :returns: the directories that could not be removed, for messages
    """
    left = []
    for target in spec.targets:
        directory = job_scripts.make_path(target.directory, run_id)
        place = executor.RetryingExecutor(target.place, CLEAN_S)
        try:
            is_left = place.run(['sh', '-c', job_scripts.REMOVE_ALL, 'remove',
                                 directory]).status != 0
        except exception.Unreachable:
            is_left = True
        if is_left:
            left.append(f'{job_scripts.name_path(directory)} on {place.name}')
    return tuple(left)


def _jobs(specs: Sequence[run_spec.JobSpec], run_id: str,
          name: str) -> list[jobs.Job]:
    """Give each job its own directory, even if two jobs share a machine."""
    ends = [''] if len(specs) == 1 else [f'.{n}' for n in range(len(specs))]
    return [jobs.Job(executor.RetryingExecutor(spec.target.place),
                     posixpath.join(job_scripts.make_path(
                         spec.target.directory, run_id), name + end))
            for spec, end in zip(specs, ends, strict=True)]


def _must_start(states: Sequence[jobs.Ended | jobs.JobState]) -> bool:
    """Whether the jobs must be started.

    A job that is starting was left by a process that was killed before it had
    started all jobs, so that all start anew.
    """
    return jobs.JobState.LOST not in states and (
        jobs.JobState.ABSENT in states or jobs.JobState.STARTING in states)


def _reboot(guests: Sequence[targets.Target]) -> None:
    with futures.ThreadPoolExecutor(len(guests)) as pool:
        for _ in pool.map(_reboot_one, guests):
            pass


def _reboot_one(target: targets.Target) -> None:
    if target.rebooter is None:
        raise exception.InvalidInput(
            target.place.name, 'cannot be rebooted: it is no instance of a '
            'cloud')
    reboot.reboot(target.place, target.rebooter)


def _start(specs: Sequence[run_spec.JobSpec], running: Sequence[jobs.Job],
           states: Sequence[jobs.Ended | jobs.JobState],
           products: Sequence[Mapping[str, bytes]]) -> dict[str, str]:
    """Prepare all jobs, then start them at the same moment.

    :param states: what a killed process has left of each job
    :returns: the fact within how many seconds they started
    """
    for job, state in zip(running, states, strict=True):
        if state is not jobs.JobState.ABSENT:
            job.remove()
    for spec, job, binaries in zip(specs, running, products, strict=True):
        # MPI needs the same directory on the other machines.
        copies = [jobs.Job(executor.RetryingExecutor(target.place),
                           job.directory) for target in spec.others]
        for copy in copies:
            copy.remove()
        places: dict[str, str] = {}
        for copy, target in zip((*copies, job), (*spec.others, spec.target),
                                strict=True):
            affinity = (cpu_affinity.files(target.cpus) if spec.binds_ranks
                        else {})
            where = copy.prepare(spec.command_on(target),
                                 {**spec.run.inputs, **binaries, **affinity},
                                 spec.run.environment, spec.run.prepare)
            places.setdefault(where, target.place.name)
        if len(places) > 1:
            found = ' and '.join(map(' on '.join, places.items()))
            raise exception.InvalidInput(
                child_environment.JOB_DIRECTORY,
                f'MPI needs the same directory, not {found}')
    begin = time.monotonic()
    with futures.ThreadPoolExecutor(len(specs)) as pool:
        for _ in pool.map(jobs.Job.start, running,
                          [spec.limit_s for spec in specs]):
            pass
    if len(specs) == 1:
        return {}
    return {'launched_within_s': f'{time.monotonic() - begin:.3f}'}


def _wait(running: Sequence[jobs.Job], tick: Tick) -> list[End]:
    """Wait for all jobs; if one is lost, stop the others.

    :raises TimedOut: if a machine that can be reached does not answer for long
    :raises Unreachable: if a job prints too much, after removing all jobs
    """
    begin = time.monotonic()
    pause_s = FIRST_PAUSE_S
    ends: dict[int, End] = {}
    answered = dict.fromkeys(range(len(running)), begin)
    while len(ends) < len(running):
        spent_s = time.monotonic() - begin
        for number, job in enumerate(running):
            if number not in ends:
                try:
                    state = job.poll()
                except exception.TimedOut:
                    # The job may keep the machine too busy to answer.
                    if (time.monotonic() - answered[number]
                            > executor.PATIENCE_S):
                        raise
                    continue
                answered[number] = time.monotonic()
                if state is jobs.JobState.FLOODING:
                    for each in running:
                        each.remove()
                    raise exception.Unreachable(
                        f'{job.place.name}: the benchmark printed more than '
                        f'{text.LIMIT_BYTES >> 20} MiB and was stopped')
                end = _end(state, spent_s)
                if end is not None:
                    ends[number] = end
        if Unfinished.LOST in ends.values():
            for job in running:
                job.stop()
            return [ends.get(number, Unfinished.STOPPED)
                    for number in range(len(running))]
        if len(ends) < len(running):
            tick(spent_s)
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.3, LONGEST_PAUSE_S)
    return [ends[number] for number in range(len(running))]


def _end(state: jobs.Ended | jobs.JobState, spent_s: float) -> End | None:
    if isinstance(state, jobs.Ended):
        return state
    is_lost = state in (jobs.JobState.LOST, jobs.JobState.ABSENT) or (
        state is jobs.JobState.STARTING and spent_s > STARTING_S)
    return Unfinished.LOST if is_lost else None


def _longest(ends: Sequence[End]) -> float | None:
    seconds = [end.elapsed_s for end in ends if isinstance(end, jobs.Ended)
               and end.elapsed_s is not None]
    return max(seconds) if len(seconds) == len(ends) else None


def _status(ends: Sequence[End]) -> int | None:
    """Return the first status that is not 0; None if a job was lost."""
    statuses = [end.status for end in ends if isinstance(end, jobs.Ended)]
    if len(statuses) < len(ends):
        return None
    return next((status for status in statuses if status), 0)


def _collect(job: jobs.Job, output: str) -> dict[str, bytes]:
    return job.read(*dict.fromkeys(('stdout', 'stderr', output)))


def _describe_binding(raw: Sequence[Mapping[str, bytes]]) -> dict[str, str]:
    """Return the fact on which cell the first rank of each machine was."""
    said = '; '.join(filter(None, (
        cpu_affinity.find_first_cells(contents.get('stderr', b''))
        for contents in raw)))
    return {'ranks.first_cell': said} if said else {}


def _judge(spec: run_spec.JobSpec, raw: Mapping[str, bytes],
           end: End) -> outcome.Outcome:
    if end is Unfinished.STOPPED:
        return _invalid('was stopped, since another job was lost')
    if not isinstance(end, jobs.Ended):
        return _invalid(f'the job was lost {ATTEMPTS} times: it was killed, '
                        'or its machine went down')
    if end.status == 124:
        return _invalid(f'did not end within {spec.limit_s} s')
    run = spec.run
    if run.output not in raw:
        return _invalid(f'left no {run.output} (exit status {end.status})'
                        f'{_errors(raw)}')
    # Some programs end a good run with a status other than 0.
    expect = dict(run.expect)
    if run.definition.exit_status:
        expect.setdefault('rc', str(run.definition.exit_status))
    return parser.parse(run.definition.output_format, raw[run.output], expect,
                        end.status)


def _is_missing(raw: Mapping[str, bytes], end: End) -> bool:
    return isinstance(end, jobs.Ended) and end.status != 0 and (
        end.status in NO_PROGRAM or any(
            words in raw.get('stderr', b'') for words in NO_PROGRAM_OF_MPI))


def _errors(raw: Mapping[str, bytes]) -> str:
    """Return a colon and the end of standard error, or nothing if empty."""
    text = raw.get('stderr', b'').decode('utf-8', 'replace')
    lines = [' '.join(line.split()) for line in text.splitlines()
             if any(map(str.isalnum, line))]
    return printable.one_line(': ' + ' / '.join(lines[-6:])) if lines else ''


def _invalid(reason: str) -> outcome.Outcome:
    return outcome.Outcome(valid=False, reason=printable.one_line(reason))


def read_clock() -> str:
    """Return the current time in ISO 8601, in UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec='seconds')
