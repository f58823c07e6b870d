# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Take one sample: start the jobs, wait for them, read what they left.

A sample is one job, or one in each of several places that start at once and
are together what is measured (:mod:`hpcvirt.bench.results.aggregation`).
"""

import dataclasses
import datetime
import posixpath
import time
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from concurrent import futures

from hpcvirt import exception
from hpcvirt.bench.execute import cpu_affinity
from hpcvirt.bench.execute import environment
from hpcvirt.bench.execute import executor
from hpcvirt.bench.execute import job as jobs
from hpcvirt.bench.execute import reboot
from hpcvirt.bench.execute import retrying
from hpcvirt.bench.model import outcome
from hpcvirt.bench.model import record
from hpcvirt.bench.parsers import parser
from hpcvirt.bench.results import aggregation
from hpcvirt.bench.run import run_spec
from hpcvirt.bench.run import schedule

#: A place that does not answer is asked again for so long where only files
#: are to be removed.
CLEAN_S = 20.0
#: Between two questions whether a job has ended: short at first, since small
#: benchmarks end soon, then seldom, not to disturb the long ones.
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 10.0
#: A job that has not begun after this will not: its launch was lost.
STARTING_S = 30.0
#: A job that is lost (its machine went down) is started again so often.
ATTEMPTS = 3

LOST = jobs.Ended(None, None)
#: Equal to it, and told apart where it is said which job it was.
STOPPED = jobs.Ended(None, None)

Tick = Callable[[float], None]
Keep = Callable[[str, bytes], record.RawOutput]


@dataclasses.dataclass(frozen=True)
class Seat:
    """A place of an arm, and how commands are started there.

    :ivar directory: where its jobs live
    :ivar label: the guest's name, another for each seat of an arm
    :ivar prefix: what the command is started through: the native arm is
        tied to the guest's own host CPUs
    :ivar cpus: these CPUs, for the ranks of MPI; empty if it is not tied
    :ivar facts: added to the environment of each sample
    :ivar factor: the time limit is multiplied by this
    :ivar guest: what starts the place anew, None for what is no instance
    """

    place: executor.Executor
    directory: str
    label: str = ''
    prefix: tuple[str, ...] = ()
    cpus: frozenset[int] = frozenset()
    facts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    factor: int = 1
    guest: reboot.Relaunch | None = None


@dataclasses.dataclass(frozen=True)
class Part:
    """One job of a sample; most samples are a single one.

    :ivar seat: where it is started
    :ivar others: where it starts processes itself: they get its files
    """

    task: run_spec.Task
    seat: Seat
    others: tuple[Seat, ...] = ()

    @property
    def seats(self) -> tuple[Seat, ...]:
        return (self.seat, *self.others)

    @property
    def command(self) -> tuple[str, ...]:
        command = self.task.command
        return (*self.seat.prefix,
                *(cpu_affinity.bound(command) if self.bound else command))

    @property
    def bound(self) -> bool:
        """Ranks tie themselves, since mpirun would pass over the prefix."""
        return self.task.variant.spans and all(
            seat.cpus for seat in self.seats)

    @property
    def limit_s(self) -> int:
        return self.task.made.time_limit_s * self.seat.factor

    @property
    def label(self) -> str:
        return self.seat.label


def take(parts: Sequence[Part], run_id: str, slot: schedule.Slot,
         beside: Sequence[Mapping[str, bytes]], keep: Keep,
         tick: Tick = lambda _elapsed: None,
         launch: record.Launch | None = None) -> record.Sample:
    """Take the sample of a slot, or go on with the jobs that were started.

    :param parts: of the arm
    :param beside: per part the binaries that lie beside its program
    :param keep: keeps a raw output
    :param tick: called now and then with the seconds since the start
    :param launch: state of the guest; it is relaunched before a cold sample
    :raises Unreachable: if a place does not come back in time
    """
    seats = [dataclasses.replace(seat, place=retrying.Patient(seat.place))
             for part in parts for seat in part.seats]
    told: dict[str, str] = {}
    started_at = _now()
    for attempt in range(ATTEMPTS):
        name = posixpath.join(run_id, f'{slot.position:04d}.{attempt}')
        running = _jobs(parts, name)
        states = [job.ask() for job in running]
        fresh = LOST not in states and (
            'absent' in states or 'starting' in states)
        if fresh and launch is record.Launch.COLD:
            _relaunch(parts)
        before = [environment.load(seat.place) for seat in seats]
        known = [environment.facts(seat.place) for seat in seats]
        if fresh:
            for job in running:
                # Who started it was killed before it ran, or before all
                # ran: nothing is lost.
                job.remove()
            told = _start(parts, running, beside)
        ended = _wait(running, tick)
        if None not in {one.status for one in ended}:
            break
    labels = [seat.label for seat in seats]
    after = [environment.load(seat.place) for seat in seats]
    told.update(aggregation.merge(labels, [
        {**fixed, **environment.around(early, late), **seat.facts,
         'place': seat.place.name}
        for fixed, early, late, seat
        in zip(known, before, after, seats, strict=True)]))
    raw = [_collect(job, part.task)
           for part, job in zip(parts, running, strict=True)]
    made = [_judge(*one) for one in zip(parts, raw, ended, strict=True)]
    return record.Sample(
        arm=slot.arm, pair=slot.pair, position=slot.position,
        outcome=aggregation.combine([part.label for part in parts], made),
        warm_up=slot.warm_up, launch=launch, started_at=started_at,
        elapsed_s=_longest(ended), exit_status=_status(ended),
        command=parts[0].command, environment=told,
        outputs=tuple(
            keep(name if len(parts) == 1 else f'{part.label}.{name}', content)
            for part, found in zip(parts, raw, strict=True)
            for name, content in found.items()))


def clean(part: Part, run_id: str) -> tuple[str, ...]:
    """Remove what the jobs of a run left at the places of a part.

    :returns: what is left, since its place does not answer any more
    """
    left = []
    for seat in part.seats:
        directory = posixpath.join(seat.directory, run_id)
        try:
            retrying.Patient(seat.place, CLEAN_S).run(['rm', '-rf', directory])
        except exception.Unreachable:
            left.append(f'{directory} on {seat.place.name}')
    return tuple(left)


def _jobs(parts: Sequence[Part], name: str) -> list[jobs.Job]:
    """One directory for each, even if two share a place."""
    ends = [''] if len(parts) == 1 else [f'.{n}' for n in range(len(parts))]
    return [jobs.Job(retrying.Patient(part.seat.place),
                     posixpath.join(part.seat.directory, name + end))
            for part, end in zip(parts, ends, strict=True)]


def _relaunch(parts: Sequence[Part]) -> None:
    seats = [seat for part in parts for seat in part.seats]
    with futures.ThreadPoolExecutor(len(seats)) as pool:
        for _ in pool.map(_relaunch_one, seats):
            pass


def _relaunch_one(seat: Seat) -> None:
    if seat.guest is None:
        raise exception.InvalidInput(
            seat.place.name, 'cannot be relaunched: it is no instance of a '
            'cloud')
    reboot.relaunch(seat.place, seat.guest)


def _start(parts: Sequence[Part], running: Sequence[jobs.Job],
           beside: Sequence[Mapping[str, bytes]]) -> dict[str, str]:
    """Lay all jobs, then launch them at the same moment.

    :returns: how near that was
    """
    for part, job, more in zip(parts, running, beside, strict=True):
        task = part.task
        there = [jobs.Job(retrying.Patient(seat.place), job.directory)
                 for seat in part.others]
        for one in there:
            one.remove()
        for one, seat in zip((*there, job), (*part.others, part.seat),
                             strict=True):
            ties = cpu_affinity.files(seat.cpus) if part.bound else {}
            one.lay(part.command, {**task.inputs, **more, **ties},
                    task.environment, task.prepare)
    begin = time.monotonic()
    with futures.ThreadPoolExecutor(len(parts)) as pool:
        for _ in pool.map(jobs.Job.launch, running,
                          [part.limit_s for part in parts]):
            pass
    if len(parts) == 1:
        return {}
    return {'launched_within_s': f'{time.monotonic() - begin:.3f}'}


def _wait(running: Sequence[jobs.Job], tick: Tick) -> list[jobs.Ended]:
    """Wait for all; if one is lost the others are stopped, and lost too."""
    begin = time.monotonic()
    pause_s = FIRST_PAUSE_S
    ended: dict[int, jobs.Ended] = {}
    while True:
        spent_s = time.monotonic() - begin
        for number, job in enumerate(running):
            if number not in ended:
                answer = job.ask()
                if isinstance(answer, jobs.Ended):
                    ended[number] = answer
                elif answer == 'absent' or (answer == 'starting'
                                            and spent_s > STARTING_S):
                    ended[number] = LOST
        if LOST in ended.values():
            for job in running:
                job.stop()
            return [ended.get(number, STOPPED)
                    for number in range(len(running))]
        if len(ended) == len(running):
            return [ended[number] for number in range(len(running))]
        tick(spent_s)
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.3, LONGEST_PAUSE_S)


def _longest(ended: Sequence[jobs.Ended]) -> float | None:
    known = [one.elapsed_s for one in ended if one.elapsed_s is not None]
    return max(known) if len(known) == len(ended) else None


def _status(ended: Sequence[jobs.Ended]) -> int | None:
    """The first that is not 0; None if one was lost."""
    known = [one.status for one in ended if one.status is not None]
    if len(known) < len(ended):
        return None
    return next((status for status in known if status), 0)


def _collect(job: jobs.Job, task: run_spec.Task) -> dict[str, bytes]:
    names = dict.fromkeys(('stdout', 'stderr', task.output))
    contents = ((name, job.read(name)) for name in names)
    return {name: content for name, content in contents
            if content is not None}


def _judge(part: Part, raw: Mapping[str, bytes],
           ended: jobs.Ended) -> outcome.Outcome:
    task = part.task
    if ended is STOPPED:
        return _invalid('was stopped, since another one was lost')
    if ended.status is None:
        return _invalid(f'the run was lost {ATTEMPTS} times: killed, or its '
                        'machine went down')
    if ended.status == 124:
        return _invalid(f'did not end within {part.limit_s} s')
    if ended.status in (126, 127):
        said = raw.get('stderr', b'').decode('utf-8', 'replace').strip()
        return _invalid('could not be started: '
                        + (said.splitlines() or [str(ended.status)])[-1])
    if task.output not in raw:
        return _invalid(f'left no {task.output} (exit status '
                        f'{ended.status})')
    # The definition says what a good run of this program ends with; where
    # that is not 0, the parser is told to expect it.
    expect = dict(task.expect)
    if task.made.exit_status:
        expect.setdefault('rc', str(task.made.exit_status))
    return parser.parse(task.made.parser, raw[task.output], expect,
                        ended.status, task.made.name)


def _invalid(reason: str) -> outcome.Outcome:
    return outcome.Outcome(valid=False, reason=exception.one_line(reason))


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec='seconds')
