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

"""Take one sample: start the job, wait for it, read what it left."""

import dataclasses
import datetime
import posixpath
import time
from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.bench import environment
from hpcvirt.bench import executor
from hpcvirt.bench import job as jobs
from hpcvirt.bench import outcome
from hpcvirt.bench import record
from hpcvirt.bench import schedule
from hpcvirt.bench import task as tasks
from hpcvirt.bench.parsers import parser

#: A place that does not answer is asked again for so long: a guest that is
#: rebooted, a network that is repaired.
PATIENCE_S = 300.0
#: Between two questions whether a job has ended: short at first, since small
#: benchmarks end soon, then seldom, not to disturb the long ones.
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 10.0
#: A job that has not begun after this will not: its launch was lost.
STARTING_S = 30.0
#: A job that is lost (its machine went down) is started again so often.
ATTEMPTS = 3

Tick = Callable[[float], None]
Keep = Callable[[str, bytes], record.RawOutput]


@dataclasses.dataclass(frozen=True)
class Arm:
    """One of the two places of a run.

    :ivar directory: where its jobs live
    :ivar prefix: what the command is started through: the native arm is
        tied to the guest's own host CPUs
    :ivar facts: added to the environment of each sample
    :ivar factor: the time limit is multiplied by this
    """

    place: executor.Executor
    directory: str
    prefix: tuple[str, ...] = ()
    facts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    factor: int = 1


def take(task: tasks.Task, arm: Arm, run_id: str, slot: schedule.Slot,
         inputs: Mapping[str, bytes], keep: Keep,
         tick: Tick = lambda _elapsed: None) -> record.Sample:
    """Take the sample of a slot, or go on with the job that was started.

    :param inputs: binaries that lie beside the program
    :param keep: keeps a raw output
    :param tick: called now and then with the seconds since the start
    :raises Unreachable: if the place does not come back in time
    """
    place = Patient(arm.place)
    before = environment.load(place)
    known = environment.facts(place)
    limit_s = task.made.time_limit_s * arm.factor
    command = (*arm.prefix, *task.command)
    started_at = _now()
    for attempt in range(ATTEMPTS):
        job = jobs.Job(place, posixpath.join(
            arm.directory, run_id, f'{slot.position:04d}.{attempt}'))
        _start(job, task, command, limit_s, inputs)
        ended = _wait(job, tick)
        if ended.status is not None:
            break
    told = environment.around(before, environment.load(place))
    raw = _collect(job, task)
    return record.Sample(
        arm=slot.arm, pair=slot.pair, position=slot.position,
        outcome=_judge(task, raw, ended, limit_s), warm_up=slot.warm_up,
        started_at=started_at, elapsed_s=ended.elapsed_s,
        exit_status=ended.status, command=command,
        environment={**known, **told, **arm.facts, 'place': place.name},
        outputs=tuple(keep(name, content) for name, content in raw.items()))


def clean(arm: Arm, run_id: str) -> None:
    """Remove what the jobs of a run left at a place."""
    arm.place.run(['rm', '-rf', posixpath.join(arm.directory, run_id)])


class Patient:
    """A place that is asked again when it does not answer."""

    def __init__(self, place: executor.Executor,
                 patience_s: float = PATIENCE_S) -> None:
        self._place = place
        self._patience_s = patience_s

    @property
    def name(self) -> str:
        return self._place.name

    def run(self, argv: Sequence[str], stdin: bytes = b'',
            timeout_s: float = executor.SHORT_S) -> executor.Completed:
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                return self._place.run(argv, stdin, timeout_s)
            except exception.Unreachable:
                if time.monotonic() > deadline:
                    raise
            time.sleep(3)

    def close(self) -> None:
        self._place.close()


def _start(job: jobs.Job, task: tasks.Task, command: tuple[str, ...],
           limit_s: int, inputs: Mapping[str, bytes]) -> None:
    state = job.ask()
    if state == 'starting':
        # Who started it was killed before it ran: nothing is lost.
        job.remove()
        state = 'absent'
    if state == 'absent':
        job.start(command, limit_s, {**task.inputs, **inputs},
                  task.environment, task.prepare)


def _wait(job: jobs.Job, tick: Tick) -> jobs.Ended:
    begin = time.monotonic()
    pause_s = FIRST_PAUSE_S
    while True:
        answer = job.ask()
        if isinstance(answer, jobs.Ended):
            return answer
        spent_s = time.monotonic() - begin
        if answer == 'absent' or (answer == 'starting'
                                  and spent_s > STARTING_S):
            return jobs.Ended(None, None)
        tick(spent_s)
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.3, LONGEST_PAUSE_S)


def _collect(job: jobs.Job, task: tasks.Task) -> dict[str, bytes]:
    names = dict.fromkeys(('stdout', 'stderr', task.output))
    contents = ((name, job.read(name)) for name in names)
    return {name: content for name, content in contents
            if content is not None}


def _judge(task: tasks.Task, raw: Mapping[str, bytes], ended: jobs.Ended,
           limit_s: int) -> outcome.Outcome:
    if ended.status is None:
        return _invalid(f'the run was lost {ATTEMPTS} times: killed, or its '
                        'machine went down')
    if ended.status == 124:
        return _invalid(f'did not end within {limit_s} s')
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
